/**
 * Serves tools over MCP: registration layers, transport layers, and the way a program that serves ends.
 *
 * Built in this order, and released in reverse: the table of tools and the calls, the registrations, the transport. So no
 * request is read before its tools are there, and the transport is closed before they go.
 */
import type * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import type * as Scope from "effect/Scope"
import type * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import type { HttpRouter } from "effect/http/HttpRouter"
import type { Server, Tool as SdkTool } from "@modelcontextprotocol/server"
import * as Calls from "./Calls.ts"
import * as CoreModule from "./Core.ts"
import * as HostServer from "./HostServer.ts"
import type * as Http from "./Http.ts"
import type * as McpSession from "./McpSession.ts"
import * as Memory from "./Memory.ts"
import * as Registry from "./Registry.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"
import * as Stdio from "./Stdio.ts"
import * as Stdout from "./Stdout.ts"

export { launch } from "./Ending.ts"
export { RegistrationError } from "./Registry.ts"
/**
 * Reads every setting from environment variables, `MCP_ABANDON_AFTER=5 minutes`; see docs/operations.md for all names. A
 * wrong value fails with one error that names the variable. Provide it to a transport layer, whose own options win.
 */
export { layer as layerConfig } from "./SettingsConfig.ts"
export { TestCalls, TestClient } from "./Memory.ts"

/** What registrations need, and every transport layer of this module provides. */
export type Core = CoreModule.Services

/** What tools need to be registered: all of it, but for what belongs to a call or its session. */
export type Needs<Tools extends ReadonlyArray<Tool.Any>> = Exclude<
  Tool.Requirements<Tools[number]>,
  McpSession.McpSession
>

/**
 * Registers tools, all or none of them, until the layer is released: their running calls then get a grace period, parked
 * ones are stopped at once, and clients are told that the list has changed. Layers of tools merge.
 *
 * Fails with a `RegistrationError` that names the tool whose name is empty or whose schema cannot be served.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Effect, Layer } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 * const now = Tool.make("now", { execute: () => Effect.succeed("late") })
 *
 * const Tools = Layer.mergeAll(McpServer.tools(ping), McpServer.tools(now))
 * ```
 */
export const tools = <Tools extends ReadonlyArray<Tool.Any>>(
  ...served: Tools
): Layer.Layer<never, Registry.RegistrationError, Core | Needs<Tools>> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const registry = yield* Registry.Registry
      const calls = yield* Calls.Calls
      const settings = yield* Settings.Settings
      // Taken from the context when a call of a tool runs; asked for here, so that it is there.
      yield* Effect.context<Needs<Tools>>()
      const registration = yield* registry.reserve
      // Closed in reverse: the tools leave the table, so that no call of them starts, then their calls are stopped.
      yield* Effect.addFinalizer(() => calls.drain({ registration }, "ToolRemoved", settings.removalGrace))
      yield* registry.add(registration, served)
    })
  )

/**
 * What a server says it is, which tools it has, and every member of `Settings` that differs from its default.
 *
 * `instructions` are for the client's model; absent or empty, none are sent.
 */
export interface Options<E, R> extends SdkServer.ServerInfo, Partial<Settings.Settings> {
  readonly registrations: Layer.Layer<never, E, R>
}

const assemble =
  <E, R>(options: Options<E, R>) =>
  <A, E2, R2>(transport: Layer.Layer<A, E2, R2>): Layer.Layer<A, E | E2, Exclude<R | R2, Core>> =>
    transport.pipe(
      Layer.provide(options.registrations),
      Layer.provide(CoreModule.layer),
      Layer.provide(CoreModule.settings(options))
    )

/**
 * Serves on standard input and output, which is then the protocol's alone: see `Stdout`. Ends with its input under
 * {@link launch}.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 *
 * McpServer.layerStdio({ name: "demo", version: "1.0.0", registrations: McpServer.tools(ping) }).pipe(
 *   McpServer.launch,
 *   NodeRuntime.runMain
 * )
 * ```
 */
