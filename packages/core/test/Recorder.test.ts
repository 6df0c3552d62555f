import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Recorder from "@agenttool/core/Recorder"
import * as RecorderMemory from "@agenttool/core/RecorderMemory"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"

const group = (pgid: number) => ToolRecord.make("shell:process-group", { pgid })
const inCall = (id: string, tool = "bash") => Effect.provideService(ToolCall.ToolCall, ToolCall.make({ id, tool }))
const collecting = () => {
  const written: Array<ToolRecord.ToolRecord> = []
  const recorder: Recorder.RecorderService = { write: (record) => Effect.sync(() => void written.push(record)) }
  return { written, layer: Recorder.layer(recorder) }
}

// Reading it fails the test: stands for "is not even looked at".
const untouchable = {
  get [ToolRecord.namespace](): string {
    throw new Error("looked at")
  }
}

describe("Recorder", () => {
  it.effect("C90: without a harness there is no recorder, and writing does nothing", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Recorder.Recorder, Recorder.none)
      yield* Recorder.write(group(1))
    })
  )

  it.effect("C116: a record left at the end is read from the details of the result, also of a failed call", () =>
    Effect.gen(function* () {
      const record = Option.some({ ns: "shell:process-group", data: '{"pgid":1}' })
      const result = ToolResult.text("done", { details: group(1) })
      assert.deepStrictEqual(yield* ToolRecord.read(result.details), record)
      const failure = new ToolError.ToolFailure({ message: "killed", details: group(1) })
      assert.deepStrictEqual(yield* ToolRecord.read(ToolError.detailsOf(failure)), record)
    })
  )

  it.effect("C116: a record written during the call is there while the call still runs", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const tool = Effect.andThen(Recorder.write(group(4242)), Deferred.await(gate)).pipe(inCall("call_1"))
      const fiber = yield* Effect.forkChild(tool, { startImmediately: true })
      assert.deepStrictEqual(
        (yield* RecorderMemory.entries).map(({ call, ns, data }) => [call, ns, data]),
        [["call_1", "shell:process-group", '{"pgid":4242}']]
      )
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(RecorderMemory.layer))
  )

  it.effect("C117.1: without a recorder the value is not even looked at", () =>
    Effect.gen(function* () {
      yield* Recorder.write(untouchable)
      yield* Recorder.write(ToolRecord.make("", {}))
      // The same value under a recorder is looked at, so the two lines above can fail.
      const seen = yield* Effect.exit(Effect.provide(Recorder.write(untouchable), collecting().layer))
      assert.isTrue(Exit.hasDies(seen))
    })
  )

  it.effect("C117.2: without a value nothing happens", () =>
    Effect.gen(function* () {
      const { layer, written } = collecting()
      yield* Recorder.write(undefined).pipe(Effect.andThen(Recorder.write(null)), Effect.provide(layer))
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("C117.3: a value that cannot be recorded fails the write, and the recorder is not called", () =>
    Effect.gen(function* () {
      const { layer, written } = collecting()
      const write = (value: unknown) => Effect.flip(Effect.provide(Recorder.write(value), layer))
      assert.strictEqual((yield* write(ToolRecord.make("", {})))._tag, "RecordError")
      const error = yield* write(ToolRecord.make("a:b", { big: 1n }))
      assert.match(error.message, /^agenttool: record a:b: /)
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("C117.3: a value that is not recordable writes nothing and is no error", () =>
    Effect.gen(function* () {
      const { layer, written } = collecting()
      yield* Effect.provide(Recorder.write({ pgid: 1 }), layer)
      assert.deepStrictEqual(written, [])
    })
  )

  it.effect("C117.4: the write returns when the recorder has, and runs under the context of the tool", () =>
    Effect.gen(function* () {
      const Tenant = Context.Reference<string>("test/Tenant", { defaultValue: () => "nobody" })
      const durable = yield* Deferred.make<void>()
      const seen: Array<string> = []
      const recorder: Recorder.RecorderService = {
        write: (record) =>
          Effect.gen(function* () {
            seen.push(`${yield* Tenant} ${record.ns} ${record.data}`)
            yield* Deferred.await(durable)
          })
      }
      const fiber = yield* Recorder.write(group(1)).pipe(
        Effect.provideService(Tenant, "acme"),
        Effect.provide(Recorder.layer(recorder)),
        Effect.forkChild({ startImmediately: true })
      )
      assert.deepStrictEqual(seen, ['acme shell:process-group {"pgid":1}'])
      assert.isUndefined(fiber.pollUnsafe())
      yield* Deferred.succeed(durable, undefined)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
    })
  )

  it.effect("C117.5: the recorder's failure goes to the tool, which decides", () =>
    Effect.gen(function* () {
      const full = new Recorder.RecorderError({ message: "disk full" })
      const layer = Recorder.layer({ write: () => Effect.fail(full) })
      assert.strictEqual(yield* Effect.flip(Effect.provide(Recorder.write(group(1)), layer)), full)
      const lenient = Effect.as(Effect.ignore(Recorder.write(group(1))), "done")
      assert.strictEqual(yield* Effect.provide(lenient, layer), "done")
    })
  )

  it.effect("C118: of two calls at once each record is filed under the call that wrote it", () =>
    Effect.gen(function* () {
      const writing = Recorder.write(group(4242)).pipe(inCall("call_1"))
      const silent = Effect.void.pipe(inCall("call_2"))
      const both = [1, 2, 3].map((n) => Recorder.write(group(n)).pipe(inCall(`call_${n + 2}`, `tool_${n}`)))
      yield* Effect.all([writing, silent, ...both], { concurrency: "unbounded" })
      assert.sameDeepMembers(
        (yield* RecorderMemory.entries).map(({ call, tool, data }) => [call, tool, data]),
        [
          ["call_1", "bash", '{"pgid":4242}'],
          ["call_3", "tool_1", '{"pgid":1}'],
          ["call_4", "tool_2", '{"pgid":2}'],
          ["call_5", "tool_3", '{"pgid":3}']
        ]
      )
    }).pipe(Effect.provide(RecorderMemory.layer))
  )

  it.effect("C118: installing no recorder over one removes it", () =>
    Effect.gen(function* () {
      yield* Effect.provide(Recorder.write(untouchable), Recorder.layer(Recorder.none))
      assert.deepStrictEqual(yield* RecorderMemory.entries, [])
    }).pipe(Effect.provide(RecorderMemory.layer))
  )
})

describe("RecorderMemory", () => {
  it.effect("keeps time, call, tool and record, in the order written", () =>
    Effect.gen(function* () {
      yield* Recorder.write(group(1))
      yield* TestClock.setTime(1500)
      yield* Recorder.write(ToolRecord.fromJson("a:b", '{ "n": 1e2 }')).pipe(inCall("call_1", "count"))
      assert.deepStrictEqual(yield* RecorderMemory.entries, [
        { time: 0, call: "", tool: "", ns: "shell:process-group", data: '{"pgid":1}' },
        { time: 1500, call: "call_1", tool: "count", ns: "a:b", data: '{ "n": 1e2 }' }
      ])
    }).pipe(Effect.provide(RecorderMemory.layer))
  )

  it.effect("what was read does not change when more is written", () =>
    Effect.gen(function* () {
      const before = yield* RecorderMemory.entries
      yield* Recorder.write(group(1))
      assert.strictEqual(before.length, 0)
      assert.strictEqual((yield* RecorderMemory.entries).length, 1)
    }).pipe(Effect.provide(RecorderMemory.layer))
  )

  it.effect("two layers keep apart what is written under each", () =>
    Effect.gen(function* () {
      const one = Effect.andThen(Recorder.write(group(1)), RecorderMemory.entries)
      const counts = [
        (yield* Effect.provide(one, RecorderMemory.layer)).length,
        (yield* Effect.provide(one, Layer.fresh(RecorderMemory.layer))).length
      ]
      assert.deepStrictEqual(counts, [1, 1])
    })
  )

  it.effect("an entry survives its own schema", () =>
    Effect.gen(function* () {
      yield* Recorder.write(group(1)).pipe(inCall("call_1"))
      const entries = yield* RecorderMemory.entries
      const text = yield* Schema.encodeEffect(Schema.fromJsonString(Schema.Array(Recorder.Entry)))(entries)
      assert.deepStrictEqual(JSON.parse(text), entries)
    }).pipe(Effect.provide(RecorderMemory.layer))
  )
})
