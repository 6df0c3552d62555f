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
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type {
  AuthInfo,
  EventStore as SdkEventStore,
  JSONRPCMessage,
  Server,
  ServerContext
} from "@modelcontextprotocol/server"
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import * as Calls from "./Calls.ts"
import * as EventStore from "./EventStore.ts"
import * as HostContext from "./HostContext.ts"
import * as McpSession from "./McpSession.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"
import * as Telemetry from "./Telemetry.ts"
import * as TokenVerifier from "./TokenVerifier.ts"

/** The sessions of one endpoint. */
export interface HttpSessions {
  readonly respond: (request: Request, body: unknown, auth: AuthInfo | undefined) => Promise<Response>
  /** The session that a request of this principal is in, if it is in one. */
  readonly sessionOf: (request: Request, principal: string | undefined) => McpSession.Session | undefined
  readonly toolsChanged: () => void
  readonly count: () => number
  /** Ends them all, and waits until what lived in them is released. */
  readonly close: Effect.Effect<void>
}

interface Entry {
  readonly key: string
  readonly session: McpSession.Session
  readonly server: Server
  readonly transport: WebStandardStreamableHTTPServerTransport
  /** Who opened it: nobody else may use it. */
  readonly principal: string | undefined
  requests: number
  lastUsed: number
}

const sessionHeader = "mcp-session-id"

/** Sessions until the scope closes. */
export const make = (options: {
  readonly bridge: SdkServer.Bridge
  readonly context: (request: ServerContext) => Context.Context<never>
  readonly principal: (request: ServerContext) => string | undefined
}): Effect.Effect<HttpSessions, never, Calls.Calls | Scope.Scope> =>
  Effect.gen(function* () {
    const { bridge, context, principal } = options
    const store = yield* EventStore.EventStore
    const calls = yield* Calls.Calls
    const settings = yield* Settings.Settings
    const clock = yield* Clock.Clock
    const around = yield* HostContext.capture
    const sessions = new Map<string, Entry>()
    const endings = yield* FiberSet.make<void>()
    let opening = 0

    const open = async (request: Request, body: unknown, auth: AuthInfo | undefined): Promise<Response> => {
      if (sessions.size + opening >= settings.maxSessions) return tooMany()
      const key = randomUUID()
      const scope = Scope.makeUnsafe()
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        ...(store === undefined ? {} : { eventStore: eventStoreOf(store, key, around), retryInterval }),
        onsessioninitialized: (id) => {
          sessions.set(id, entry)
          Telemetry.change(Telemetry.sessions, 1, around)
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
        principal: TokenVerifier.principalOf(auth),
        client: () => client,
        scope
      })
      const server = bridge.make({
        session: () => session,
        principal,
        context,
        seen: (latest) => {
          client = latest
        }
      })
      const entry: Entry = {
        key,
        session,
        server,
        transport,
        principal: TokenVerifier.principalOf(auth),
        requests: 0,
        lastUsed: clock.currentTimeMillisUnsafe()
      }
      opening++
      await server.connect(transport)
      const { onclose } = transport
      transport.onclose = () => {
        // Before the server's own listener aborts the open requests, which is what a cancellation looks like.
        Effect.runForkWith(around)(calls.interrupt({ session: key }, "SessionEnded"))
        onclose?.()
        if (transport.sessionId !== undefined && sessions.delete(transport.sessionId)) {
          Telemetry.change(Telemetry.sessions, -1, around)
        }
        const end = calls
          .drain({ session: key }, "SessionEnded", 0)
          .pipe(
            Effect.andThen(Scope.close(scope, Exit.void)),
            Effect.andThen(store === undefined ? Effect.void : store.forget(prefixOf(key))),
            Effect.uninterruptible
          )
        FiberSet.addUnsafe(endings, Effect.runForkWith(around)(end))
      }
      const response = await transport.handleRequest(request, handled(body, auth)).finally(() => {
        opening--
      })
      // A refused handshake has made no session.
      if (transport.sessionId === undefined) await transport.close()
      return response
    }

    const find = (id: string, principal: string | undefined): Entry | undefined => {
      const entry = sessions.get(id)
      return entry?.principal === principal ? entry : undefined
    }

    const respond: HttpSessions["respond"] = (request, body, auth) => {
      const id = request.headers.get(sessionHeader)
      if (id === null) return isInitialize(body) ? open(request, body, auth) : Promise.resolve(missingId())
      const entry = find(id, TokenVerifier.principalOf(auth))
      if (entry === undefined) return Promise.resolve(unknownSession())
      entry.requests++
      const used = () => {
        entry.requests--
        entry.lastUsed = clock.currentTimeMillisUnsafe()
      }
      return entry.transport.handleRequest(request, handled(body, auth)).finally(used)
    }

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
    const close = Effect.suspend(() =>
      Effect.forEach(Array.from(sessions.values()), ({ transport }) => Effect.promise(() => transport.close()))
    ).pipe(Effect.andThen(FiberSet.awaitEmpty(endings)))
    yield* Effect.addFinalizer(() => close)

    return {
      respond,
      sessionOf: (request, from) => find(request.headers.get(sessionHeader) ?? "", from)?.session,
      toolsChanged: () => {
        for (const { server } of sessions.values()) server.sendToolListChanged().catch(bridge.report)
      },
      count: () => sessions.size,
      close
    }
  })

