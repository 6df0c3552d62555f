/**
 * The sessions of 2025 clients over HTTP: each has a server object of the SDK, its transport, and a scope that holds all
 * that lives in it.
 *
 * A session ends by DELETE, with the server, or when it has been idle for too long: no request, no running call and no
 * open question. One more than `maxSessions` is turned away with 503, never another client's session.
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Server, ServerContext } from "@modelcontextprotocol/server"
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import * as Calls from "./Calls.ts"
import * as HostContext from "./HostContext.ts"
import * as McpSession from "./McpSession.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"

/** The sessions of one endpoint. */
export interface HttpSessions {
  readonly respond: (request: Request) => Promise<Response>
  readonly toolsChanged: () => void
  readonly count: () => number
}

interface Entry {
  readonly key: string
  readonly server: Server
  readonly transport: WebStandardStreamableHTTPServerTransport
  requests: number
  lastUsed: number
}

const sessionHeader = "mcp-session-id"

/** Sessions until the scope closes. */
export const make = (options: {
  readonly bridge: SdkServer.Bridge
  readonly context: (request: ServerContext) => Context.Context<never>
}): Effect.Effect<HttpSessions, never, Calls.Calls | Scope.Scope> =>
  Effect.gen(function* () {
    const { bridge, context } = options
    const calls = yield* Calls.Calls
    const settings = yield* Settings.Settings
    const clock = yield* Clock.Clock
    const around = yield* HostContext.capture
    const sessions = new Map<string, Entry>()
    let opening = 0

    const open = async (request: Request): Promise<Response> => {
      if (sessions.size + opening >= settings.maxSessions) return tooMany()
      const key = randomUUID()
      const scope = Scope.makeUnsafe()
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        maxRequestBodySize: settings.maxBodyBytes,
        onsessioninitialized: (id) => {
          sessions.set(id, entry)
        }
      })
      let client: McpSession.Client = { protocolVersion: "", capabilities: {}, info: undefined }
      const session = McpSession.make({
        // Known once the client has been answered, which is before its first call.
        get id() {
          return transport.sessionId ?? ""
        },
        key,
        lifetime: "connection",
        client: () => client,
        scope
      })
      const server = bridge.make({
        session,
        canAsk: true,
        principal: undefined,
        context,
        seen: (latest) => {
          client = latest
        }
      })
      const entry: Entry = { key, server, transport, requests: 0, lastUsed: clock.currentTimeMillisUnsafe() }
      opening++
      await server.connect(transport)
      const { onclose } = transport
      transport.onclose = () => {
        onclose?.()
        if (transport.sessionId !== undefined) sessions.delete(transport.sessionId)
        Effect.runForkWith(around)(
          Effect.andThen(calls.drain({ session: key }, "SessionEnded", 0), Scope.close(scope, Exit.void))
        )
      }
      const response = await transport.handleRequest(request)
      opening--
      // A refused handshake has made no session.
      if (transport.sessionId === undefined) await transport.close()
      return response
    }

    const respond = (request: Request): Promise<Response> => {
      const id = request.headers.get(sessionHeader)
      if (id === null) return request.method === "POST" ? withoutSession(request) : Promise.resolve(missingId())
      const entry = sessions.get(id)
      if (entry === undefined) return Promise.resolve(unknownSession())
      entry.requests++
      const used = () => {
        entry.requests--
        entry.lastUsed = clock.currentTimeMillisUnsafe()
      }
      return entry.transport.handleRequest(request).finally(used)
    }

    const withoutSession = (request: Request): Promise<Response> =>
      request
        .clone()
        .json()
        .then(
          (message: unknown) => (isInitialize(message) ? open(request) : missingId()),
          () => parseError()
        )

    const idleMillis = Duration.toMillis(settings.sessionIdleTimeout)
    const isIdle = (entry: Entry, now: number) =>
      entry.requests > 0 || now - entry.lastUsed < idleMillis
        ? Effect.succeed(false)
        : Effect.map(calls.countOf({ session: entry.key }), ({ attached, parked }) => attached + parked === 0)

    yield* Effect.forkScoped(
      Effect.forever(
        Effect.andThen(
          Effect.sleep(Math.max(1, Math.min(idleMillis / 4, 60_000))),
          Effect.suspend(() => {
            const now = clock.currentTimeMillisUnsafe()
            return Effect.forEach(Array.from(sessions.values()), (entry) =>
              Effect.flatMap(isIdle(entry, now), (idle) =>
                idle ? Effect.promise(() => entry.transport.close()) : Effect.void
              )
            )
          })
        )
      )
    )
    yield* Effect.addFinalizer(() =>
      Effect.forEach(Array.from(sessions.values()), ({ transport }) => Effect.promise(() => transport.close()))
    )

    return {
      respond,
      toolsChanged: () => {
        for (const { server } of sessions.values()) server.sendToolListChanged().catch(bridge.report)
      },
      count: () => sessions.size
    }
  })

const isInitialize = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "method" in message && message.method === "initialize"

const errorResponse = (status: number, code: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers })

const missingId = (): Response => errorResponse(400, -32000, "Bad Request: Mcp-Session-Id header is required")
const unknownSession = (): Response => errorResponse(404, -32001, "Session not found")
const parseError = (): Response => errorResponse(400, -32700, "Parse error: the request body is not valid JSON")
const tooMany = (): Response =>
  errorResponse(503, -32000, "Too many sessions: try again later", { "Retry-After": "30" })
