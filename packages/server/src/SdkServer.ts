/**
 * The bridge: handlers of the SDK's `Server` that run effects, and nothing else. Promises are made and awaited here and
 * in the transports only.
 *
 * A request becomes a `CallRequest` or a `CallReply` for `Calls`; its turn becomes a result, an error result or a protocol
 * error; its signal interrupts the effect that waits. Which session a request belongs to, and what the host has put around
 * it, the transport says by its {@link Connection}.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  MissingRequiredClientCapabilityError,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  type ListToolsResult,
  type ServerContext
} from "@modelcontextprotocol/server"
import * as Attachment from "./Attachment.ts"
import * as CallResult from "./CallResult.ts"
import * as Calls from "./Calls.ts"
import * as ClientRequests from "./ClientRequests.ts"
import * as Definition from "./Definition.ts"
import type * as FastLane from "./FastLane.ts"
import * as Facts from "./Facts.ts"
import * as HostContext from "./HostContext.ts"
import * as Listing from "./Listing.ts"
import * as McpSession from "./McpSession.ts"
import * as Outgoing from "./Outgoing.ts"
import type * as PrincipalSessions from "./PrincipalSessions.ts"
import * as Registry from "./Registry.ts"
import * as Settings from "./Settings.ts"
import * as StopReason from "./StopReason.ts"
import * as Telemetry from "./Telemetry.ts"
import * as ToolVisibility from "./ToolVisibility.ts"
import * as Wire from "./Wire.ts"

/** What a server says it is. Empty instructions are left out. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly instructions?: string | undefined
}

/** What a transport knows of the connection or request that a server object serves. */
export interface Connection {
  /**
   * The session that a request belongs to, where one outlives it: then there is a channel back to a 2025 client, too.
   * Without it, every request has its own.
   */
  readonly session: (request: ServerContext) => McpSession.Session | undefined
  /** Whom the transport has authenticated, for this request. */
  readonly principal: (request: ServerContext) => string | undefined
  /** Gives an authenticated principal one session for all its requests, where that is set. */
  readonly sessionOf?: PrincipalSessions.SessionOf | undefined
  /** What the host has put around this request. */
  readonly context: (request: ServerContext) => Context.Context<never>
  /** Told what the client says of itself, whenever it says so. */
  readonly seen?: ((client: McpSession.Client) => void) | undefined
}

/** Who sends a request, as far as its transport knows. */
export interface Sender {
  readonly session: McpSession.Session | undefined
  readonly sessionOf: PrincipalSessions.SessionOf | undefined
  readonly principal: string | undefined
  readonly client: () => McpSession.Client
}

/** Answers `tools/call`. */
export type CallHandler = (
  request: CallToolRequest,
  context: ServerContext
) => Promise<CallToolResult | InputRequiredResult>

/**
 * Makes SDK servers for one set of tools, or puts the handlers on one that the host made.
 *
 * `shutDown` answers calls from now on with the words that the server stops, gives those of `which` their grace, and waits
 * until every request that is being handled has been answered. `report` logs what the SDK reports out of band.
 */
export interface Bridge {
  readonly make: (connection: Connection) => Server
  readonly install: (server: Server, connection: Connection) => void
  readonly handler: (server: Server, connection: Connection) => CallHandler
  /** Answers a plain call of `FastLane`; none, if it is one for the SDK after all. */
  readonly plain: (
    call: FastLane.PlainCall,
    served: Registry.Served
  ) => Effect.Effect<Schema.JsonObject, ProtocolError> | undefined
  /** Whether a tool is there for whoever sends a request, asked before the SDK has read it. */
  readonly sees: (served: Registry.Served, sender: Sender) => Effect.Effect<boolean>
  readonly shutDown: (which: Calls.Which | "all") => Effect.Effect<void>
  readonly report: (error: unknown) => void
}

/** What a server of ours advertises. */
export const capabilities = {
  tools: { listChanged: true },
  experimental: { [Wire.factsCapability]: {} }
}

