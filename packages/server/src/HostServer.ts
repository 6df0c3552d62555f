/**
 * For a host that has servers of the SDK of its own: tools on one of them, beside whatever else it serves, and the handler
 * of one tool alone (M1, M20).
 *
 * The host connects its server, and closes it. What runs on it lives in the scope in which the first tools were added.
 */
import type * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type {
  McpServer as SdkMcpServer,
  Server,
  ServerContext,
  Tool as SdkTool,
  Transport
} from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import * as Calls from "./Calls.ts"
import type * as Core from "./Core.ts"
import * as Definition from "./Definition.ts"
import * as HostContext from "./HostContext.ts"
import * as Listing from "./Listing.ts"
import * as McpSession from "./McpSession.ts"
import * as Registry from "./Registry.ts"
import * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"
import * as TokenVerifier from "./TokenVerifier.ts"

/** A server of the SDK, low-level or not. */
export type Host = Server | SdkMcpServer

// Under this member a host's server knows the table of the tools that are added to it; once it is ours, it stays so.
const added: unique symbol = Symbol.for("@agenttool/server/HostServer")

interface Ours {
  [added]?: { readonly services: Context.Context<Core.Services> | undefined }
}

const serverOf = (host: Host): Server & Ours => ("server" in host ? host.server : host)

/**
 * Adds tools to a host's server until the scope closes; adding again adds to those that are there. The first tools are
 * added before the server is connected, since they change what it advertises.
 */
export const addTo = (
  host: Host,
  tools: ReadonlyArray<Tool.Any>,
  core: Layer.Layer<Core.Services>
): Effect.Effect<void, Registry.RegistrationError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = serverOf(host)
    const known = server[added]?.services
    if (known !== undefined) return yield* Effect.provideContext(register(tools), known)
    yield* isFree(server, tools[0]?.name ?? "")
    const services = yield* Layer.build(Layer.fresh(core))
    // Nothing of this is seen from outside yet: should the tools not be fit to be served, the server stays what it was.
    const bridge = yield* Effect.provideContext(SdkServer.bridge({ name: "", version: "" }), services)
    const connectionOf = yield* Effect.provideContext(connections(bridge), services)
    const changed = () => {
      if (server.transport !== undefined) server.sendToolListChanged().catch(bridge.report)
    }
    yield* Effect.provideContext(Listing.onChange(changed), services)
    yield* Effect.addFinalizer(() => Effect.sync(changed))
    yield* Effect.provideContext(register(tools), services)
    if (server[added] === undefined) server.registerCapabilities(SdkServer.capabilities)
    bridge.install(server, connectionOf(server))
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        server[added] = { services }
      }),
      () =>
        Effect.sync(() => {
          server[added] = { services: undefined }
        })
    )
  })

/** A server of the SDK with these tools. */
export const make = (
  info: SdkServer.ServerInfo,
  tools: ReadonlyArray<Tool.Any>,
  core: Layer.Layer<Core.Services>
): Effect.Effect<Server, Registry.RegistrationError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = SdkServer.bare(info, yield* Settings.Settings)
    yield* addTo(server, tools, core)
    return server
  })

const register = (tools: ReadonlyArray<Tool.Any>) =>
  Effect.gen(function* () {
    const registry = yield* Registry.Registry
    const calls = yield* Calls.Calls
    const settings = yield* Settings.Settings
    const registration = yield* registry.reserve
    // Closed in reverse: the tools leave the table, then their calls are stopped.
    yield* Effect.addFinalizer(() => calls.drain({ registration }, "ToolRemoved", settings.removalGrace))
    yield* registry.add(registration, tools)
  })

/** Whether a server can take its first tools: what it advertises must still be open, and it has no tools of its own. */
const isFree = (server: Server & Ours, tool: string): Effect.Effect<void, Registry.RegistrationError> => {
  const refused = (detail: string) => Effect.fail(new Registry.RegistrationError({ tool, detail }))
  if (server[added] !== undefined) return Effect.void
  if (server.transport !== undefined) return refused("the server is connected: its first tools are added before")
  const free = Result.try(() => {
    for (const method of ["tools/list", "tools/call"]) server.assertCanSetRequestHandler(method)
  })
  return Result.isSuccess(free) ? Effect.void : refused("the server has tools of its own, and can have one set only")
}

