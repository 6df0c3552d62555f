/**
 * A request that comes once more, since its response was lost (M54, P48): through the service, and once over the wire.
 */
import { Elicitor, Tool } from "@agenttool/core"
import type { Calls } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  accept,
  asked,
  errorText,
  goodText,
  leftOf,
  notWaiting,
  nothingLeft,
  questionsOf,
  reply,
  request,
  silent,
  start,
  whyOf
} from "./processes.ts"
import { goodText as goodTextOf, make, resultOf, sendCallAndWait, within } from "./support/Link.ts"

const text = (words: string) => accept({ text: words })

/** Asks two questions, works after each, and counts how often it has done so. */
const asking = () => {
  const done: Array<string> = []
  const ask = (question: string, work: number) =>
    Effect.gen(function* () {
      const answer = Option.getOrElse(yield* Elicitor.text(question), () => "nothing")
      yield* Effect.sleep(work)
      done.push(answer)
      return answer
    })
  const tool = Tool.make("ask", {
    parameters: Schema.Struct({ work: Schema.optionalKey(Schema.Int) }),
    execute: Effect.fn(function* ({ work = 0 }) {
      return `${yield* ask("One?", work)}, ${yield* ask("Two?", work)}`
    })
  })
  return { done, tool }
}

const binding = { session: "s1", principal: "ada" }
const first = request("ask", { binding })
const again = (state: string, words: string, rest: Partial<Calls.CallReply> = {}) =>
  reply("ask", state, { elicit_1: text(words) }, { binding, request: "r1", ...rest })

const withoutId = ({ request: _, ...rest }: Calls.CallReply): Calls.CallReply => rest

