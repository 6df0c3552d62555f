import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { failureOf, inTime, jobsOf, texts, tracing } from "./batches.ts"
import * as Executor from "@agenttool/core/Executor"
import * as ExecutorError from "@agenttool/core/ExecutorError"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"

describe("Executor: order", () => {
  it.effect("C34, C132: a sequential tool makes its batch serial, in the model's order", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const read = tool("read", 10)
      yield* inTime(Executor.runJobs(jobsOf(read, Tool.sequential(tool("bash", 5)), read)))
      assert.deepStrictEqual(log, ["0 +0", "10 -0", "10 +1", "15 -1", "15 +2", "25 -2"])
    })
  )

  it.effect("C36, C135: calls that name one resource wait for each other in order, the others for nobody", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const bash = tool("bash", 10).pipe(Tool.resource("shell:session"))
      const restart = tool("restart", 1).pipe(Tool.resource("shell:session"))
      yield* inTime(Executor.runJobs(jobsOf(bash, tool("read", 3), restart, bash)))
      assert.deepStrictEqual(log, ["0 +0", "0 +1", "3 -1", "10 -0", "10 +2", "11 -2", "11 +3", "21 -3"])
    })
  )

  it.effect("C38: a resource works inside one batch only", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const one = Executor.runJobs(jobsOf(tool("bash", 10).pipe(Tool.resource("shell:session"))))
      yield* inTime(Effect.all([one, one], { concurrency: 2 }))
      assert.deepStrictEqual(log, ["0 +0", "0 +0", "10 -0", "10 -0"])
    })
  )

  it.effect("C40: a barrier runs alone, after the calls before it and before the calls after it", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const read = tool("read", 10)
      yield* inTime(Executor.runJobs(jobsOf(read, tool("peek", 4), Tool.barrier(tool("migrate", 5)), read, read)))
      assert.deepStrictEqual(log, [
        "0 +0",
        "0 +1",
        "4 -1",
        "10 -0",
        "10 +2",
        "15 -2",
        "15 +3",
        "15 +4",
        "25 -3",
        "25 -4"
      ])
    })
  )

  it.effect("C40, C146: a barrier waits for a call without a tool as well, and such a call for a barrier", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const barrier = Tool.barrier(tool("migrate", 5))
      const events = yield* inTime(Stream.runCollect(Executor.stream(jobsOf(undefined, barrier, undefined))))
      assert.deepStrictEqual(log, ["0 +1", "5 -1"])
      assert.deepStrictEqual(
        events.map((event) => event.index),
        [0, 1, 2]
      )
    })
  )

  it.effect("C41: a sequential barrier makes its batch serial", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const both = tool("both", 5).pipe(Tool.barrier, Tool.sequential)
      yield* inTime(Executor.runJobs(jobsOf(tool("read", 10), tool("peek", 4), both)))
      assert.deepStrictEqual(log, ["0 +0", "10 -0", "10 +1", "14 -1", "14 +2", "19 -2"])
    })
  )

  it.effect("C131, C135: chains run beside each other within the bound, and a place is filled at once", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      yield* inTime(
        Executor.runJobs(jobsOf(tool("a", 10), tool("b", 4), tool("c", 4), tool("d", 4)), { maxParallel: 2 })
      )
      assert.deepStrictEqual(log, ["0 +0", "0 +1", "4 -1", "4 +2", "8 -2", "8 +3", "10 -0", "12 -3"])
    })
  )

  it.effect("C136: a call keeps its place until its final event is taken", () =>
    Effect.gen(function* () {
      const { log, note, tool } = tracing()
      const batch = yield* Executor.start(jobsOf(tool("a", 10), tool("b", 10)), { sequential: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(log, ["0 +0", "10 -0"])
      const consumer = yield* Effect.forkChild(
        Stream.runForEach(batch.events, (event) =>
          Effect.andThen(note(`taken ${event.index}`), Effect.sleep("1 second"))
        )
      )
      yield* TestClock.adjust("500 millis")
      // The second call starts while the consumer is still busy with the first.
      assert.deepStrictEqual(log.slice(2), ["1000 taken 0", "1000 +1", "1010 -1"])
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(consumer)
      assert.deepStrictEqual(log.slice(5), ["2000 taken 1"])
    })
  )

  it.effect("C136: within the bound, calls that have ended hold their places too", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      yield* Executor.start(jobsOf(...Array.from({ length: 5 }, () => tool("a", 1))), { maxParallel: 3 })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        log.filter((line) => line.includes("+")),
        ["0 +0", "0 +1", "0 +2"]
      )
    })
  )
})