/** A server that says who it is, and serves nothing yet. */
export const bare = ({ instructions, name, version }: ServerInfo, settings: Settings.Settings): Server =>
  new Server(
    { name, version },
    {
      cacheHints: { "tools/list": { ttlMs: Duration.toMillis(settings.listTtl), cacheScope: settings.listScope } },
      ...(instructions === undefined || instructions === "" ? {} : { instructions })
    }
  )

/** The bridge of this server layer. */
export const bridge = (info: ServerInfo): Effect.Effect<Bridge, never, Calls.Calls | Registry.Registry> =>
  Effect.gen(function* () {
    const calls = yield* Calls.Calls
    const registry = yield* Registry.Registry
    const settings = yield* Settings.Settings
    const around = yield* HostContext.capture
    const hostOf = HostContext.make(around)
    let sessions = 0
    let handling = 0
    let stopping = false
    const whenIdle = Latch.makeUnsafe(true)

    const begin = () => {
      handling++
      whenIdle.closeUnsafe()
    }
    const done = () => {
      handling--
      if (handling === 0) whenIdle.openUnsafe()
    }

    const report = (error: unknown): void => {
      Effect.runForkWith(around)(Effect.logDebug("the MCP SDK reports", error))
    }

    const visibility = yield* ToolVisibility.ToolVisibility

    /** Those of these tools that the session sees. */
    const visible = (
      served: ReadonlyArray<Registry.Served>
    ): Effect.Effect<ReadonlyArray<Registry.Served>, never, McpSession.McpSession> =>
      visibility === ToolVisibility.all
        ? Effect.succeed(served)
        : Effect.flatMap(McpSession.current, (session) =>
            Effect.filter(served, ({ tool }) => visibility.isVisible(tool, session))
          )

    /** The tool of this name, as far as the session sees it. */
    const lookUp = (name: string): Effect.Effect<Registry.Served | undefined, never, McpSession.McpSession> => {
      const served = registry.get(name)
      return served === undefined ? Effect.succeed(undefined) : Effect.map(visible([served]), ([seen]) => seen)
    }

    const ownSession = (principal: string | undefined, client: () => McpSession.Client): PrincipalSessions.Held => {
      const scope = Scope.makeUnsafe()
      const key = `request_${++sessions}`
      const session = McpSession.make({ id: "", key, lifetime: "request", principal, client, scope })
      return { session, ended: Scope.close(scope, Exit.void) }
    }

    /** The session of a request: the connection's, its principal's, or one of its own. */
    const sessionOf = ({ client, principal, ...given }: Sender): Effect.Effect<PrincipalSessions.Held> => {
      if (given.session !== undefined) return Effect.succeed({ session: given.session, ended: Effect.void })
      if (given.sessionOf !== undefined && principal !== undefined) return given.sessionOf(principal, client())
      return Effect.succeed(ownSession(principal, client))
    }

    const sees: Bridge["sees"] = (served, sender) =>
      visibility === ToolVisibility.all
        ? Effect.succeed(true)
        : Effect.acquireUseRelease(
            sessionOf(sender),
            ({ session }) => visibility.isVisible(served.tool, session),
            ({ ended }) => ended
          )

    const make = (connection: Connection): Server => {
      // A listing that is not the same for all is for nobody else to keep (P69).
      const listScope = visibility === ToolVisibility.all ? settings.listScope : "private"
      const server = bare(info, { ...settings, listScope })
      server.registerCapabilities(capabilities)
      install(server, connection)
      return server
    }

    /** What handlers of one connection share. */
    const forConnection = (server: Server, connection: Connection) => {
      const clientOf = (request: ServerContext): McpSession.Client => {
        const client = readClient(server, request)
        connection.seen?.(client)
        return client
      }

      const sessionFor = (request: ServerContext) =>
        sessionOf({
          session: connection.session(request),
          sessionOf: connection.sessionOf,
          principal: connection.principal(request),
          client: () => clientOf(request)
        })

      /** Runs an effect for a request, in its session and under the span that it names as its parent. */
      const inSession = <A, E>(
        request: ServerContext,
        effect: Effect.Effect<A, E, McpSession.McpSession>
      ): Promise<A> => {
        const parent = Telemetry.parentOf(request.mcpReq._meta)
        return run(
          request,
          connection.context(request),
          Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(sessionFor(request), ({ ended, session }) => {
              const provided = restore(effect).pipe(
                McpSession.during(ended),
                Effect.provideService(McpSession.McpSession, session)
              )
              return Option.isSome(parent) ? Effect.withParentSpan(provided, parent.value) : provided
            })
          )
        )
      }

      const run = <A, E>(
        request: ServerContext,
        context: Context.Context<never>,
        effect: Effect.Effect<A, E>
      ): Promise<A> => {
        if (request.mcpReq.signal.aborted) return Promise.reject(cancelled)
        begin()
        return Effect.runPromiseExitWith(context)(effect, { signal: request.mcpReq.signal }).then((exit) => {
          done()
          if (Exit.isSuccess(exit)) return exit.value
          throw protocolErrorOf(exit.cause, around)
        })
      }

      return { clientOf, inSession }
    }

    const withdraw = (turn: Calls.Turn): Effect.Effect<unknown> =>
      turn._tag === "Asked" ? calls.interrupt({ state: turn.state }, "Cancelled") : Effect.void

    const handler = (server: Server, connection: Connection): CallHandler => {
      const { clientOf, inSession } = forConnection(server, connection)
      return (request, context) => {
        if (stopping) {
          const result = CallResult.stopped(request.params.name, StopReason.text("ServerClosed"))
          return Promise.resolve(toResult({ _tag: "Done", result }))
        }
        const client = clientOf(context)
        const session = connection.session(context)
        const canAsk = isLegacy(client) && session !== undefined
        const state = context.mcpReq.requestState()
        const attachment = Attachment.make(context, client, {
          canAsk,
          maxBacklog: settings.maxProgressBacklog,
          outgoing: Context.get(connection.context(context), Outgoing.Outgoing)
        })
        const principal = connection.principal(context)
        const binding: Calls.Binding = {
          ...(session === undefined ? {} : { session: session.key }),
          ...(principal === undefined ? {} : { principal })
        }
        const { name } = request.params
        const offered = isLegacy(client) && !canAsk ? {} : client.capabilities
        const turn: Effect.Effect<Calls.Turn, Refused, McpSession.McpSession> =
          typeof state === "string" && state !== ""
            ? calls.resume(
                {
                  tool: name,
                  state,
                  responses: responsesOf(context),
                  capabilities: offered,
                  binding,
                  request: context.mcpReq.id
                },
                attachment
              )
            : calls.start(
                {
                  tool: name,
                  // JSON, as the SDK has parsed it.
                  arguments: (request.params.arguments ?? {}) as Schema.Json,
                  binding,
                  protocolVersion: client.protocolVersion,
                  capabilities: offered,
                  responses: responsesOf(context)
                },
                attachment
              )
        return inSession(
          context,
          Effect.flatMap(lookUp(name), (seen): Effect.Effect<Calls.Turn, Refused, McpSession.McpSession> => {
            if (seen === undefined) return Effect.fail(new Calls.UnknownTool({ tool: name }))
            const lacking = ClientRequests.missing(seen.tool, offered)
            return lacking === undefined ? turn : refuseCapability(client, name, lacking)
          }).pipe(
            Effect.catch((error) =>
              error instanceof Calls.NotWaiting && error.why !== "unknown" && error.why !== "foreign"
                ? Effect.succeed<Calls.Turn>({ _tag: "Done", result: CallResult.notWaiting(name) })
                : Effect.fail(error)
            ),
            Effect.tapError((error) => Effect.logDebug(`refused a request for ${name}`, error)),
            // Nobody knows the state of a round that has not left: nobody could go on with its call.
            Effect.tap((given) => Effect.onInterrupt(attachment.flush, () => withdraw(given))),
            Effect.map(toResult)
          )
        )
      }
    }

    const plain: Bridge["plain"] = (call, served) => {
      const { capabilities: offered, name } = call
      if (stopping || visibility !== ToolVisibility.all || ClientRequests.missing(served.tool, offered) !== undefined) {
        return undefined
      }
      const client: McpSession.Client = {
        protocolVersion: Wire.firstModernVersion,
        capabilities: offered,
        info: call.info
      }
      const { ended, session } = ownSession(undefined, () => client)
      const parent = call.traceparent === undefined ? Option.none() : Telemetry.parentOf(call)
      const turn = calls
        .start(
          {
            tool: name,
            arguments: call.arguments,
            binding: {},
            protocolVersion: client.protocolVersion,
            capabilities: offered,
            responses: {}
          },
          Attachment.silent
        )
        .pipe(McpSession.during(ended), Effect.provideService(McpSession.McpSession, session))
      begin()
      return (Option.isSome(parent) ? Effect.withParentSpan(turn, parent.value) : turn).pipe(
        Effect.map((given) => toResult(given) as unknown as Schema.JsonObject), // plain data, both kinds
        Effect.catchCause((cause) => Effect.fail(protocolErrorOf(cause, around))),
        Effect.ensuring(Effect.sync(done))
      )
    }

    const install = (server: Server, connection: Connection): void => {
      const { clientOf, inSession } = forConnection(server, connection)

      server.setRequestHandler("tools/list", (request, context) =>
        inSession(
          context,
          visible(registry.list()).pipe(
            Effect.flatMap((served) => {
              const page = Listing.page(served, settings.toolsPerPage, request.params?.cursor)
              if (page === undefined) return Effect.fail(new InvalidCursor())
              const legacy = isLegacy(clientOf(context))
              const listed = {
                tools: page.items.map(({ definition }) => (legacy ? Definition.forLegacy(definition) : definition)),
                ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor })
              }
              // A definition is what MCP has; the SDK checks it again where it sends it.
              return Effect.succeed(listed as unknown as ListToolsResult)
            })
          )
        )
      )

      server.setRequestHandler("tools/call", handler(server, connection))

      server.setRequestHandler(
        Wire.factsMethod,
        {
          params: Schema.toStandardSchemaV1(Facts.Params),
          result: Schema.toStandardSchemaV1(Facts.Result)
        },
        (params, context) =>
          inSession(
            context,
            Effect.contextWith((current: Context.Context<McpSession.McpSession>) =>
              Effect.forEach(params.calls ?? [], (call) =>
                Effect.flatMap(lookUp(call.name), (seen) =>
                  Facts.answer(seen, call.name, call.arguments, (served) => hostOf(served.context, current))
                )
              )
            ).pipe(Effect.map((results) => ({ results })))
          )
      )
    }

    // What was handled is written by the SDK a moment later.
    const idle = Effect.andThen(
      whenIdle.await,
      Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    )

    const shutDown: Bridge["shutDown"] = (which) =>
      Effect.suspend(() => {
        stopping = true
        // What is not answered soon after that, a claim that never ends, is cut off.
        return Effect.andThen(
          calls.drain(which, "ServerClosed", settings.shutdownGrace),
          Effect.timeoutOption(idle, "1 second")
        )
      })

    return { make, install, handler, plain, sees, shutDown, report }
  })

