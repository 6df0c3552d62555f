/**
 * How many calls run at once: in all and per owner, with a queue that has a bound. A call that is parked has given its
 * place back, and one that goes on takes a place without waiting: it has waited for its user already.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Settings from "./Settings.ts"

/** The places. The empty owner is bounded by all places alone. */
export interface Running {
  /**
   * Waits for a place, or says at once that there is none and the queue is full. Interrupting it leaves the queue. To be run
   * where nothing else can be interrupted, until the place is in good hands: the waiting can be all the same.
   */
  readonly enter: (owner: string) => Effect.Effect<boolean>
  /** Takes a place, whether there is one or not. */
  readonly take: (owner: string) => void
  readonly leave: (owner: string) => void
  readonly count: () => { readonly running: number; readonly queued: number }
}

/** All places are free. */
export const make = (settings: Settings.Settings): Running => {
  const perOwner = new Map<string, number>()
  const queue = new Set<{ readonly owner: string; readonly turn: Deferred.Deferred<void> }>()
  let running = 0

  const isFree = (owner: string): boolean =>
    running < settings.maxRunning && (owner === "" || (perOwner.get(owner) ?? 0) < settings.maxRunningPerSession)

  const take = (owner: string): void => {
    running++
    perOwner.set(owner, (perOwner.get(owner) ?? 0) + 1)
  }

  // The first one in the queue whose owner has a place: a busy owner does not hold up the others.
  const next = (): void => {
    for (const waiting of queue) {
      if (running >= settings.maxRunning) return
      if (!isFree(waiting.owner)) continue
      queue.delete(waiting)
      take(waiting.owner)
      Deferred.doneUnsafe(waiting.turn, Exit.void)
    }
  }

  const leave = (owner: string): void => {
    running--
    const left = (perOwner.get(owner) ?? 1) - 1
    if (left === 0) perOwner.delete(owner)
    else perOwner.set(owner, left)
    if (queue.size > 0) next()
  }

  return {
    take,
    leave,
    enter: (owner) =>
      Effect.suspend(() => {
        if (isFree(owner)) {
          take(owner)
          return Effect.succeed(true)
        }
        if (queue.size >= settings.maxQueued) return Effect.succeed(false)
        const waiting = { owner, turn: Deferred.makeUnsafe<void>() }
        queue.add(waiting)
        return Effect.as(
          Effect.onInterrupt(Effect.interruptible(Deferred.await(waiting.turn)), () =>
            Effect.sync(() => {
              // Interrupted in the moment in which its turn came: the place goes to the next one.
              if (!queue.delete(waiting)) leave(owner)
            })
          ),
          true
        )
      }),
    count: () => ({ running, queued: queue.size })
  }
}