describe("Executor: the start hook", () => {
  it.effect("C142, C143: it is called when a call has its place and its turn, before the tool, once", () =>
    Effect.gen(function* () {
      const { log, note, tool } = tracing()
      const bash = tool("bash", 10).pipe(Tool.resource("shell:session"))
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(bash, bash, tool("read", 1)), {
          maxParallel: 1,
          onStart: ({ call, index, tool }) =>
            Effect.flatMap(ToolCall.current, (current) => {
              assert.strictEqual(current, call)
              return note(`start ${index} ${tool.name}`)
            })
        })
      )
      assert.deepStrictEqual(log, [
        "0 start 0 bash",
        "0 +0",
        "10 -0",
        "10 start 1 bash",
        "10 +1",
        "20 -1",
        "20 start 2 read",
        "20 +2",
        "21 -2"
      ])
      assert.deepStrictEqual(texts(outcome), ["bash", "bash", "read"])
    })
  )

  it.effect("C143: a refusal is the call's failure, exactly, and the tool does not run", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const refusal = { reason: "not today", message: "refused" }
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(tool("a", 1), tool("b", 1)), {
          onStart: ({ index }) => (index === 0 ? Effect.fail(refusal) : Effect.void)
        })
      )
      assert.strictEqual(outcome.results.map(failureOf)[0], refusal)
      assert.deepStrictEqual(texts(outcome), ["Error: refused", "b"])
      assert.deepStrictEqual(log, ["0 +1", "1 -1"])
    })
  )

  it.effect("C107, C143: a defect of the hook has its own text, and ends no other call", () =>
    Effect.gen(function* () {
      const { tool } = tracing()
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(tool("a", 1), tool("b", 1), tool("c", 1)), {
          onStart: ({ index }) => {
            if (index === 0) throw new Error("broken\nhook")
            return index === 1 ? Effect.die("oh no") : Effect.void
          }
        })
      )
      assert.deepStrictEqual(texts(outcome), [
        `Error: agenttool: OnStart for call "call_0" panicked: broken hook`,
        `Error: agenttool: OnStart for call "call_1" panicked: oh no`,
        "c"
      ])
      assert.instanceOf(failureOf(outcome.results[0]!), ExecutorError.StartPanicked)
      assert.notInstanceOf(failureOf(outcome.results[0]!), ToolError.ToolDefect)
    })
  )

  it.effect("C138, C143: what the hook reports is a progress event, before the tool has run", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const seen = yield* Executor.stream(jobsOf(tool("a", 1)), {
        onStart: () => Effect.andThen(Progress.report("asking"), Effect.sleep("5 millis"))
      }).pipe(
        Stream.map((event) => (event._tag === "Progress" ? `${event.update.output} ${log.length}` : event._tag)),
        Stream.runCollect,
        inTime
      )
      assert.deepStrictEqual(seen, ["asking 0", "Final"])
    })
  )

  it.effect("C144: a hook delays its own chain, nothing else, and hooks of several calls run at once", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const bash = tool("bash", 1).pipe(Tool.resource("shell:session"))
      yield* inTime(
        Executor.runJobs(jobsOf(bash, tool("read", 1), bash, tool("peek", 1)), {
          onStart: ({ index }) => Effect.sleep(index === 0 ? 100 : index === 2 ? 5 : 10)
        })
      )
      assert.deepStrictEqual(log, ["10 +1", "10 +3", "11 -1", "11 -3", "100 +0", "101 -0", "106 +2", "107 -2"])
    })
  )

  it.effect("C144, C146: it is not called for a call without a tool", () =>
    Effect.gen(function* () {
      const started: Array<number> = []
      const { tool } = tracing()
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(undefined, tool("a", 1)), {
          onStart: ({ index }) => Effect.sync(() => void started.push(index))
        })
      )
      assert.deepStrictEqual(started, [1])
      assert.deepStrictEqual(texts(outcome), [`Error: no tool for call "call_0"`, "a"])
    })
  )

  it.effect("C143: a hook from the settings serves every batch under them", () =>
    Effect.gen(function* () {
      const { tool } = tracing()
      const outcome = yield* Executor.runJobs(jobsOf(tool("a", 1))).pipe(
        Effect.provide(
          Executor.layer({ onStart: () => Effect.fail(new ToolError.ToolFailure({ message: "closed for today" })) })
        )
      )
      assert.deepStrictEqual(texts(outcome), ["Error: closed for today"])
    })
  )
})
