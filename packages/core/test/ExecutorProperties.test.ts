import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { textOf } from "./batches.ts"
import * as Executor from "@agenttool/core/Executor"
import * as Plan from "@agenttool/core/Plan"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"

// ----- batches, drawn at random

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Drawn = Schema.Struct({
  kind: Schema.Literals(["plain", "plain again", "shell", "container", "barrier", "missing"]),
  millis: between(0, 5),
  updates: between(0, 2),
  end: Schema.Literals(["value", "failure", "defect", "interrupt"])
})
const Batch = Schema.Struct({
  jobs: Schema.NonEmptyArray(Drawn).check(Schema.isMaxLength(12)),
  maxParallel: between(0, 6),
  // One batch in twelve of each: serial by its settings, serial by its first tool.
  twist: between(0, 11),
  busyMillis: Schema.Literals([0, 0, 1])
})
type Batch = typeof Batch.Type
type Drawn = typeof Drawn.Type

const isSerial = ({ jobs, maxParallel, twist }: Batch): boolean =>
  maxParallel === 1 || twist === 0 || (twist === 1 && jobs[0].kind !== "missing")

const optionsOf = ({ maxParallel, twist }: Batch) => ({ maxParallel, sequential: twist === 0 })

// ----- what happens in a batch: one line for each thing, in virtual time

interface Step {
  readonly what: "start" | "report" | "end" | "update" | "taken"
  readonly index: number
  readonly at: number
}

const toolOf = (
  drawn: Drawn,
  index: number,
  sequential: boolean,
  note: (what: Step["what"], index: number) => Effect.Effect<void>
) => {
  if (drawn.kind === "missing") return undefined
  const ends = {
    value: Effect.succeed(`value ${index}`),
    failure: Effect.fail(`failure ${index}`),
    defect: Effect.die(`defect ${index}`),
    interrupt: Effect.interrupt
  }
  const reports = Array.from({ length: drawn.updates }, () =>
    Effect.andThen(note("report", index), Progress.report("working"))
  )
  const tool = Tool.raw("tool", {
    execute: () =>
      Effect.gen(function* () {
        yield* note("start", index)
        for (const report of reports) yield* report
        yield* Effect.sleep(drawn.millis)
        return yield* ends[drawn.end]
      }).pipe(Effect.ensuring(note("end", index)))
  })
  if (sequential) return Tool.sequential(tool)
  if (drawn.kind === "barrier") return Tool.barrier(tool)
  return drawn.kind === "shell" || drawn.kind === "container" ? tool.pipe(Tool.resource(drawn.kind)) : tool
}

const textFor = (drawn: Drawn, index: number): string => {
  if (drawn.kind === "missing") return `Error: no tool for call "call_${index}"`
  switch (drawn.end) {
    case "value":
      return `value ${index}`
    case "failure":
      return `Error: failure ${index}`
    case "defect":
      return `Error: tool "tool" panicked: defect ${index}`
    case "interrupt":
      return `Error: tool "tool" was interrupted`
  }
}

const jobsOf = (batch: Batch, note: (what: Step["what"], index: number) => Effect.Effect<void>) =>
  batch.jobs.map((drawn, index) => ({
    tool: toolOf(drawn, index, batch.twist === 1 && index === 0, note),
    call: ToolCall.make({ id: `call_${index}`, tool: "tool" })
  }))

const tracing = () => {
  const steps: Array<Step> = []
  const note = (what: Step["what"], index: number) =>
    Effect.map(
      Effect.clockWith((clock) => clock.currentTimeMillis),
      (at) => void steps.push({ what, index, at })
    )
  return { steps, note }
}

/** Lets everything happen that needs no time. */
const settled = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    for (let seen = -1; seen !== steps.length; ) {
      seen = steps.length
      for (let i = 0; i < 8; i++) yield* Effect.yieldNow
    }
  })

