/**
 * Tells clients that the list of tools has changed, once for all changes of one moment (M10, P91).
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Registry from "./Registry.ts"

/** Calls `notify` after the table has changed, until the scope closes. Building and listing never do. */
export const onChange = (notify: () => void): Effect.Effect<void, never, Registry.Registry | Scope.Scope> =>
  Effect.gen(function* () {
    const registry = yield* Registry.Registry
    const scope = yield* Effect.scope
    const context = yield* Effect.context<never>()
    let pending = false
    const told = Effect.andThen(
      Effect.yieldNow,
      Effect.sync(() => {
        pending = false
        notify()
      })
    )
    yield* registry.subscribe(() => {
      if (pending) return
      pending = true
      Effect.runForkWith(context)(Effect.forkIn(told, scope))
    })
  })
