/**
 * The journal of one run: what it has recorded, and what was recorded of it before, if it has been taken over.
 *
 * A run that has been taken over replays its rounds one by one, where it had sent them: so questions are counted as they
 * were, also by a tool that asks several at a time.
 */
import type * as Steps from "@agenttool/core/Steps"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type * as CallJournal from "./CallJournal.ts"
import type * as Calls from "./Calls.ts"

/**
 * What the past says to questions that are asked now: the answers of the next recorded round (`last` if it is the last
 * one), that the tool no longer asks what it asked then, or nothing more.
 */
export type Replayed =
  | { readonly _tag: "Answers"; readonly responses: Readonly<Record<string, Schema.Json>>; readonly last: boolean }
  | { readonly _tag: "Diverged" }
  | { readonly _tag: "None" }

/** The journal of one run. */
export interface RunJournal {
  /** The run can be taken over from now on: before a question goes out, and before anything is recorded. */
  readonly open: Effect.Effect<void>
  /** Records an answered round. `false` when the run is no longer this process's. */
  readonly round: (
    round: number,
    questions: ReadonlyArray<Calls.InputRequest>,
    responses: Readonly<Record<string, Schema.Json>>
  ) => Effect.Effect<boolean>
  readonly replay: (questions: ReadonlyArray<Calls.InputRequest>) => Replayed
  readonly steps: Steps.StepRunner
  /** The run has ended; `kept` leaves the journal for another process to go on. */
  readonly end: (kept: boolean) => Effect.Effect<void>
}

/** The journal of a new run, or of one that was taken over with its past. `superseded` never returns. */
export const make = (
  journal: CallJournal.CallJournalService,
  runId: string,
  request: Calls.CallRequest,
  past: CallJournal.Past | undefined,
  superseded: Effect.Effect<never>
): RunJournal => {
  const epoch = past?.epoch ?? 0
  const entries = past?.entries ?? []
  const rounds = entries.filter((entry) => entry._tag === "Round").toSorted((left, right) => left.round - right.round)
  const values = new Map(
    entries.flatMap((entry) => (entry._tag === "Step" ? [[entry.name, entry.value] as const] : []))
  )

  // Opened once, and whoever comes meanwhile waits until it is.
  let opening = past === undefined ? undefined : Deferred.makeUnsafe<void>()
  if (opening !== undefined) Deferred.doneUnsafe(opening, Exit.void)
  const open = Effect.suspend(() => {
    if (opening !== undefined) return Deferred.await(opening)
    const opened = Deferred.makeUnsafe<void>()
    opening = opened
    return Effect.uninterruptible(Effect.onExit(journal.open(runId, request), (exit) => Deferred.done(opened, exit)))
  })
  const write = (entry: CallJournal.Entry) => Effect.andThen(open, journal.write(runId, epoch, entry))

  // Recorded by now, and not asked since the run was taken over.
  const recorded = new Map<
    string,
    { readonly question: Calls.InputRequest; readonly response: Schema.Json | undefined }
  >()
  let replayed = 0

  return {
    open,
    round: (round, questions, responses) => write({ _tag: "Round", round, questions, responses }),
    replay: (questions) => {
      const next = rounds[replayed]
      if (next === undefined) return { _tag: "None" }
      replayed++
      for (const question of next.questions) {
        const { id } = question
        recorded.set(id, { question, response: Object.hasOwn(next.responses, id) ? next.responses[id] : undefined })
      }
      const responses: Record<string, Schema.Json> = {}
      for (const question of questions) {
        const then = recorded.get(question.id)
        if (then === undefined) continue
        recorded.delete(question.id)
        if (!isSame(then.question, question)) return { _tag: "Diverged" }
        if (then.response !== undefined) responses[question.id] = then.response
      }
      return { _tag: "Answers", responses, last: replayed === rounds.length }
    },
    steps: {
      run: <A, E, R>(name: string, schema: Schema.Codec<A, Schema.Json>, effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const recordedValue = values.get(name)
          // A value that was recorded by the same schema, or a tool that was changed: then its call cannot go on.
          if (recordedValue !== undefined) return Effect.orDie(Schema.decodeUnknownEffect(schema)(recordedValue))
          return Effect.tap(effect, (value) =>
            Schema.encodeUnknownEffect(schema)(value).pipe(
              Effect.orDie,
              Effect.flatMap((json) =>
                Effect.flatMap(write({ _tag: "Step", name, value: json }), (mine): Effect.Effect<void> => {
                  if (!mine) return superseded
                  // Tried once more by what is around it, a step is as done as it is in another process.
                  values.set(name, json)
                  return Effect.void
                })
              )
            )
          )
        })
    },
    end: (kept) =>
      Effect.suspend(() =>
        opening === undefined || kept
          ? Effect.void
          : // One that is still being opened would be left open.
            Effect.andThen(Effect.exit(Deferred.await(opening)), journal.close(runId, epoch))
      )
  }
}

const isSame = (then: Calls.InputRequest, now: Calls.InputRequest): boolean =>
  then.method === now.method && Equal.equals(then.params, now.params)