/** Lets the time pass that a fiber takes: no batch here takes a minute. */
const inTime = <A, E>(fiber: Fiber.Fiber<A, E>, steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    // The clock waits for what a sleeper sets going when it wakes, not for what goes on before the first one sleeps.
    yield* settled(steps)
    yield* TestClock.adjust("1 minute")
    assert.isDefined(fiber.pollUnsafe(), "the batch hangs")
    return yield* Fiber.join(fiber)
  })

/** Runs a batch to its end, and says what happened. */
const played = (batch: Batch) =>
  Effect.gen(function* () {
    const { note, steps } = tracing()
    const began = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    const fiber = yield* Executor.stream(jobsOf(batch, note), optionsOf(batch)).pipe(
      Stream.tap(({ _tag, index }) => note(_tag === "Final" ? "taken" : "update", index)),
      Stream.tap(() => (batch.busyMillis === 0 ? Effect.void : Effect.sleep(batch.busyMillis))),
      Stream.runCollect,
      Effect.forkChild
    )
    const events = yield* inTime(fiber, steps)
    return { events, steps: steps.map((step) => ({ ...step, at: step.at - began })) }
  })

// ----- what must hold of it

type PlaceOf = (what: Step["what"], index: number) => number

/** Where a thing happened, -1 if it did not; what happens to a call once only. */
const placesOf = (steps: ReadonlyArray<Step>): PlaceOf => {
  const places = new Map<string, number>()
  for (const [place, { index, what }] of steps.entries()) {
    const name = `${what} ${index}`
    if (what !== "update" && what !== "report") assert.isFalse(places.has(name), `${name} comes once`)
    places.set(name, place)
  }
  return (what, index) => places.get(`${what} ${index}`) ?? -1
}

/** Whether the second of two calls has to wait for the first. */
const waits = (batch: Batch, first: Drawn, second: Drawn): boolean =>
  isSerial(batch) ||
  first.kind === "barrier" ||
  second.kind === "barrier" ||
  ((first.kind === "shell" || first.kind === "container") && first.kind === second.kind)

/** Each call has one final event, its last, with what became of it; its updates come before, none lost. */
const exactlyOnce = (batch: Batch, events: ReadonlyArray<Executor.Event<unknown>>, placeOf: PlaceOf) => {
  const { results } = Executor.outcome(events)
  assert.deepStrictEqual(results.map(textOf), batch.jobs.map(textFor))
  for (const [index, drawn] of batch.jobs.entries()) {
    const own = events.filter((event) => event.index === index).map((event) => event._tag)
    const updates = drawn.kind === "missing" ? 0 : drawn.updates
    assert.deepStrictEqual(own, [...Array.from({ length: updates }, () => "Progress"), "Final"])
    assert.strictEqual(placeOf("start", index) >= 0, drawn.kind !== "missing")
    assert.strictEqual(placeOf("end", index) >= 0, drawn.kind !== "missing")
  }
}

/** What has to wait starts when the final event of what it waits for was taken. */
const inOrder = (batch: Batch, placeOf: PlaceOf) => {
  for (const [second, drawn] of batch.jobs.entries()) {
    const starts = drawn.kind === "missing" ? placeOf("taken", second) : placeOf("start", second)
    for (const [first, before] of batch.jobs.slice(0, second).entries()) {
      if (waits(batch, before, drawn)) assert.isAbove(starts, placeOf("taken", first), `${second} after ${first}`)
    }
  }
}

/** No more calls hold a place than the bound says, from their start until their final event is taken. */
const withinBound = (batch: Batch, steps: ReadonlyArray<Step>) => {
  const bound = isSerial(batch) ? 1 : Plan.boundOf(batch.maxParallel)
  let placed = 0
  for (const { index, what } of steps) {
    if (what === "start") placed++
    if (what === "taken" && batch.jobs[index]?.kind !== "missing") placed--
    assert.isAtMost(placed, bound)
  }
}

