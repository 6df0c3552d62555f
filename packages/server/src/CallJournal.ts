/**
 * The past of calls that may go on in another process, should theirs be lost: a reference whose default keeps nothing.
 *
 * A run opens its journal at its first question or step, and records every answered round and every step before it goes
 * on. In another process the tool starts from its first line, gets what was recorded without asking or doing anything,
 * and is alive again at its first question without an answer. Only calls of per-request HTTP have a journal: the others
 * belong to a connection. A journal that dies ends the call, which another process may then go on with.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Calls from "./Calls.ts"

/** What is recorded: an answered round, or a step (`Steps.once`) and its value. */
export const Entry = Schema.Union([
  Schema.TaggedStruct("Round", {
    round: Schema.Int,
    questions: Schema.Array(Calls.InputRequest),
    responses: Schema.Record(Schema.String, Schema.Json)
  }),
  Schema.TaggedStruct("Step", { name: Schema.String, value: Schema.Json })
])
export type Entry = typeof Entry.Type

/** The past of a run that has been taken over. */
export interface Past {
  readonly epoch: number
  readonly request: Calls.CallRequest
  readonly entries: ReadonlyArray<Entry>
}

/**
 * A journal.
 *
 * - `open`: the run may be taken over from now on; its epoch is 0.
 * - `write`: atomic. `false` if that round or step is there already, or another process has taken the run over: a writer
 *   names the epoch in which it runs.
 * - `claim`: takes a run over, under the next epoch. None if it is unknown, ended, bound to someone else, or if `round` is
 *   neither the last answered one nor the next.
 * - `close`: the run has ended; nobody will take it over. Does nothing in an epoch that is over: a former owner that ends
 *   knows no better.
 */
export interface CallJournalService {
  readonly open: (runId: string, request: Calls.CallRequest) => Effect.Effect<void>
  readonly write: (runId: string, epoch: number, entry: Entry) => Effect.Effect<boolean>
  readonly claim: (
    runId: string,
    round: number,
    tool: string,
    binding: Calls.Binding
  ) => Effect.Effect<Option.Option<Past>>
  readonly close: (runId: string, epoch: number) => Effect.Effect<void>
}

/** Keeps nothing: the default. */
export const none: CallJournalService = {
  open: () => Effect.void,
  write: () => Effect.succeed(true),
  claim: () => Effect.succeed(Option.none()),
  close: () => Effect.void
}

/** The reference that holds the journal. */
export const CallJournal: Context.Reference<CallJournalService> = Context.Reference<CallJournalService>(
  "@agenttool/server/CallJournal",
  { defaultValue: () => none }
)