export const layerStdio = <E, R>(options: Options<E, R>): Layer.Layer<never, E, Exclude<R, Core>> =>
  // Standard output is taken before anything else is built.
  Stdio.layer(options).pipe(assemble(options), Layer.provide(Stdout.layer)) as Layer.Layer<never, E, Exclude<R, Core>>

/**
 * Serves at a path of an effect `HttpRouter`, beside an app's own routes and middleware: 2026-07-28 request by request,
 * the 2025 revisions with sessions.
 *
 * `path` is `/mcp` by default. Only `localhost`, `127.0.0.1` and `[::1]` are allowed as `Host` and in `Origin`, whatever
 * address the server listens on; `allowedHosts` and `allowedOrigins` (host names, without ports) allow others.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { HttpRouter } from "effect/http"
 * import { createServer } from "node:http"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 *
 * HttpRouter.serve(
 *   McpServer.layerHttp({ name: "demo", version: "1.0.0", registrations: McpServer.tools(ping) })
 * ).pipe(
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000, host: "127.0.0.1" })),
 *   McpServer.launch,
 *   NodeRuntime.runMain
 * )
 * ```
 */
export const layerHttp = <E, R>(
  options: Options<E, R> & Http.Options
): Layer.Layer<never, E, HttpRouter | Exclude<R, Core>> =>
  Layer.unwrap(Effect.map(http, ({ layer }) => layer(options))).pipe(assemble(options)) as Layer.Layer<
    never,
    E,
    HttpRouter | Exclude<R, Core>
  >

// Loaded by those who serve over HTTP: a program on standard input starts without it.
const http = Effect.promise(() => import("./Http.ts"))

/**
 * A server and a connected client of the SDK in one process, for tests: get the client by `McpServer.TestClient`.
 *
 * `protocolVersion` is that of the client, `2026-07-28` by default; `capabilities` are what it offers, by default that it
 * can be asked by form and by url; `answer` answers its questions, by default with `cancel`.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 *
 * const test = Effect.gen(function* () {
 *   const client = yield* McpServer.TestClient
 *   return yield* Effect.promise(() => client.callTool({ name: "ping", arguments: {} }))
 * }).pipe(Effect.provide(McpServer.layerTest({ registrations: McpServer.tools(ping) })))
 * ```
 */
export const layerTest = <E, R>(
  options: Partial<SdkServer.ServerInfo> &
    Memory.Options &
    Partial<Settings.Settings> & { readonly registrations: Layer.Layer<never, E, R> }
): Layer.Layer<Memory.TestClient | Memory.TestCalls, E, Exclude<R, Core>> => {
  const named = { name: "test", version: "0.0.0", ...options }
  return Memory.layer(named).pipe(assemble(named)) as Layer.Layer<
    Memory.TestClient | Memory.TestCalls,
    E,
    Exclude<R, Core>
  >
}

// ---------------------------------------------------------------------------------------------------------------------
// Open seams
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Adds tools to a server of the SDK that the host made (`Server` or `McpServer`), until the scope closes. Its other
 * capabilities stay as they are; adding again adds to the tools that are there, and a connected client is told.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Server } from "@modelcontextprotocol/server"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 * const host = new Server({ name: "host", version: "1.0.0" }, { capabilities: {} })
 *
 * const added = McpServer.addTo(host, ping) // Effect<void, RegistrationError, Scope>
 * ```
 */
export const addTo = <Tools extends ReadonlyArray<Tool.Any>>(
  host: HostServer.Host,
  ...added: Tools
): Effect.Effect<void, Registry.RegistrationError, Needs<Tools> | Scope.Scope> =>
  // Whatever the tools need is taken from the context in which they are added.
  HostServer.addTo(host, added, CoreModule.layer)

/**
 * A server of the SDK with tools, for a host that connects it itself: `new Server(...)` and {@link addTo}. Settings are
 * those that are given, over those around. Where a tool cannot be served, there is no server (M2).
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 *
 * const server = McpServer.make({ name: "demo", version: "1.0.0", maxRequests: 5 }, ping) // Effect<Server, RegistrationError, Scope>
 * ```
 */