/** The cursor was never given out. */
class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", {}) {
  override get message(): string {
    return "invalid cursor"
  }
}

const cancelled = new ProtocolError(ProtocolErrorCode.InternalError, "cancelled")

const isLegacy = (client: McpSession.Client): boolean => client.protocolVersion < Wire.firstModernVersion

/** Why a call has no turn. */
type Refused = Calls.NotWaiting | Calls.UnknownTool | MissingRequiredClientCapabilityError

/** The tool cannot do without what this client does not offer (P14). */
const refuseCapability = (
  client: McpSession.Client,
  tool: string,
  lacking: Schema.JsonObject
): Effect.Effect<Calls.Turn, MissingRequiredClientCapabilityError> => {
  const text = `tool ${JSON.stringify(tool)} needs a client that offers ${Object.keys(lacking).join(", ")}`
  return isLegacy(client)
    ? Effect.succeed({
        _tag: "Done",
        result: { isError: true, content: [{ type: "text", text: `mcpserver: ${text}` }] }
      })
    : Effect.fail(new MissingRequiredClientCapabilityError({ requiredCapabilities: lacking }, text))
}

/** The revision that a request says of itself, at 2026-07-28 and later. */
const statedVersion = ({ mcpReq }: ServerContext): string | undefined => {
  const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope
  const stated = envelope?.[PROTOCOL_VERSION_META_KEY]
  return typeof stated === "string" ? stated : undefined
}

