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

/** The context of a call. `request` is that of the request; what it has in common with `around` was not put there for it. */
export const merge = (
  around: Context.Context<never>,
  registered: Context.Context<never>,
  request: Context.Context<never>
): Context.Context<never> => {
  const merged = new Map<string, unknown>(around.mapUnsafe)
  for (const [key, service] of registered.mapUnsafe) merged.set(key, service)
  for (const [key, service] of request.mapUnsafe) {
    if (around.mapUnsafe.get(key) !== service) merged.set(key, service)
  }
  return Context.makeUnsafe(merged)
}
