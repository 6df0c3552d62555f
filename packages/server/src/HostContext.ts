/**
 * What a served tool finds in its context, beside what belongs to its call: three layers, the later ones win.
 *
 * 1. what the host has put around the server,
 * 2. what was there when the tool was registered: the services that it needs,
 * 3. what the host has put around this very request, in its HTTP middleware.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"

/** The current context without what belongs to the building of layers alone. */
export const capture: Effect.Effect<Context.Context<never>> = Effect.map(
  Effect.context<never>(),
  (context) =>
    Context.omit(Scope.Scope, Layer.CurrentMemoMap)(context as Context.Context<Scope.Scope | Layer.CurrentMemoMap>) // may be there; omitting what is not does nothing
)

/** Puts together the context of a call: of its registration, and of its request. */
export type HostContext = (
  registered: Context.Context<never>,
  request: Context.Context<never>
) => Context.Context<never>

/**
 * Contexts of calls in a server around which this is. What is the same in every call of a registration is put together
 * once; what a request has in common with `around` was not put there for it.
 */
export const make = (around: Context.Context<never>): HostContext => {
  const grounds = new WeakMap<Context.Context<never>, Context.Context<never>>()
  return (registered, request) => {
    let ground = grounds.get(registered)
    if (ground === undefined) {
      ground = Context.merge(around, registered)
      grounds.set(registered, ground)
    }
    const merged = new Map<string, unknown>(ground.mapUnsafe)
    for (const [key, service] of request.mapUnsafe) {
      if (around.mapUnsafe.get(key) !== service) merged.set(key, service)
    }
    return Context.makeUnsafe(merged)
  }
}