/** A call that nothing holds back starts at once, while there is a place. */
const withoutDelay = (batch: Batch, steps: ReadonlyArray<Step>, placeOf: PlaceOf) => {
  // While its consumer is busy a batch is held up, as it should be.
  if (batch.busyMillis > 0) return
  const bound = isSerial(batch) ? 1 : Plan.boundOf(batch.maxParallel)
  const timeOf = (what: Step["what"], index: number) => steps[placeOf(what, index)]?.at ?? 0
  const spans = batch.jobs.flatMap(({ kind }, index) =>
    kind === "missing" ? [] : [{ from: timeOf("start", index), to: timeOf("taken", index) }]
  )
  for (const [index, drawn] of batch.jobs.entries()) {
    if (drawn.kind === "missing") continue
    const free = batch.jobs
      .slice(0, index)
      .reduce((at, before, first) => (waits(batch, before, drawn) ? Math.max(at, timeOf("taken", first)) : at), 0)
    for (let at = free; at < timeOf("start", index); at++) {
      const busy = spans.filter(({ from, to }) => from <= at && at < to).length
      assert.isAtLeast(busy, bound, `${index} could have started at ${at}`)
    }
  }
}

describe("Executor: any batch", () => {
  it.effect.prop(
    "C132, C133, C135, C136, C137, C152: in 10,000 random batches order, exclusion, bound and exactly one final hold",
    { batch: Batch },
    ({ batch }) =>
      Effect.gen(function* () {
        const { events, steps } = yield* played(batch)
        const placeOf = placesOf(steps)
        exactlyOnce(batch, events, placeOf)
        inOrder(batch, placeOf)
        withinBound(batch, steps)
        withoutDelay(batch, steps, placeOf)
      }),
    { timeout: 120_000, arbitrary: { runs: 10_000 } }
  )

  it.effect.prop(
    "C149, C150: in 1,000 random batches that are cancelled at any time every call has its final, and nothing starts or runs on",
    { batch: Batch, after: between(0, 12) },
    ({ after, batch }) =>
      Effect.gen(function* () {
        const { note, steps } = tracing()
        const began = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        const cancelWhen = Effect.sleep(after)
        const fiber = yield* Effect.forkChild(
          Executor.runJobs(jobsOf(batch, note), { ...optionsOf(batch), cancelWhen })
        )
        const { results } = yield* inTime(fiber, steps)
        const placeOf = placesOf(steps)
        assert.deepStrictEqual(
          results.map(({ index }) => index),
          batch.jobs.map((_, index) => index)
        )
        for (const [index, drawn] of batch.jobs.entries()) {
          const started = placeOf("start", index)
          assert.strictEqual(placeOf("end", index) >= 0, started >= 0)
          const text = textOf(results[index]!)
          if (text === "Error: the call was cancelled before it started") assert.strictEqual(started, -1)
          else if (text === "Error: the call was cancelled") assert.isAtLeast(started, 0)
          else assert.strictEqual(text, textFor(drawn, index))
        }
        for (const { at } of steps) assert.isAtMost(at - began, after)
      }),
    { timeout: 120_000, arbitrary: { runs: 1_000 } }
  )

  it.effect.prop(
    "C151: in 1,000 random batches whose consumer breaks off nothing runs on, and nothing more is given out",
    { batch: Batch, events: between(0, 6) },
    ({ batch, events }) =>
      Effect.gen(function* () {
        const { note, steps } = tracing()
        const fiber = yield* Executor.stream(jobsOf(batch, note), optionsOf(batch)).pipe(
          Stream.take(events),
          Stream.runCollect,
          Effect.tap(() => note("taken", -1)),
          Effect.forkChild
        )
        assert.isAtMost((yield* inTime(fiber, steps)).length, events)
        assert.strictEqual(steps.at(-1)?.index, -1)
        const placeOf = placesOf(steps)
        for (const index of batch.jobs.keys()) {
          assert.strictEqual(placeOf("end", index) >= 0, placeOf("start", index) >= 0)
        }
      }),
    { timeout: 120_000, arbitrary: { runs: 1_000 } }
  )
})