/** Whether a request is one of 2026-07-28, which says everything of itself. */
export const isModern = (request: ServerContext): boolean => statedVersion(request) !== undefined

/** What a 2025 client said at `initialize`, or what this very request says (2026-07-28). */
const readClient = (server: Server, request: ServerContext): McpSession.Client => {
  const envelope: Readonly<Record<string, unknown>> | undefined = request.mcpReq.envelope
  const stated = statedVersion(request)
  return stated === undefined
    ? client(server.getNegotiatedProtocolVersion(), server.getClientCapabilities(), server.getClientVersion())
    : client(stated, envelope?.[CLIENT_CAPABILITIES_META_KEY], envelope?.[CLIENT_INFO_META_KEY])
}

/** What the body of a request says of its client, where the SDK has not read it: nothing, unless it is of 2026-07-28. */
export const clientOf = (message: unknown): McpSession.Client => {
  const params = Predicate.hasProperty(message, "params") ? message.params : undefined
  const meta = Predicate.hasProperty(params, "_meta") ? params._meta : undefined
  const said = (key: string) => (Predicate.hasProperty(meta, key) ? meta[key] : undefined)
  return client(said(PROTOCOL_VERSION_META_KEY), said(CLIENT_CAPABILITIES_META_KEY), said(CLIENT_INFO_META_KEY))
}