// How long a client is asked to wait before it resumes a stream that was closed.
const retryInterval = 1_000

const handled = (body: unknown, auth: AuthInfo | undefined) => ({
  ...(body === undefined ? {} : { parsedBody: body }),
  ...(auth === undefined ? {} : { authInfo: auth })
})

const prefixOf = (key: string): string => `${key}/`

/** The store as the SDK has it, for the streams of one session alone. */
const eventStoreOf = (
  store: EventStore.EventStoreService,
  key: string,
  around: Context.Context<never>
): SdkEventStore => {
  const run = Effect.runPromiseWith(around)
  const prefix = prefixOf(key)
  const ownStream = (id: string) =>
    Effect.map(store.streamOf(id), (stream) =>
      Option.isSome(stream) && stream.value.startsWith(prefix) ? stream.value.slice(prefix.length) : undefined
    )
  return {
    storeEvent: (stream, message) =>
      run(
        Effect.catchCause(store.add(prefix + stream, toJson(message)), (cause) =>
          // Sent all the same, under an id by which nothing can be resumed.
          Effect.as(Effect.logWarning("a message could not be kept for a client that resumes", cause), randomUUID())
        )
      ),
    getStreamIdForEventId: (id) => run(ownStream(id)),
    replayEventsAfter: (id, { send }) =>
      run(
        Effect.gen(function* () {
          const stream = yield* ownStream(id)
          if (stream === undefined) return yield* Effect.die(new Error("an event of another session"))
          for (const event of yield* store.after(id)) {
            if (!isMarker(event.message)) yield* Effect.promise(() => send(event.id, fromJson(event.message)))
          }
          return stream
        })
      )
  }
}

// Messages are JSON, and come back as they were stored.
const toJson = (message: JSONRPCMessage): Schema.Json => message as unknown as Schema.Json
const fromJson = (message: Schema.Json): JSONRPCMessage => message as unknown as JSONRPCMessage

const isMarker = (message: Schema.Json): boolean =>
  typeof message === "object" && message !== null && Object.keys(message).length === 0

const isInitialize = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "method" in message && message.method === "initialize"

/** A refusal that no request of the protocol got as far as. */
export const errorResponse = (
  status: number,
  code: number,
  message: string,
  headers: Record<string, string> = {}
): Response => Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers })

const missingId = (): Response => errorResponse(400, -32000, "Bad Request: Mcp-Session-Id header is required")
const unknownSession = (): Response => errorResponse(404, -32001, "Session not found")
const tooMany = (): Response =>
  errorResponse(503, -32000, "Too many sessions: try again later", { "Retry-After": "30" })
