/**
 * Journals that are slow, or break, and steps that are tried once more.
 */
import { Elicitor, Steps, Tool } from "@agenttool/core"
import { CallJournal } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  asked,
  deploy,
  deploying,
  errorText,
  goodText,
  notWaiting,
  nothingLeft,
  questionsOf,
  reply,
  request,
  resultOf,
  shared,
  silent,
  staging,
  start,
  yes
} from "./processes.ts"

describe("a journal that is slow, or breaks", () => {
  it.effect("M9: steps that run side by side wait until the journal is open", () =>
    Effect.gen(function* () {
      const { around, log, service } = shared()
      const slow: CallJournal.CallJournalService = {
        ...service,
        open: (...args) => Effect.delay(service.open(...args), "1 second")
      }
      const step = (name: string) => Effect.succeed(name).pipe(Steps.once(name, Schema.String))
      const tool = Tool.make("steps", {
        execute: () => Effect.map(Effect.all([step("a"), step("b")], { concurrency: 2 }), (all) => all.join())
      })
      const { calls } = yield* start([tool], {
        around: Layer.provideMerge(Layer.succeed(CallJournal.CallJournal, slow), around)
      })
      const turn = yield* Effect.forkChild(calls.start(request("steps"), silent))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(goodText(yield* Fiber.join(turn)), "a,b")
      assert.deepStrictEqual(log.toSorted(), ["close in 0: true", "open", "write a in 0: true", "write b in 0: true"])
      assert.strictEqual(log[0], "open")
    })
  )

  it.effect("P46: a call that is superseded at its very first step ends like any other", () =>
    Effect.gen(function* () {
      const { around, service } = shared()
      const lost: CallJournal.CallJournalService = { ...service, write: () => Effect.succeed(false) }
      const { done, tool } = deploying()
      const process = yield* start([tool], {
        around: Layer.provideMerge(Layer.succeed(CallJournal.CallJournal, lost), around)
      })
      assert.strictEqual(errorText(yield* process.calls.start(deploy, silent)), notWaiting("deploy"))
      assert.deepStrictEqual(done, ["plan", "Superseded"])
      yield* nothingLeft(process)
    })
  )

  it.effect("M9: a step that is tried once more, since what came after it failed, is done as it is elsewhere", () =>
    Effect.gen(function* () {
      const { around, log } = shared()
      let done = 0
      const tool = Tool.make("retry", {
        execute: () =>
          Effect.gen(function* () {
            const first = yield* Effect.sync(() => ++done).pipe(Steps.once("first", Schema.Finite))
            return yield* done === 1 && log.length < 4
              ? Effect.fail("later").pipe(Steps.once("second", Schema.Finite))
              : Effect.succeed(`${first}`)
          }).pipe(
            Effect.tapError(() => Effect.sync(() => void log.push("failed"))),
            Effect.retry({ times: 3 })
          )
      })
      const process = yield* start([tool], { around })
      assert.strictEqual(goodText(yield* process.calls.start(request("retry"), silent)), "1")
      assert.deepStrictEqual(log, ["open", "write first in 0: true", "failed", "failed", "close in 0: true"])
      assert.strictEqual(done, 1)
    })
  )

  it.effect("M61: a call that is cancelled while its journal is being opened leaves no journal behind", () =>
    Effect.gen(function* () {
      const { around, log, rows, service } = shared()
      const slow: CallJournal.CallJournalService = {
        ...service,
        open: (...args) => Effect.delay(service.open(...args), "1 second")
      }
      const tool = Tool.make("ask", { execute: () => Elicitor.confirm("?") })
      const process = yield* start([tool], {
        around: Layer.provideMerge(Layer.succeed(CallJournal.CallJournal, slow), around)
      })
      const call = yield* Effect.forkChild(process.calls.start(request("ask"), silent), { startImmediately: true })
      yield* TestClock.adjust("500 millis")
      yield* Effect.forkChild(Fiber.interrupt(call), { startImmediately: true })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(log, ["open", "close in 0: true"])
      assert.deepStrictEqual(rows(), [])
      yield* nothingLeft(process)
    })
  )

  for (const broken of ["open", "write", "claim", "close"] as const) {
    it.effect(`M61: a journal that breaks at ${broken} ends the call, and nobody waits for ever`, () =>
      Effect.gen(function* () {
        const { around, service } = shared()
        let down = true
        const breaking =
          <Args extends ReadonlyArray<unknown>, A>(f: (...args: Args) => Effect.Effect<A>) =>
          (...args: Args) =>
            down ? Effect.die("the journal is down") : f(...args)
        const { tool } = deploying()
        const process = yield* start([tool], {
          around: Layer.provideMerge(
            Layer.succeed(CallJournal.CallJournal, { ...service, [broken]: breaking(service[broken] as never) }),
            around
          )
        })
        const other = yield* start([tool], { around })
        const exit = yield* Effect.exit(
          Effect.gen(function* () {
            const one = asked(yield* (broken === "claim" ? other : process).calls.start(deploy, silent))
            if (broken === "claim") yield* other.close
            const two = asked(yield* process.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
            return yield* process.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
          })
        )
        // A result of the run that was ended, or a defect of the request: an answer in any case.
        if (Exit.isSuccess(exit)) resultOf(exit.value)
        yield* nothingLeft(process)
        down = false
        assert.strictEqual(asked(yield* process.calls.start(deploy, silent)).questions.length, 1)
      })
    )
  }

  it.effect("M55: a reply whose record fails does not spend the call: the client may come again", () =>
    Effect.gen(function* () {
      const { around, service } = shared()
      let down = false
      const { tool } = deploying()
      const process = yield* start([tool], {
        around: Layer.provideMerge(
          Layer.succeed(CallJournal.CallJournal, {
            ...service,
            write: (...args) => (down ? Effect.die("the journal is down") : service.write(...args))
          }),
          around
        )
      })
      const one = asked(yield* process.calls.start(deploy, silent))
      const again = process.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent)
      down = true
      assert.isTrue(Exit.hasDies(yield* Effect.exit(again)))
      yield* nothingLeft(process)
      down = false
      assert.deepStrictEqual(questionsOf(yield* again), [["elicit_2", "Sure of staging?"]])
    })
  )
})