const client = (version: unknown, offered: unknown, info: unknown): McpSession.Client => ({
  protocolVersion: typeof version === "string" ? version : oldestVersion,
  // Parsed JSON, as the client sent it.
  capabilities: (offered ?? {}) as Schema.Json,
  info: Option.getOrUndefined(decodeInfo(info))
})

const decodeInfo = Schema.decodeUnknownOption(Schema.Struct({ name: Schema.String, version: Schema.String }))

// A request without a handshake and without an envelope: the SDK's own reading of it.
const oldestVersion = "2025-03-26"

/**
 * The client's answers. What the SDK dropped as no answer at all is an answer of another kind, not one that is missing.
 */
const responsesOf = ({ mcpReq }: ServerContext): Readonly<Record<string, Schema.Json>> => ({
  ...(mcpReq.inputResponses as Readonly<Record<string, Schema.Json>> | undefined), // parsed JSON
  ...Object.fromEntries((mcpReq.droppedInputResponseKeys ?? []).map((key) => [key, null]))
})

const toResult = (turn: Calls.Turn): CallToolResult | InputRequiredResult =>
  turn._tag === "Done"
    ? (turn.result as unknown as CallToolResult) // made by `CallResult`; the SDK checks it again where it sends it
    : ({
        resultType: "input_required",
        inputRequests: Object.fromEntries(turn.questions.map(({ id, method, params }) => [id, { method, params }])),
        requestState: turn.state
      } as unknown as InputRequiredResult) // likewise

/** What a client may read of a failure of the bridge: the texts of `Calls`, nothing of a defect. */
const protocolErrorOf = (cause: Cause.Cause<unknown>, around: Context.Context<never>): ProtocolError => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure instanceof MissingRequiredClientCapabilityError) return failure
  if (failure instanceof Calls.UnknownTool || failure instanceof Calls.NotWaiting || failure instanceof InvalidCursor) {
    return new ProtocolError(ProtocolErrorCode.InvalidParams, failure.message)
  }
  if (Cause.hasInterruptsOnly(cause)) return cancelled
  const reference = randomBytes(4).toString("hex")
  Effect.runForkWith(around)(Effect.logError(`request failed unexpectedly (${reference})`, cause))
  return new ProtocolError(ProtocolErrorCode.InternalError, `internal error (${reference})`)
}
