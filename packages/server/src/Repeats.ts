/**
 * The same request once more, after its response was lost: the last turn of a run is kept for a while, and given again to
 * the request that got it (P48). Nothing runs twice, and no other request gets it.
 */
import * as Clock from "effect/Clock"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Calls from "./Calls.ts"

/** How long a turn is kept after it was given, and how many at most: a turn may be as large as a result. */
const keptMillis = 60_000
const keptTurns = 1_000

/** The kept turns. */
export interface Repeats {
  /** The turn of exactly this request, if it is the last one of its run: one that was given, or one to come. */
  readonly find: (reply: Calls.CallReply) => Deferred.Deferred<Calls.Turn> | undefined
  /** A request waits for this turn. */
  readonly keep: (reply: Calls.CallReply, turn: Deferred.Deferred<Calls.Turn>) => void
  /** This state's turn has been given: the clock starts. */
  readonly given: (state: string) => void
  /** The run has gone on from this state's turn, or there will be none. */
  readonly forget: (state: string) => void
}

interface Entry {
  readonly key: string
  readonly turn: Deferred.Deferred<Calls.Turn>
}

/** Nothing kept yet. */
export const make: Effect.Effect<Repeats> = Effect.map(Clock.Clock, (clock) => {
  const awaited = new Map<string, Entry>()
  const kept = new Map<string, Entry & { readonly until: number }>()

  const sweep = (now: number): void => {
    for (const [state, { until }] of kept) {
      if (until > now && kept.size <= keptTurns) return
      kept.delete(state)
    }
  }

  return {
    find: (reply) => {
      sweep(clock.currentTimeMillisUnsafe())
      const entry = awaited.get(reply.state) ?? kept.get(reply.state)
      return entry !== undefined && entry.key === keyOf(reply) ? entry.turn : undefined
    },
    keep: (reply, turn) => {
      if (reply.request !== undefined) awaited.set(reply.state, { key: keyOf(reply), turn })
    },
    given: (state) => {
      const entry = awaited.get(state)
      if (entry === undefined) return
      awaited.delete(state)
      const now = clock.currentTimeMillisUnsafe()
      kept.set(state, { ...entry, until: now + keptMillis })
      sweep(now)
    },
    forget: (state) => {
      awaited.delete(state)
      kept.delete(state)
    }
  }
})

// Equal members in the same order: a client that repeats a request sends the bytes that it sent.
const keyOf = ({ binding, request, responses, tool }: Calls.CallReply): string =>
  JSON.stringify([request, tool, binding.session, binding.principal, responses])
