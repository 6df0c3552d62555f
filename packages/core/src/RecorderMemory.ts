/**
 * A recorder that keeps records in memory and lets them be read: for tests, and for hosts that need nothing to outlive
 * the process. It never forgets an entry; for more than a test's worth take `RecorderFile` or `RecorderSql`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Recorder from "./Recorder.ts"

/** Reads what was written under the same layer, oldest first. */
export class RecorderMemory extends Context.Service<
  RecorderMemory,
  {
    readonly entries: Effect.Effect<ReadonlyArray<Recorder.Entry>>
  }
>()("@agenttool/core/RecorderMemory") {}

/**
 * Installs the recorder, and the service that reads what it was given.
 *
 * @example
 * ```ts
 * import { Recorder, ToolRecord } from "@agenttool/core"
 * import * as RecorderMemory from "@agenttool/core/RecorderMemory"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   yield* Recorder.write(ToolRecord.make("shell:process-group", { pgid: 4242 }))
 *   return yield* RecorderMemory.entries // [{ ns: "shell:process-group", data: '{"pgid":4242}', ... }]
 * }).pipe(Effect.provide(RecorderMemory.layer))
 * ```
 */
export const layer: Layer.Layer<RecorderMemory> = Layer.effectContext(
  Effect.map(Ref.make<ReadonlyArray<Recorder.Entry>>([]), (kept) =>
    Context.make(RecorderMemory, { entries: Ref.get(kept) }).pipe(
      Context.add(Recorder.Recorder, {
        write: (record) =>
          Effect.flatMap(Recorder.entry(record), (entry) => Ref.update(kept, (entries) => [...entries, entry]))
      })
    )
  )
)

/** What was written so far, oldest first. */
export const entries: Effect.Effect<ReadonlyArray<Recorder.Entry>, never, RecorderMemory> = RecorderMemory.use(
  (memory) => memory.entries
)
