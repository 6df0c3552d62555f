/**
 * Where parked runs are filed: by state, in the order of their deadlines, counted per owner.
 *
 * One fiber watches over all deadlines. Every run waits equally long, so the first one filed is the first one due.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"

/** The file. `owner` is what the bound per owner counts; the empty owner is not bounded. */
export interface Parked<A> {
  readonly get: (state: string) => A | undefined
  readonly add: (state: string, owner: string, run: A) => void
  readonly remove: (state: string) => void
  readonly hasRoom: (owner: string) => boolean
  readonly size: () => number
}

interface Entry<A> {
  readonly run: A
  readonly owner: string
  readonly deadline: number
}

/** A file whose runs are handed to `due` when nobody came back for them in time. `due` removes what it is given. */
export const make = <A>(options: {
  readonly abandonMillis: number
  readonly max: number
  readonly maxPerOwner: number
  readonly due: (run: A) => void
}): Effect.Effect<Parked<A>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const filed = new Map<string, Entry<A>>()
    const perOwner = new Map<string, number>()
    const some = Latch.makeUnsafe(false)

    yield* Effect.forkScoped(
      Effect.forever(
        Effect.suspend(() => {
          const [first] = filed.values()
          if (first === undefined) {
            some.closeUnsafe()
            return some.await
          }
          const left = first.deadline - clock.currentTimeMillisUnsafe()
          if (left > 0) return Effect.sleep(left)
          options.due(first.run)
          return Effect.void
        })
      )
    )

    const count = (owner: string, change: 1 | -1): void => {
      const counted = (perOwner.get(owner) ?? 0) + change
      if (counted === 0) perOwner.delete(owner)
      else perOwner.set(owner, counted)
    }

    return {
      get: (state) => filed.get(state)?.run,
      add: (state, owner, run) => {
        filed.set(state, { run, owner, deadline: clock.currentTimeMillisUnsafe() + options.abandonMillis })
        count(owner, 1)
        some.openUnsafe()
      },
      remove: (state) => {
        const entry = filed.get(state)
        if (entry !== undefined && filed.delete(state)) count(entry.owner, -1)
      },
      hasRoom: (owner) =>
        filed.size < options.max && (owner === "" || (perOwner.get(owner) ?? 0) < options.maxPerOwner),
      size: () => filed.size
    }
  })
