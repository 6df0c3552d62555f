/**
 * The listing of tools: its pages, and telling clients that it has changed, once for all changes of one moment (M10, P91).
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

/** One page of a list, and the cursor of the next one, if there is one. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | undefined
}

/**
 * The page that a cursor names, the first one without a cursor; `undefined` for a cursor that was never given out (P72).
 */
export const page = <A>(items: ReadonlyArray<A>, size: number, cursor: string | undefined): Page<A> | undefined => {
  const start = cursor === undefined ? 0 : startOf(cursor)
  // A list that has shrunk meanwhile has no such page any more: nothing is on it.
  if (start === undefined || start % size !== 0) return undefined
  const end = start + size
  return { items: items.slice(start, end), nextCursor: end < items.length ? cursorOf(end) : undefined }
}

const cursorOf = (start: number): string => Buffer.from(`tools:${start}`).toString("base64url")

const startOf = (cursor: string): number | undefined => {
  const start = Number(/^tools:([1-9]\d{0,9})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1])
  return Number.isSafeInteger(start) && cursorOf(start) === cursor ? start : undefined
}