describe("a request that is repeated", () => {
  it.effect("M54: gets the same turn, a round or the result, and the tool is not run again", () =>
    Effect.gen(function* () {
      const { done, tool } = asking()
      const process = yield* start([tool])
      const { resume } = process.calls
      const one = asked(yield* process.calls.start(first, silent))
      const two = asked(yield* resume(again(one.state, "a"), silent))
      assert.deepStrictEqual(questionsOf(two), [["elicit_2", "Two?"]])
      assert.deepStrictEqual(yield* resume(again(one.state, "a"), silent), two)
      assert.deepStrictEqual(yield* resume(again(one.state, "a"), silent), two)
      assert.deepStrictEqual(done, ["a"])
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })

      const last = reply("ask", two.state, { elicit_2: text("b") }, { binding, request: 2 })
      const end = yield* resume(last, silent)
      assert.strictEqual(goodText(end), "a, b")
      assert.deepStrictEqual(yield* resume(last, silent), end)
      assert.deepStrictEqual(done, ["a", "b"])
      // The run has gone on from the turn before.
      assert.strictEqual(yield* whyOf(resume(again(one.state, "a"), silent)), "spent")
      yield* nothingLeft(process)
    })
  )

  it.effect("M54, M55: another id, another answer, another binding or another tool is a spent state", () =>
    Effect.gen(function* () {
      const { done, tool } = asking()
      const other = Tool.make("other", { execute: () => Effect.succeed("other") })
      const process = yield* start([tool, other])
      const { resume } = process.calls
      const one = asked(yield* process.calls.start(first, silent))
      const two = asked(yield* resume(again(one.state, "a"), silent))
      for (const differs of [
        again(one.state, "a", { request: "r2" }),
        withoutId(again(one.state, "a")),
        again(one.state, "b"),
        { ...again(one.state, "a"), responses: {} },
        { ...again(one.state, "a"), responses: { elicit_1: text("a"), elicit_2: text("b") } },
        again(one.state, "a", { binding: { ...binding, session: "s2" } }),
        again(one.state, "a", { binding: { ...binding, principal: "eve" } }),
        again(one.state, "a", { binding: {} }),
        { ...again(one.state, "a"), tool: "other" }
      ]) {
        assert.strictEqual(yield* whyOf(resume(differs, silent)), "spent", JSON.stringify(differs))
      }
      // A number is not its text.
      const numbered = reply("ask", two.state, { elicit_2: text("b") }, { binding, request: 7 })
      yield* resume(numbered, silent)
      assert.strictEqual(yield* whyOf(resume({ ...numbered, request: "7" }, silent)), "spent")
      assert.deepStrictEqual(done, ["a", "b"])
    })
  )

  it.effect("M54: is known for 60 seconds after its turn was given, however long the tool worked for it", () =>
    Effect.gen(function* () {
      const { done, tool } = asking()
      const { calls } = yield* start([tool])
      const one = asked(yield* calls.start({ ...first, arguments: { work: 300_000 } }, silent))
      const request = calls.resume(again(one.state, "a"), silent)
      const waiting = yield* Effect.forkChild(request)
      yield* TestClock.adjust("5 minutes")
      const two = yield* Fiber.join(waiting)
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(yield* request, two)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* whyOf(request), "spent")
      assert.deepStrictEqual(done, ["a"])
    })
  )

  it.effect("M54: waits for the same turn while the tool still works", () =>
    Effect.gen(function* () {
      const { done, tool } = asking()
      const process = yield* start([tool])
      const one = asked(yield* process.calls.start({ ...first, arguments: { work: 600_000 } }, silent))
      const request = process.calls.resume(again(one.state, "a"), silent)
      const waiting = yield* Effect.forkChild(request)
      yield* TestClock.adjust("5 minutes")
      const repeated = yield* Effect.forkChild(request)
      yield* TestClock.adjust("5 minutes")
      const two = yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* Fiber.join(repeated), two)
      assert.deepStrictEqual(done, ["a"])
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
    })
  )

  it.effect("M28, M55: does not wait for a call that was cancelled with the request before it", () =>
    Effect.gen(function* () {
      const { done, tool } = asking()
      const process = yield* start([tool])
      const one = asked(yield* process.calls.start({ ...first, arguments: { work: 600_000 } }, silent))
      const request = process.calls.resume(again(one.state, "a"), silent)
      const waiting = yield* Effect.forkChild(request)
      yield* TestClock.adjust("1 minute")
      const repeated = yield* Effect.forkChild(request)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(errorText(yield* Fiber.join(repeated)), notWaiting("ask"))
      assert.strictEqual(yield* whyOf(request), "spent")
      assert.deepStrictEqual(done, [])
      yield* nothingLeft(process)
    })
  )

  it.effect("M54: gives a result that came while nobody waited, once more", () =>
    Effect.gen(function* () {
      const tool = Tool.make("race", {
        execute: () => Effect.race(Elicitor.confirm("Sure?"), Effect.as(Effect.sleep("1 minute"), "too late"))
      })
      const process = yield* start([tool])
      const { state } = asked(yield* process.calls.start(request("race"), silent))
      yield* TestClock.adjust("1 minute")
      const late = reply("race", state, { elicit_1: accept({ confirm: true }) }, { request: 1 })
      const end = yield* process.calls.resume(late, silent)
      assert.strictEqual(goodText(end), "too late")
      assert.deepStrictEqual(yield* process.calls.resume(late, silent), end)
      yield* nothingLeft(process)
    })
  )

  it.effect("M54: is forgotten behind a thousand others", () =>
    Effect.gen(function* () {
      const tool = Tool.make("ask", { execute: () => Elicitor.confirm("Sure?") })
      const { calls } = yield* start([tool])
      const answer = (state: string) => reply("ask", state, { elicit_1: accept({ confirm: true }) }, { request: 1 })
      const one = asked(yield* calls.start(request("ask"), silent))
      yield* calls.resume(answer(one.state), silent)
      const go = Effect.flatMap(calls.start(request("ask"), silent), (turn) =>
        calls.resume(answer(asked(turn).state), silent)
      )
      yield* Effect.repeat(go, { times: 998 })
      assert.strictEqual(goodText(yield* calls.resume(answer(one.state), silent)), "true")
      yield* go
      assert.strictEqual(yield* whyOf(calls.resume(answer(one.state), silent)), "spent")
    })
  )

  it.live("M54: over the wire, with the same JSON-RPC id", () =>
    Effect.gen(function* () {
      const link = yield* make({ transport: "memory", era: "2026-07-28" })
      const round = resultOf(yield* sendCallAndWait(link, "ask", { build: "b1" }))
      const params = {
        name: "ask",
        arguments: { build: "b1" },
        requestState: round.requestState,
        inputResponses: { elicit_1: accept({ environment: "staging" }) }
      }
      const send = (id: string) =>
        Effect.flatMap(link.send("tools/call", params, { id }), ({ response }) => within("the response", response))
      const once = yield* send("same")
      assert.strictEqual(goodTextOf(once), "b1 to staging")
      assert.deepStrictEqual(yield* send("same"), once)
      assert.strictEqual(resultOf(yield* send("another")).isError, true)
      assert.strictEqual((yield* link.counts).runs.ask, 1)
    })
  )
})
