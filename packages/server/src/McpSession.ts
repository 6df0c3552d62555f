/**
 * The session that a call came on: a service that this edge gives to every tool it serves (M42–M45).
 *
 * | transport | one session lasts | `id` |
 * | --- | --- | --- |
 * | stdio, in memory | the connection | `""` |
 * | streamable HTTP with sessions (2025) | the MCP session | the negotiated id |
 * | streamable HTTP without sessions, and every 2026-07-28 request over HTTP | one request | `""` |
 *
 * Per-client state is keyed on the identity of the session value, never on its id.
 */
import * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"

/** Who the client says it is. It is self-reported: for display and logs only. */
export interface ClientInfo {
  readonly name: string
  readonly version: string
}

/** What a client has said of itself: in `initialize` (2025), or in its latest request (2026-07-28). */
export interface Client {
  readonly protocolVersion: string
  readonly capabilities: Schema.Json
  readonly info: ClientInfo | undefined
}

/**
 * A session.
 *
 * - `id`: the id that the transport negotiated, else `""`. For logs and records.
 * - `key`: a name for this session within the process, unique, never sent.
 * - `lifetime`: whether it lasts a connection (or an MCP session), as long as its principal sends requests (the setting
 *   `sessionPerPrincipal`), or one request and the call that it started.
 * - `principal`: whom the transport has authenticated, if it has.
 * - `client`: what the client has said of itself.
 * - `scope`, `memoMap`: where layers of the session live; see {@link provide}.
 */
export interface Session {
  readonly id: string
  readonly key: string
  readonly lifetime: "connection" | "principal" | "request"
  readonly principal: string | undefined
  readonly client: () => Client
  readonly scope: Scope.Closeable
  readonly memoMap: Layer.MemoMap
  /** The layers of the session, and the fibers that build or have built them. */
  readonly layers: Map<Layer.Any, Fiber.Fiber<unknown, unknown>>
}

/** The key of the session. */
export class McpSession extends Context.Service<McpSession, Session>()("@agenttool/server/McpSession") {}

/**
 * The session of the running call. A tool that uses it can only be served: running it directly does not compile unless a
 * session is provided.
 */
export const current: Effect.Effect<Session, never, McpSession> = Effect.service(McpSession)

/** The session of the running call; none outside of a served call. */
export const option: Effect.Effect<Option.Option<Session>> = Effect.serviceOption(McpSession)

/** The id of the running call's session; `""` without one, and outside of a served call. For logs and records (M44). */
export const id: Effect.Effect<string> = Effect.map(option, (session) =>
  session._tag === "Some" ? session.value.id : ""
)

/**
 * Gives a tool what a layer builds, built once per session, whichever tool of the session needs it first, and released
 * when the session ends.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { McpSession } from "@agenttool/server"
 * import { Context, Effect, Layer, Ref } from "effect"
 *
 * class Counter extends Context.Service<Counter, Ref.Ref<number>>()("Counter") {
 *   static readonly layer = Layer.effect(this, Ref.make(0))
 * }
 *
 * const count = Tool.make("count", {
 *   execute: () => Effect.flatMap(Effect.service(Counter), (ref) => Ref.updateAndGet(ref, (n) => n + 1))
 * }).pipe(McpSession.provide(Counter.layer))
 * ```
 */
export const provide =
  <ROut, E2, RIn>(layer: Layer.Layer<ROut, E2, RIn>) =>
  <E, R, Args, A>(self: Tool.Tool<E, R, Args, A>): Tool.Tool<E | E2, Exclude<R, ROut> | RIn | McpSession, Args, A> =>
    Tool.mapEffects(self, (effect) =>
      Effect.flatMap(Effect.service(McpSession), (session) =>
        Effect.flatMap(buildIn(session, layer), (built) => Effect.provideContext(effect, built))
      )
    )

// The building belongs to the session, not to the call that needs it first: a call that is interrupted meanwhile leaves
// no half-built layer to the others, and one that fails may be tried again by the next call.
const buildIn = <ROut, E, RIn>(
  session: Session,
  layer: Layer.Layer<ROut, E, RIn>
): Effect.Effect<Context.Context<ROut>, E, RIn> =>
  Effect.suspend(() => {
    const { layers, memoMap, scope } = session
    // The map holds, under a layer, the fiber that builds this very layer.
    const building = layers.get(layer) as Fiber.Fiber<Context.Context<ROut>, E> | undefined
    if (building !== undefined) return Fiber.join(building)
    return Effect.flatMap(Scope.fork(scope), (child) =>
      Layer.buildWithMemoMap(layer, memoMap, child).pipe(
        Effect.onExit((exit) => {
          if (Exit.isSuccess(exit)) return Effect.void
          layers.delete(layer)
          return Scope.close(child, exit)
        }),
        Effect.forkIn(scope),
        Effect.tap((fiber) => Effect.sync(() => layers.set(layer, fiber))),
        Effect.uninterruptible,
        Effect.flatMap(Fiber.join)
      )
    )
  })

/** What a run does when it has ended: with the session of one request ends what lives in it (M45). */
export const Ended: Context.Reference<Effect.Effect<void>> = Context.Reference<Effect.Effect<void>>(
  "@agenttool/server/McpSession/Ended",
  { defaultValue: () => Effect.void }
)

/** Told that a run was started, which does what is to be done at the end instead of the request. */
export const Kept: Context.Reference<() => void> = Context.Reference<() => void>("@agenttool/server/McpSession/Kept", {
  defaultValue: () => () => {}
})

/**
 * Runs a request in a session that ends with it, or with the run that it has started: however the request ends, and
 * wherever it is interrupted, one of the two ends it.
 */
export const during =
  (ended: Effect.Effect<void>) =>
  <A, E, R>(request: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      let kept = false
      const keep = () => {
        kept = true
      }
      return request.pipe(
        Effect.provideService(Ended, ended),
        Effect.provideService(Kept, keep),
        Effect.onExit(() => (kept ? Effect.void : ended))
      )
    })

/** Makes a session whose scope the caller closes. */
export const make = (options: {
  readonly id: string
  readonly key: string
  readonly lifetime: "connection" | "principal" | "request"
  readonly principal?: string | undefined
  readonly client: () => Client
  readonly scope: Scope.Closeable
}): Session => ({
  get id() {
    return options.id
  },
  key: options.key,
  lifetime: options.lifetime,
  principal: options.principal,
  client: options.client,
  scope: options.scope,
  memoMap: Layer.makeMemoMapUnsafe(),
  layers: new Map()
})