export const make = <Tools extends ReadonlyArray<Tool.Any>>(
  options: SdkServer.ServerInfo & Partial<Settings.Settings>,
  ...served: Tools
): Effect.Effect<Server, Registry.RegistrationError, Needs<Tools> | Scope.Scope> =>
  // Whatever the tools need is taken from the context in which the server is made.
  Effect.updateService(HostServer.make(options, served, CoreModule.layer), Settings.Settings, (around) =>
    Settings.make(options, around)
  )

/** What a host lists of one tool: `Definition.make` with the type that the SDK has for it; see {@link handler}. */
export const definition: (tool: Tool.Any) => SdkTool = HostServer.definition

/**
 * The `tools/call` handler of one tool, for a host that lists it itself by {@link definition}. Give it the server that it
 * is put on: the same handler serves many. Such a server answers no facts, and advertises none (M20).
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Server } from "@modelcontextprotocol/server"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 * const host = new Server({ name: "host", version: "1.0.0" }, { capabilities: { tools: {} } })
 * host.setRequestHandler("tools/list", () => ({ tools: [McpServer.definition(ping)] }))
 *
 * const put = Effect.map(McpServer.handler(ping), (handler) => host.setRequestHandler("tools/call", handler(host)))
 * ```
 */
export const handler = <T extends Tool.Any>(
  tool: T
): Effect.Effect<
  (server: HostServer.Host) => SdkServer.CallHandler,
  Registry.RegistrationError,
  Needs<readonly [T]> | Scope.Scope
> => HostServer.handler(tool, CoreModule.layer)

/**
 * A server behind the `fetch` of the web platform. `close` gives running calls their grace, stops them, and waits for their
 * finalizers; requests after it get 503.
 */
export interface WebHandler {
  readonly fetch: (request: Request) => Promise<Response>
  readonly close: () => Promise<void>
}

/**
 * For hosts without Effect: the endpoint of {@link layerHttp} as a function from a `Request` to a `Response`, for Hono,
 * Express by an adapter, or bare `node:http`. It answers at every path it is given. Building starts with the first request.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpServer } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })
 * const mcp = McpServer.toWebHandler({ name: "demo", version: "1.0.0", registrations: McpServer.tools(ping) })
 *
 * export default { fetch: mcp.fetch }
 * ```
 */
export const toWebHandler = <E>(options: Options<E, Core> & Http.Options): WebHandler => {
  const runtime = ManagedRuntime.make(
    Layer.effect(
      Endpoint,
      Effect.flatMap(http, ({ endpoint }) => endpoint(options))
    ).pipe(assemble(options)) as Layer.Layer<Endpoint, E>
  )
  let respond: Promise<(request: Request) => Promise<Response>> | undefined
  return {
    // Not a fiber of the runtime, which would be interrupted at its end: a request is answered until the calls are stopped.
    fetch: (request) => {
      respond ??= runtime.context().then((context) => (later) => Context.get(context, Endpoint).respond(later, context))
      return respond.then((answer) => answer(request))
    },
    close: () => runtime.dispose()
  }
}

class Endpoint extends Context.Service<Endpoint, Http.Endpoint>()("@agenttool/server/Endpoint") {}

/**
 * Registers the tools of an effect/ai `Toolkit` with the handlers that are provided, as effect/ai's own
 * `McpServer.toolkit` does; see docs/from-effect-ai.md.
 */
export const toolkit = <Tools extends Record<string, AiTool.Any>>(
  kit: Toolkit.Toolkit<Tools>
): Layer.Layer<
  never,
  Registry.RegistrationError,
  | Core
  | AiTool.HandlersFor<Tools>
  | Exclude<AiTool.HandlerServices<Tools[keyof Tools]>, Tool.Provided | McpSession.McpSession>
> =>
  Layer.unwrap(
    Effect.gen(function* () {
      // Loaded here: programs without a toolkit do without effect/ai.
      const bridge = yield* Effect.promise(() => import("@agenttool/core/AiTool"))
      const bound = yield* kit
      return tools(...Object.values<Tool.Any>(bridge.fromToolkit(bound)))
    })
    // What the tools of the kit need, which a list of any tools no longer says.
  ) as never
