/**
 * The journal of one run: what it has recorded, and what was recorded of it before, if it has been taken over.
 */
import type * as Steps from "@agenttool/core/Steps"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Schema from "effect/Schema"
import type * as CallJournal from "./CallJournal.ts"
import type * as Calls from "./Calls.ts"

/** What a replayed question finds: the recorded answer, nothing, or that the tool no longer asks what it asked then. */
export type Replayed =
  | { readonly _tag: "Answer"; readonly response: Schema.Json }
  | { readonly _tag: "None" }
  | { readonly _tag: "Diverged" }

/** The journal of one run. `round` and `step` answer `false` when the run is no longer this process's. */
export interface RunJournal {
  readonly round: (
    round: number,
    questions: ReadonlyArray<Calls.InputRequest>,
    responses: Readonly<Record<string, Schema.Json>>
  ) => Effect.Effect<boolean>
  readonly replay: (question: Calls.InputRequest) => Replayed
  readonly steps: Steps.StepRunner
  /** The run has ended; `kept` leaves the journal for another process to go on. */
  readonly end: (kept: boolean) => Effect.Effect<void>
  /** How many rounds have been answered. */
  readonly rounds: number
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
  const answers = new Map<string, { readonly question: Calls.InputRequest; readonly response: Schema.Json }>()
  const values = new Map<string, Schema.Json>()
  let rounds = 0
  for (const entry of past?.entries ?? []) {
    if (entry._tag === "Step") values.set(entry.name, entry.value)
    else {
      rounds = Math.max(rounds, entry.round)
      for (const question of entry.questions) {
        const response = entry.responses[question.id]
        if (response !== undefined) answers.set(question.id, { question, response })
      }
    }
  }
  let opened = past !== undefined
  const open = Effect.suspend(() => {
    if (opened) return Effect.void
    opened = true
    return journal.open(runId, request)
  })
  const write = (entry: CallJournal.Entry) => Effect.andThen(open, journal.write(runId, epoch, entry))

  return {
    rounds,
    round: (round, questions, responses) => write({ _tag: "Round", round, questions, responses }),
    replay: (question) => {
      const recorded = answers.get(question.id)
      if (recorded === undefined) return { _tag: "None" }
      return recorded.question.method === question.method && Equal.equals(recorded.question.params, question.params)
        ? { _tag: "Answer", response: recorded.response }
        : { _tag: "Diverged" }
    },
    steps: {
      run: <A, E, R>(name: string, schema: Schema.Codec<A, Schema.Json>, effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const recorded = values.get(name)
          // A value that was recorded by the same schema, or a tool that was changed: then its call cannot go on.
          if (recorded !== undefined) return Effect.orDie(Schema.decodeUnknownEffect(schema)(recorded))
          return Effect.tap(effect, (value) =>
            Schema.encodeUnknownEffect(schema)(value).pipe(
              Effect.orDie,
              Effect.flatMap((json) => write({ _tag: "Step", name, value: json })),
              Effect.flatMap((mine): Effect.Effect<void> => (mine ? Effect.void : superseded))
            )
          )
        })
    },
    end: (kept) => (opened && !kept ? journal.close(runId) : Effect.void)
  }
}
