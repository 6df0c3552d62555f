/**
 * For a host that has a server of the SDK of its own: tools on it, beside whatever else it serves, and the handler of one
 * tool alone (M1, M20).
 *
 * The host connects its server, and closes it. What runs on it lives in the scope in which the first tools were added.
 */
import type * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { McpServer as SdkMcpServer, Server } from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import * as Calls from "./Calls.ts"
import type * as Core from "./Core.ts"
import * as HostContext from "./HostContext.ts"
import * as Listing from "./Listing.ts"
import * as McpSession from "./McpSession.ts"
import * as Registry from "./Registry.ts"
import * as SdkServer from "./SdkServer.ts"

/** A server of the SDK, low-level or not. */
export type Host = Server | SdkMcpServer

// Under this member a host's server knows the table of the tools that were added to it.
const added: unique symbol = Symbol.for("@agenttool/server/HostServer")

interface WithCore {
  [added]?: Context.Context<Core.Services>
}

const serverOf = (host: Host): Server & WithCore => ("server" in host ? host.server : host)

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
    const known = server[added]
    const services = known ?? (yield* Layer.build(Layer.fresh(core)))
    const registry = Context.get(services, Registry.Registry)
    const registration = yield* registry.reserve
    yield* registry.add(registration, tools)
    if (known === undefined) {
      yield* Effect.provideContext(install(server, tools), services)
      server[added] = services
    }
  })

const install = (server: Server, tools: ReadonlyArray<Tool.Any>) =>
  Effect.gen(function* () {
    if (server.transport !== undefined) {
      return yield* new Registry.RegistrationError({
        tool: tools[0]?.name ?? "",
        detail: "the server is connected: its first tools are added before"
      })
    }
    const calls = yield* Calls.Calls
    const around = yield* HostContext.capture
    const bridge = yield* SdkServer.bridge({ name: "", version: "" })
    const scope = yield* Effect.scope
    const connection = yield* connectionOf(server, around)
    server.registerCapabilities(SdkServer.capabilities)
    bridge.install(server, connection)
    const { onclose } = server
    server.onclose = () => {
      onclose?.()
      const { session } = connection
      if (session === undefined) return
      Effect.runForkWith(around)(
        Effect.forkIn(
          Effect.andThen(
            calls.drain({ session: session.key }, "SessionEnded", 0),
            Scope.close(session.scope, Exit.void)
          ),
          scope
        )
      )
    }
    yield* Listing.onChange(() => {
      if (server.transport !== undefined) server.sendToolListChanged().catch(bridge.report)
    })
  })

// A server of the SDK has one connection at a time, which is its session; what is known of the client is read from it.
const connectionOf = (
  server: Server,
  around: Context.Context<never>
): Effect.Effect<SdkServer.Connection, never, Scope.Scope> =>
  Effect.map(Effect.acquireRelease(Scope.make(), Scope.close), (scope) => {
    let client: McpSession.Client = { protocolVersion: "", capabilities: {}, info: undefined }
    const session = McpSession.make({
      get id() {
        return server.transport?.sessionId ?? ""
      },
      key: randomUUID(),
      lifetime: "connection",
      client: () => client,
      scope
    })
    return {
      session,
      canAsk: true,
      principal: () => undefined,
      context: () => around,
      seen: (latest) => {
        client = latest
      }
    }
  })

/** The handler of one tool, until the scope closes. Its server answers no facts, and advertises nothing of ours. */
export const handler = (
  tool: Tool.Any,
  core: Layer.Layer<Core.Services>
): Effect.Effect<(server: Host) => SdkServer.CallHandler, Registry.RegistrationError, Scope.Scope> =>
  Effect.gen(function* () {
    const services = yield* Layer.build(Layer.fresh(core))
    const registry = Context.get(services, Registry.Registry)
    yield* registry.add(yield* registry.reserve, [tool])
    const around = yield* HostContext.capture
    const bridge = yield* Effect.provideContext(SdkServer.bridge({ name: "", version: "" }), services)
    const scope = yield* Effect.scope
    return (host) => {
      const server = serverOf(host)
      const connection = Effect.runSyncWith(around)(
        Effect.provideService(connectionOf(server, around), Scope.Scope, scope)
      )
      const call = bridge.handler(server, connection)
      return (request, context) => call({ ...request, params: { ...request.params, name: tool.name } }, context)
    }
  })
