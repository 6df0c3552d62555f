import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { failureOf, inTime, jobsOf, textOf, texts, tracing } from "./batches.ts"
import * as Executor from "@agenttool/core/Executor"
import * as ExecutorError from "@agenttool/core/ExecutorError"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"

describe("Executor: stopping", () => {
  it.effect("C149: cancelled before it begins, each call has its final event and nothing has run", () =>
    Effect.gen(function* () {
      const { log, note, tool } = tracing()
      const jobs = jobsOf(tool("a", 1), tool("b", 1), undefined)
      const onStart = () => note("hook")
      const batch = yield* Executor.start(jobs, { onStart, maxParallel: 1 })
      yield* batch.cancel
      const events = yield* inTime(Stream.runCollect(batch.events))
      const outcome = yield* inTime(Executor.runJobs(jobs, { onStart, cancelWhen: Effect.void }))
      for (const final of [...Executor.outcome(events).results, ...outcome.results]) {
        const failure = failureOf(final)
        assert.instanceOf(failure, ExecutorError.Cancelled)
        assert.isFalse(failure.started)
      }
      assert.deepStrictEqual([events.length, outcome.results.length], [3, 3])
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("C149, C150: cancelled half way, what runs is interrupted and awaited, and every result is there", () =>
    Effect.gen(function* () {
      const { log, note, tool } = tracing()
      const stubborn = Tool.raw("stubborn", {
        execute: () =>
          Effect.onInterrupt(Effect.never, () => Effect.andThen(Effect.sleep("1 second"), note("released")))
      })
      const jobs = jobsOf(tool("a", 5), tool("b", 100), stubborn, tool("c", 2))
      const fiber = yield* Effect.forkChild(
        Executor.runJobs(jobs, { maxParallel: 3, cancelWhen: Effect.sleep("10 millis") })
      )
      yield* TestClock.adjust("10 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const outcome = yield* Fiber.join(fiber)
      assert.deepStrictEqual(log, ["0 +0", "0 +1", "5 -0", "5 +3", "7 -3", "10 x1", "1010 released"])
      assert.deepStrictEqual(texts(outcome), [
        "a",
        "Error: the call was cancelled",
        "Error: the call was cancelled",
        "c"
      ])
    })
  )

  it.effect("C144, C149: a hook that cancellation reaches is interrupted, and its tool is never called", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(tool("a", 1)), { onStart: () => Effect.never, cancelWhen: Effect.sleep("1 second") })
      )
      assert.deepStrictEqual(texts(outcome), ["Error: the call was cancelled before it started"])
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("C149: a call may cancel its own batch", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const stop = yield* Deferred.make<void>()
      const stops = Tool.raw("stops", { execute: () => Effect.andThen(Deferred.succeed(stop, void 0), Effect.never) })
      const outcome = yield* inTime(
        Executor.runJobs(jobsOf(stops, tool("a", 1)), { maxParallel: 1, cancelWhen: Deferred.await(stop) })
      )
      assert.deepStrictEqual(texts(outcome), [
        "Error: the call was cancelled",
        "Error: the call was cancelled before it started"
      ])
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("C150: cancelling twice, or when all is over, changes nothing", () =>
    Effect.gen(function* () {
      const { tool } = tracing()
      const batch = yield* Executor.start(jobsOf(tool("a", 5), tool("b", 100)))
      yield* TestClock.adjust("10 millis")
      yield* batch.cancel
      yield* batch.cancel
      const finals = Executor.outcome(yield* Stream.runCollect(batch.events)).results
      yield* batch.cancel
      assert.deepStrictEqual(finals.map(textOf), ["a", "Error: the call was cancelled"])
      assert.deepStrictEqual(yield* Stream.runCollect(batch.events), [])
    })
  )

  it.effect("C151: breaking off the stream interrupts the calls that run", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const jobs = jobsOf(tool("a", 1), tool("b", 1000), tool("c", 1000), tool("d", 1))
      const fiber = yield* Effect.forkChild(
        Executor.stream(jobs, { maxParallel: 3 }).pipe(Stream.take(1), Stream.runCollect)
      )
      yield* TestClock.adjust("1 millis")
      const events = fiber.pollUnsafe()
      assert.strictEqual(events?._tag, "Success")
      assert.deepStrictEqual(log.slice(0, 4), ["0 +0", "0 +1", "0 +2", "1 -0"])
      assert.includeMembers(log, ["1 x1", "1 x2"])
      assert.notInclude(log, "2 -3")
    })
  )

  it.effect("C151, C155: whoever breaks off waits for the finalizers of the tools", () =>
    Effect.gen(function* () {
      const { log, note, tool } = tracing()
      const keeps = Tool.raw("keeps", {
        execute: () =>
          Effect.acquireRelease(Effect.void, () =>
            Progress.report("too late").pipe(Effect.andThen(Effect.sleep("1 second")), Effect.andThen(note("released")))
          ).pipe(Effect.andThen(Effect.never))
      })
      const events = yield* Executor.stream(jobsOf(keeps, tool("a", 1))).pipe(
        Stream.take(1),
        Stream.runCollect,
        Effect.tap(() => note("over")),
        inTime
      )
      assert.deepStrictEqual(
        events.map((event) => event._tag),
        ["Final"]
      )
      assert.deepStrictEqual(log, ["0 +1", "1 -1", "1001 released", "1001 over"])
    })
  )

  it.effect("C153: interrupting a run interrupts its calls, and waits until they have stopped", () =>
    Effect.gen(function* () {
      const { log, note } = tracing()
      const keeps = Tool.raw("keeps", {
        execute: () =>
          Effect.onInterrupt(Effect.never, () => Effect.andThen(Effect.sleep("1 second"), note("released")))
      })
      const fiber = yield* Effect.forkChild(Executor.runJobs(jobsOf(keeps, keeps)))
      yield* TestClock.adjust("10 millis")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("500 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("500 millis")
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(log, ["1010 released", "1010 released"])
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause))
    })
  )

  it.effect("C150: what a call forked is stopped before its final event", () =>
    Effect.gen(function* () {
      const { log, note } = tracing()
      const forks = Tool.raw("forks", {
        execute: () =>
          Effect.andThen(
            Effect.forkChild(
              Effect.onInterrupt(Effect.never, () => note("child stopped")),
              { startImmediately: true }
            ),
            Effect.sleep("1 millis")
          )
      })
      yield* Executor.stream(jobsOf(forks)).pipe(
        Stream.runForEach((event) => note(event._tag)),
        inTime
      )
      assert.deepStrictEqual(log, ["1 child stopped", "1 Final"])
    })
  )

  it.effect("C155: an uninterruptible part of a tool runs to its end before the batch is over", () =>
    Effect.gen(function* () {
      const { log, note } = tracing()
      const commits = Tool.raw("commits", {
        execute: () => Effect.uninterruptible(Effect.andThen(Effect.sleep("1 second"), note("committed")))
      })
      const outcome = yield* inTime(Executor.runJobs(jobsOf(commits), { cancelWhen: Effect.sleep("10 millis") }))
      assert.deepStrictEqual(log, ["1000 committed"])
      const [failure] = outcome.results.map(failureOf)
      assert.instanceOf(failure, ExecutorError.Cancelled)
      assert.isTrue(failure.started)
    })
  )

  it.effect("C155: what a tool has when it is interrupted can be left as progress, before its final event", () =>
    Effect.gen(function* () {
      const partial = Tool.raw("partial", {
        execute: () => Effect.onInterrupt(Effect.never, () => Progress.report("3 of 5 files"))
      })
      const batch = yield* Executor.start(jobsOf(partial))
      yield* TestClock.adjust("10 millis")
      yield* batch.cancel
      const events = yield* Stream.runCollect(batch.events)
      assert.deepStrictEqual(
        events.map((event) => (event._tag === "Progress" ? event.update.output : textOf(event))),
        ["3 of 5 files", "Error: the call was cancelled"]
      )
    })
  )

  it.effect("C151: closing the scope of a batch stops it, and a consumer that waits is let go", () =>
    Effect.gen(function* () {
      const { log, tool } = tracing()
      const consumer = yield* Effect.scoped(
        Effect.gen(function* () {
          const batch = yield* Executor.start(jobsOf(tool("a", 1000)))
          const fiber = yield* Effect.forkDetach(Stream.runCollect(batch.events))
          yield* TestClock.adjust("10 millis")
          return fiber
        })
      )
      assert.deepStrictEqual(log, ["0 +0", "10 x0"])
      assert.deepStrictEqual(yield* Fiber.join(consumer), [])
    })
  )

  it.effect("C151: a tool that is held up where it cannot be interrupted is let go when its batch stops", () =>
    Effect.gen(function* () {
      const { log, note } = tracing()
      const floods = Tool.raw("floods", {
        execute: () =>
          Effect.forEach(Array.from({ length: 200 }), () => Progress.report("working"), { discard: true }).pipe(
            Effect.andThen(note("flooded")),
            Effect.uninterruptible
          )
      })
      yield* Effect.scoped(Effect.andThen(Executor.start(jobsOf(floods)), TestClock.adjust("1 second")))
      assert.deepStrictEqual(log, ["1000 flooded"])
    })
  )
})
