/**
 * A connection that stays open, stdio or a pair in memory: one session for all of it, whichever era the client opens.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import {
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  type Server,
  type Transport,
  UnsupportedProtocolVersionError
} from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { randomUUID } from "node:crypto"
import * as Calls from "./Calls.ts"
import * as HostContext from "./HostContext.ts"
import * as Listing from "./Listing.ts"
import * as McpSession from "./McpSession.ts"
import type * as Registry from "./Registry.ts"
import * as SdkServer from "./SdkServer.ts"
import * as Wire from "./Wire.ts"

/**
 * Serves one transport until its scope closes. The effect that it gives waits for the end of the connection: its calls
 * have been stopped then, their finalizers have run, and what lived in the session is released.
 */
export const serve = (
  info: SdkServer.ServerInfo,
  transport: Transport
): Effect.Effect<Effect.Effect<void>, never, Calls.Calls | Registry.Registry | Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* Calls.Calls
    const bridge = yield* SdkServer.bridge(info)
    const around = yield* HostContext.capture
    const ended = yield* Deferred.make<void>()
    const scope = yield* Scope.make()
    let client: McpSession.Client = { protocolVersion: "", capabilities: {}, info: undefined }
    const servers = new Set<Server>()

    const session = McpSession.make({
      id: "",
      key: randomUUID(),
      lifetime: "connection",
      client: () => client,
      scope
    })
    const connection: SdkServer.Connection = {
      session: () => session,
      principal: () => undefined,
      context: () => around,
      seen: (latest) => {
        client = latest
      }
    }

    // Once, and whoever comes second waits for it: what lives in the session may take a while to be released.
    const end = yield* calls
      .drain({ session: session.key }, "SessionEnded", 0)
      .pipe(
        Effect.andThen(Scope.close(scope, Exit.void)),
        Effect.ensuring(Deferred.succeed(ended, undefined)),
        Effect.uninterruptible,
        Effect.cached
      )

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const handle = serveStdio(
          () => {
            const server = bridge.make(connection)
            servers.add(server)
            const { onclose } = server
            server.onclose = () => {
              servers.delete(server)
              onclose?.()
            }
            return server
          },
          { transport, onerror: bridge.report }
        )
        // The entry has put its own listener there; the connection ends for both. The entry's aborts every open request,
        // which is what a cancellation looks like: what the calls end for is said before it.
        const { onclose, onerror } = transport
        let fault: Error | undefined
        transport.onerror = (error) => {
          fault = error
          queueMicrotask(() => {
            fault = undefined
          })
          onerror?.(error)
        }
        transport.onclose = () => {
          // A fault that a transport does not survive closes it at once, and then nobody else can be told.
          if (fault !== undefined && !isGone(fault)) {
            Effect.runForkWith(around)(Effect.logWarning(`the connection has ended: ${fault.message}`))
          }
          Effect.runForkWith(around)(calls.interrupt({ session: session.key }, "SessionEnded"))
          onclose?.()
          Effect.runForkWith(around)(end)
        }
        // The entry looks at the revision of the first request only, and would serve any other after it.
        const { onmessage } = transport
        transport.onmessage = (message, extra) => {
          const refusal = refuseRevision(message, Array.from(servers).some(hasHandshake))
          if (refusal === undefined) onmessage?.(message, extra)
          else transport.send(refusal).catch(bridge.report)
        }
        return handle
      }),
      (handle) =>
        bridge
          .shutDown({ session: session.key })
          .pipe(Effect.andThen(Effect.promise(() => handle.close())), Effect.andThen(end))
    )
    yield* Listing.onChange(() => {
      for (const server of servers) {
        if (server.getNegotiatedProtocolVersion() !== undefined) server.sendToolListChanged().catch(bridge.report)
      }
    })
    return Deferred.await(ended)
  })

/** Whether nobody reads any more, which is how clients go. */
const isGone = (fault: Error): boolean => Predicate.hasProperty(fault, "code") && fault.code === "EPIPE"

/** Whether the client has agreed on a 2025 revision, for all of the connection. */
const hasHandshake = (server: Server): boolean => {
  const agreed = server.getNegotiatedProtocolVersion()
  return agreed !== undefined && agreed < Wire.firstModernVersion
}

/** The answer to a request that claims a revision which is not served (P4), whatever was served before it (P5). */
const refuseRevision = (message: JSONRPCMessage, handshake: boolean): JSONRPCMessage | undefined => {
  if (!("method" in message) || !("id" in message)) return undefined
  const meta = message.params?._meta
  const requested = Predicate.hasProperty(meta, PROTOCOL_VERSION_META_KEY) ? meta[PROTOCOL_VERSION_META_KEY] : undefined
  if (typeof requested !== "string" || requested === Wire.firstModernVersion) return undefined
  // What else stands there is the business of the handshake.
  if (handshake && requested < Wire.firstModernVersion) return undefined
  const error = new UnsupportedProtocolVersionError({ supported: [Wire.firstModernVersion], requested })
  return { jsonrpc: "2.0", id: message.id, error: { code: error.code, message: error.message, data: error.data } }
}
