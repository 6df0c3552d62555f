import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import * as Progress from "@agenttool/core/Progress"
import * as Recorder from "@agenttool/core/Recorder"
import * as RecorderMemory from "@agenttool/core/RecorderMemory"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"

const listening = () => {
  const updates: Array<ToolResult.ToolResult> = []
  const layer = Layer.succeed(Progress.Progress, {
    update: (update) => Effect.sync(() => void updates.push(update))
  })
  return { updates, layer }
}

describe("Progress", () => {
  it.effect("C108: an update has the form of a result; a text is its output", () =>
    Effect.gen(function* () {
      const { layer, updates } = listening()
      yield* Progress.report("looking around").pipe(Effect.provide(layer))
      assert.isTrue(ToolResult.isToolResult(updates[0]))
      assert.deepStrictEqual(updates, [ToolResult.text("looking around")])
    })
  )

  it.effect("C108: numbers travel in the details of an update, a message is its output", () =>
    Effect.gen(function* () {
      const { layer, updates } = listening()
      yield* Progress.report({ message: "uploading", progress: 1, total: 3 }).pipe(Effect.provide(layer))
      const update = updates[0] ?? ToolResult.text("")
      assert.strictEqual(ToolResult.textOf(update.output), "uploading")
      const info = Progress.infoOf(update)
      assert.deepStrictEqual([info?.progress, info?.total, info?.message], [1, 3, "uploading"])
    })
  )

  it.effect("C108: a result is the update, as it is", () =>
    Effect.gen(function* () {
      const { layer, updates } = listening()
      const result = ToolResult.text("nearly", { details: Progress.info({ progress: 2 }) })
      yield* Progress.report(result).pipe(Effect.provide(layer))
      assert.strictEqual(updates[0], result)
    })
  )

  it("C109: total and message may be absent, and without numbers there is no info at all", () => {
    const numbers = Progress.infoOf(Progress.toUpdate({ progress: 2 }))
    assert.strictEqual(numbers?.progress, 2)
    assert.isUndefined(numbers?.total)
    assert.isUndefined(numbers?.message)
    assert.strictEqual(Progress.toUpdate({ progress: 2 }).output, "")
    assert.isUndefined(Progress.infoOf(Progress.toUpdate("half way")))
    assert.isUndefined(Progress.infoOf(ToolResult.text("half way")))
    // Details that only look like numbers are a harness's own.
    assert.isUndefined(Progress.infoOf(ToolResult.text("half way", { details: { progress: 1, total: 2 } })))
  })

  it.effect("an update is taken before the tool goes on to the next", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const listener: Progress.ProgressService = {
        update: (update) =>
          Effect.gen(function* () {
            log.push(`begin ${ToolResult.textOf(update.output)}`)
            if (log.length === 1) yield* Deferred.await(gate)
            log.push(`end ${ToolResult.textOf(update.output)}`)
          })
      }
      const tool = Effect.gen(function* () {
        yield* Progress.report("1")
        yield* Progress.report("2")
        return "done"
      }).pipe(Effect.provideService(Progress.Progress, listener))
      const fiber = yield* Effect.forkChild(tool, { startImmediately: true })
      assert.deepStrictEqual(log, ["begin 1"])
      yield* Deferred.succeed(gate, undefined)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, ["begin 1", "end 1", "begin 2", "end 2"])
    })
  )

  it.effect("C111: a harness that wants no updates gives no listener, and reporting does nothing", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Progress.Progress, Progress.none)
      yield* Progress.report({ progress: 1, message: "nobody listens" })
    })
  )

  it.effect("C91: an update does nothing when there is no call and no listener", () =>
    Effect.gen(function* () {
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Progress.report("alone"))))
    })
  )

  it.effect("C90: what a tool finds without a harness: no call, no recorder, nobody who listens", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* ToolCall.option)._tag, "None")
      assert.strictEqual(yield* Recorder.Recorder, Recorder.none)
      assert.strictEqual(yield* Progress.Progress, Progress.none)
    })
  )

  it.effect("C90: call, recorder and listener on the context do not replace each other", () =>
    Effect.gen(function* () {
      const { layer, updates } = listening()
      const tool = Effect.gen(function* () {
        yield* Progress.report("working")
        yield* Recorder.write(ToolRecord.make("a:b", { n: 1 }))
        return (yield* ToolCall.current).id
      })
      const call = ToolCall.make({ id: "call_1", tool: "t" })
      const program = Effect.all([
        Effect.provide(Effect.provideService(tool, ToolCall.ToolCall, call), layer),
        Effect.provideService(Effect.provide(tool, layer), ToolCall.ToolCall, call)
      ])
      assert.deepStrictEqual(yield* program, ["call_1", "call_1"])
      assert.strictEqual(updates.length, 2)
      assert.deepStrictEqual(
        (yield* RecorderMemory.entries).map((entry) => entry.call),
        ["call_1", "call_1"]
      )
    }).pipe(Effect.provide(RecorderMemory.layer))
  )
})
