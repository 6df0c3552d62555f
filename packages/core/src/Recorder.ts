/**
 * Where the records go that a tool writes while it runs (C116–C118).
 *
 * A reference: a tool writes without knowing whether anybody keeps what it writes. The default keeps nothing, and does
 * not even look at the value. `RecorderMemory`, `RecorderFile` and `RecorderSql` are recorders that keep it.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as ToolCall from "./ToolCall.ts"
import * as ToolRecord from "./ToolRecord.ts"

/** The recorder could not make a record durable. The tool decides whether that fails its call. */
export class RecorderError extends Schema.TaggedError<RecorderError>()("RecorderError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Unknown)
}) {}

/**
 * A recorder: returns when the record is durable. It runs for several calls at once and finds the call that a record
 * belongs to by `ToolCall.option`.
 */
export interface RecorderService {
  readonly write: (record: ToolRecord.ToolRecord) => Effect.Effect<void, RecorderError>
}

/** No recorder: the default, and what removes one that is there. */
export const none: RecorderService = { write: () => Effect.void }

/** The reference that holds the recorder. */
export const Recorder: Context.Reference<RecorderService> = Context.Reference<RecorderService>(
  "@agenttool/core/Recorder",
  { defaultValue: () => none }
)

/**
 * Writes a record now, and returns when it is durable. Without a recorder, and of `undefined`, it does nothing.
 *
 * @example
 * ```ts
 * import { Recorder, ToolRecord } from "@agenttool/core"
 *
 * const started = Recorder.write(ToolRecord.make("shell:process-group", { pgid: 4242 }))
 * ```
 */
export const write = (value: unknown): Effect.Effect<void, RecorderError | ToolRecord.RecordError> =>
  Effect.flatMap(Effect.service(Recorder), (recorder) =>
    recorder === none || value === undefined || value === null
      ? Effect.void
      : Effect.flatMap(ToolRecord.read(value), Option.match({ onNone: () => Effect.void, onSome: recorder.write }))
  )

/** Installs a recorder for everything that runs under it. */
export const layer = (recorder: RecorderService): Layer.Layer<never> => Layer.succeed(Recorder, recorder)

/**
 * A record as the recorders of this package keep it.
 *
 * - `time`: when it was written, in milliseconds since 1970.
 * - `call`, `tool`: the id of the call it belongs to and the name of its tool; both empty outside of a call.
 * - `ns`, `data`: the record; `data` is its JSON text, byte for byte.
 */
export const Entry = Schema.Struct({
  time: Schema.Finite,
  call: Schema.String,
  tool: Schema.String,
  ns: Schema.String,
  data: Schema.String
})
export interface Entry extends Schema.Schema.Type<typeof Entry> {}

/** The entry of a record that is written now, by the running call: what a recorder starts with. */
export const entry = (record: ToolRecord.ToolRecord): Effect.Effect<Entry> =>
  Effect.map(Effect.all([Clock.currentTimeMillis, ToolCall.option]), ([time, call]) => ({
    time,
    call: Option.isSome(call) ? call.value.id : "",
    tool: Option.isSome(call) ? call.value.tool : "",
    ns: record.ns,
    data: record.data
  }))
