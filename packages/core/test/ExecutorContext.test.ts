import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { inTime, jobsOf, texts } from "./batches.ts"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as Executor from "@agenttool/core/Executor"
import * as Progress from "@agenttool/core/Progress"
import * as Recorder from "@agenttool/core/Recorder"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"

const echo = Tool.raw("echo", { execute: (call) => Effect.succeed(call.arguments) })
const slow = Tool.raw("slow", { execute: () => Effect.as(Effect.sleep("60 millis"), "slow") })

describe("Executor: what a call finds in its context", () => {
  it.effect("C90, C92: every tool finds its own call, with every field as the job gave it", () =>
    Effect.gen(function* () {
      const seen: Array<Option.Option<ToolCall.Call>> = []
      const look = Effect.flatMap(ToolCall.option, (call) => Effect.sync(() => void seen.push(call)))
      const raw = Tool.raw("raw", { execute: () => look })
      const typed = Tool.make("typed", { execute: () => look })
      const jobs = [
        { tool: raw, call: ToolCall.make({ id: "a", tool: "raw", arguments: `{"x":1}`, idempotencyKey: "k1" }) },
        { tool: typed, call: ToolCall.make({ id: "b", tool: "typed" }) }
      ]
      yield* Executor.runJobs(jobs)
      assert.deepStrictEqual(seen, [Option.some(jobs[0]!.call), Option.some(jobs[1]!.call)])
    })
  )

  it.effect("C88: the idempotency key of a call reaches its tool, and is not its id", () =>
    Effect.gen(function* () {
      const key = Tool.raw("key", { execute: (call) => Effect.succeed(call.idempotencyKey ?? "none") })
      const outcome = yield* Executor.run(
        [key],
        [
          { id: "c1", name: "key", idempotencyKey: "k1" },
          { id: "c2", name: "key" }
        ]
      )
      assert.deepStrictEqual(texts(outcome), ["k1", "none"])
    })
  )

  it.effect("C93: what the harness has in the context survives: its elicitor, its services", () =>
    Effect.gen(function* () {
      class Disk extends Context.Service<Disk, string>()("test/Disk") {}
      const elicitor: Elicitor.ElicitorService = {
        ask: () =>
          Effect.map(ToolCall.option, (call) => ({ action: "accept", content: { by: Option.getOrThrow(call).id } }))
      }
      const asks = Tool.raw("asks", {
        execute: () => Effect.all([Elicitor.ask({ message: "Sure?" }), Disk])
      })
      const outcome = yield* Executor.runJobs(jobsOf(asks)).pipe(
        Effect.provideService(Elicitor.Elicitor, elicitor),
        Effect.provideService(Disk, "d")
      )
      assert.deepStrictEqual(texts(outcome), [`[{"action":"accept","content":{"by":"call_0"}},"d"]`])
    })
  )

  it.effect("C90: each call has a scope of its own, closed before its final event", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const scoped = Tool.raw("scoped", {
        execute: () => Effect.addFinalizer(() => Effect.sync(() => void log.push("released")))
      })
      yield* Stream.runForEach(Executor.stream(jobsOf(scoped)), (event) => Effect.sync(() => void log.push(event._tag)))
      assert.deepStrictEqual(log, ["released", "Final"])
    })
  )

  it.effect("C118, C145: one recorder serves several calls at once, and finds the call of each record", () =>
    Effect.gen(function* () {
      const records: Array<ReadonlyArray<string>> = []
      const recorder: Recorder.RecorderService = {
        write: (record) =>
          Effect.map(ToolCall.option, (call) => {
            records.push([Option.getOrThrow(call).id, record.ns, record.data])
          })
      }
      const shell = Tool.raw("shell", {
        execute: (call) =>
          call.id === "call_1"
            ? Effect.andThen(Recorder.write(ToolRecord.make("shell:group", { pgid: 4242 })), Effect.sleep("1 minute"))
            : Effect.sleep("1 minute")
      })
      const fiber = yield* Effect.forkChild(Executor.runJobs(jobsOf(shell, shell), { recorder }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(records, [["call_1", "shell:group", `{"pgid":4242}`]])
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect(
    "C145: a recorder of the executor takes the place of the one in the context, and without one that one stays",
    () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        const named = (name: string): Recorder.RecorderService => ({
          write: () => Effect.sync(() => void log.push(name))
        })
        const writes = Tool.raw("writes", { execute: () => Recorder.write(ToolRecord.make("a:b", {})) })
        const runs = (options?: Executor.Options) => Executor.runJobs(jobsOf(writes), options)
        yield* Effect.gen(function* () {
          yield* runs()
          yield* runs({ recorder: named("executor's") })
          yield* runs({ recorder: Recorder.none })
          yield* Effect.provide(runs(), Executor.layer({ recorder: named("settings'") }))
        }).pipe(Effect.provide(Recorder.layer(named("context's"))))
        assert.deepStrictEqual(log, ["context's", "executor's", "settings'"])
      })
  )
})

describe("Executor: progress", () => {
  const reports = (name: string, ...updates: ReadonlyArray<string>) =>
    Tool.raw(name, {
      execute: () =>
        Effect.as(
          Effect.forEach(updates, (text) => Effect.delay(Progress.report(text), "1 millis")),
          "done"
        )
    })

  it.effect("C108, C110, C137: updates come one at a time, in order, before the final event", () =>
    Effect.gen(function* () {
      const events = yield* inTime(Stream.runCollect(Executor.stream(jobsOf(reports("a", "1", "2", "3")))))
      assert.deepStrictEqual(
        events.map((event) => (event._tag === "Progress" ? event.update.output : "final")),
        ["1", "2", "3", "final"]
      )
    })
  )

  it.effect("C108: the numbers of an update travel in its details", () =>
    Effect.gen(function* () {
      const half = Tool.raw("half", {
        execute: () => Progress.report({ progress: 1, total: 2, message: "half way" })
      })
      const [event] = yield* Stream.runCollect(Executor.stream(jobsOf(half)))
      const info = event?._tag === "Progress" ? Progress.infoOf(event.update) : undefined
      assert.deepStrictEqual([info?.progress, info?.total, info?.message], [1, 2, "half way"])
    })
  )

  it.effect("C110: an update after the final event is dropped without an error", () =>
    Effect.gen(function* () {
      const late: Array<Effect.Effect<void>> = []
      const leaks = Tool.raw("leaks", {
        execute: () =>
          Effect.map(Progress.Progress, (progress) => void late.push(progress.update(ToolResult.text("late"))))
      })
      const exits: Array<string> = []
      const tags = yield* Executor.stream(jobsOf(leaks, slow)).pipe(
        Stream.tap(() => Effect.map(Effect.exit(late[0] ?? Effect.die("no update")), (exit) => exits.push(exit._tag))),
        Stream.map((event) => event._tag),
        Stream.runCollect,
        inTime
      )
      assert.deepStrictEqual(tags, ["Final", "Final"])
      assert.deepStrictEqual(exits, ["Success", "Success"])
    })
  )

  it.effect("C110: a detached fiber of a tool that has returned is not heard", () =>
    Effect.gen(function* () {
      const detaches = Tool.raw("detaches", {
        execute: () => Effect.asVoid(Effect.forkDetach(Effect.delay(Progress.report("late"), "10 millis")))
      })
      const events = yield* inTime(Stream.runCollect(Executor.stream(jobsOf(detaches, slow))))
      assert.deepStrictEqual(
        events.map((event) => event._tag),
        ["Final", "Final"]
      )
    })
  )

  it.effect("C138: a job's own listener hears each update right before its event is given out", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const heard = (update: ToolResult.ToolResult) => Effect.sync(() => void log.push(`heard ${update.output}`))
      const jobs = Executor.jobs(
        [reports("a", "1", "2")],
        [
          { id: "c1", name: "a", onUpdate: heard },
          { id: "c2", name: "nope", onUpdate: heard }
        ]
      )
      yield* Executor.stream(jobs).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => void log.push(event._tag === "Progress" ? `event ${event.update.output}` : event.call.id))
        ),
        inTime
      )
      assert.deepStrictEqual(log, ["c2", "heard 1", "event 1", "heard 2", "event 2", "c1"])
    })
  )

  it.effect("C138: two listeners are never called at once", () =>
    Effect.gen(function* () {
      let now = 0
      let most = 0
      const onUpdate = () =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            most = Math.max(most, ++now)
          }),
          () => Effect.sleep("5 millis"),
          () => Effect.sync(() => now--)
        )
      const calls = ["a", "b", "c"].map((id) => ({ id, name: "tool", onUpdate }))
      yield* inTime(Executor.run([reports("tool", "1", "2")], calls))
      assert.strictEqual(most, 1)
    })
  )

  it.effect("C111: a tool that has nothing to report sends none, and one without a listener reports to nobody", () =>
    Effect.gen(function* () {
      const events = yield* Stream.runCollect(Executor.stream(jobsOf(echo)))
      assert.strictEqual(events.length, 1)
      assert.deepStrictEqual(texts(yield* inTime(Executor.runJobs(jobsOf(reports("a", "1"))))), ["done"])
    })
  )

  it.effect("C137: a tool that reports faster than its consumer takes is held up, and loses nothing", () =>
    Effect.gen(function* () {
      let sent = 0
      const floods = Tool.raw("floods", {
        execute: () =>
          Effect.forEach(
            Array.from({ length: 500 }, (_, n) => n),
            (n) =>
              Effect.andThen(
                Progress.report(String(n)),
                Effect.sync(() => void sent++)
              ),
            { discard: true }
          )
      })
      const batch = yield* Executor.start(jobsOf(floods))
      yield* TestClock.adjust("1 second")
      assert.isBelow(sent, 100)
      const events = yield* Stream.runCollect(batch.events)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Progress" ? [event.update.output] : [])),
        Array.from({ length: 500 }, (_, n) => String(n))
      )
    })
  )
})