interface Live {
  readonly session: McpSession.Session
  readonly transport: Transport | undefined
}

/**
 * The connections of a host's servers. What outlives a request is known from the request itself: a connection without HTTP,
 * or a 2025 session over it. It ends when its server is closed or connected anew, and with the scope at the latest.
 */
const connections = (
  bridge: SdkServer.Bridge
): Effect.Effect<(server: Server) => SdkServer.Connection, never, Calls.Calls | Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* Calls.Calls
    const around = yield* HostContext.capture
    const live = new Map<Server, Live>()
    const ending = yield* Scope.make()

    const end = ({ session }: Live): Effect.Effect<void> =>
      Effect.andThen(calls.drain({ session: session.key }, "SessionEnded", 0), Scope.close(session.scope, Exit.void))

    const forget = (server: Server): void => {
      const known = live.get(server)
      live.delete(server)
      if (known === undefined) return
      Effect.runForkWith(around)(
        // At once: next the server aborts the open requests, which is what a cancellation looks like.
        calls
          .interrupt({ session: known.session.key }, "SessionEnded")
          .pipe(Effect.andThen(Effect.forkIn(Effect.uninterruptible(end(known)), ending)))
      )
    }

    yield* Effect.addFinalizer(() =>
      bridge
        .shutDown("all")
        .pipe(
          Effect.andThen(Effect.suspend(() => Effect.forEach(Array.from(live.values()), end, { discard: true }))),
          Effect.andThen(Scope.close(ending, Exit.void))
        )
    )

    return (server) => {
      let client: McpSession.Client = { protocolVersion: "", capabilities: {}, info: undefined }
      const { onclose } = server
      server.onclose = () => {
        forget(server)
        onclose?.()
      }

      const sessionOf = (): McpSession.Session => {
        const known = live.get(server)
        const { transport } = server
        if (known !== undefined && known.transport === transport) return known.session
        // Connected anew, by a host that has put its own listener in the place of ours.
        forget(server)
        const session = McpSession.make({
          id: transport?.sessionId ?? "",
          key: randomUUID(),
          lifetime: "connection",
          client: () => client,
          scope: Scope.makeUnsafe()
        })
        live.set(server, { session, transport })
        return session
      }

      return {
        session: (request) =>
          request.http === undefined || (!SdkServer.isModern(request) && server.transport?.sessionId !== undefined)
            ? sessionOf()
            : undefined,
        principal: ({ http }: ServerContext) => TokenVerifier.principalOf(http?.authInfo),
        context: () => around,
        seen: (latest) => {
          client = latest
        }
      }
    }
  })

/** What a host lists of one tool, with the type that the SDK has for it. */
export const definition = (tool: Tool.Any): SdkTool => Definition.make(tool) as unknown as SdkTool // the SDK checks it again where it sends it

/** The handler of one tool, until the scope closes. Its server answers no facts, and advertises nothing of ours. */
export const handler = (
  tool: Tool.Any,
  core: Layer.Layer<Core.Services>
): Effect.Effect<(server: Host) => SdkServer.CallHandler, Registry.RegistrationError, Scope.Scope> =>
  Effect.gen(function* () {
    const services = yield* Layer.build(Layer.fresh(core))
    const registry = Context.get(services, Registry.Registry)
    yield* registry.add(yield* registry.reserve, [tool])
    const bridge = yield* Effect.provideContext(SdkServer.bridge({ name: "", version: "" }), services)
    const connectionOf = yield* Effect.provideContext(connections(bridge), services)
    return (host) => {
      const server = serverOf(host)
      const call = bridge.handler(server, connectionOf(server))
      return (request, context) => call({ ...request, params: { ...request.params, name: tool.name } }, context)
    }
  })
