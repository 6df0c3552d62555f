/**
 * The same request once more, after its response was lost: the last turn of a run is kept for a while, and given again to
 * the request that got it (P48). Nothing runs twice, and no other request gets it.
 */
import * as Clock from "effect/Clock"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Calls from "./Calls.ts"

/** How long a turn is kept, and how many at most: a turn may be as large as a result. */
const keptMillis = 60_000
const keptTurns = 1_000

/** The kept turns. */
export interface Repeats {
  /** The turn of exactly this request, if it was the last one of its run. */
  readonly find: (reply: Calls.CallReply) => Deferred.Deferred<Calls.Turn> | undefined
  readonly keep: (reply: Calls.CallReply, turn: Deferred.Deferred<Calls.Turn>) => void
  /** The run has gone on from this state's turn. */
  readonly forget: (state: string) => void
}

/** Nothing kept yet. */
export const make: Effect.Effect<Repeats> = Effect.map(Clock.Clock, (clock) => {
  const kept = new Map<
    string,
    { readonly key: string; readonly turn: Deferred.Deferred<Calls.Turn>; readonly until: number }
  >()

  const sweep = (now: number): void => {
    for (const [state, { until }] of kept) {
      if (until > now && kept.size <= keptTurns) return
      kept.delete(state)
    }
  }

  return {
    find: (reply) => {
      sweep(clock.currentTimeMillisUnsafe())
      const entry = kept.get(reply.state)
      return entry !== undefined && entry.key === keyOf(reply) ? entry.turn : undefined
    },
    keep: (reply, turn) => {
      const now = clock.currentTimeMillisUnsafe()
      if (reply.request !== undefined) kept.set(reply.state, { key: keyOf(reply), turn, until: now + keptMillis })
      sweep(now)
    },
    forget: (state) => {
      kept.delete(state)
    }
  }
})

// Equal members in the same order: a client that repeats a request sends the bytes that it sent.
const keyOf = ({ binding, request, responses, tool }: Calls.CallReply): string =>
  JSON.stringify([request, tool, binding.session, binding.principal, responses])
