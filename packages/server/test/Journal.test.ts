/**
 * Calls that outlive their process: two servers without a transport share a journal and the names of states.
 */
import { Elicitor, Progress, Steps, Tool } from "@agenttool/core"
import { Calls, StopReason } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  accept,
  asked,
  deploy,
  deploying,
  errorText,
  goodText,
  leftOf,
  notWaiting,
  nothingLeft,
  questionsOf,
  reply,
  request,
  shared,
  silent,
  staging,
  start,
  Sure,
  whyOf,
  yes
} from "./processes.ts"

describe("a journal", () => {
  it.effect("P45, P6: a call whose process is lost goes on in another, and does and asks nothing twice", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const { done, tool } = deploying()
      const first = yield* start([tool], { around })
      const second = yield* start([tool], { around })
      const third = yield* start([tool], { around })

      const one = asked(yield* first.calls.start(deploy, silent))
      assert.deepStrictEqual(questionsOf(one), [["elicit_1", "Deploy b1 where?"]])
      yield* first.close
      assert.deepStrictEqual(done, ["plan", "ServerClosed"])
      assert.lengthOf(rows(), 1)

      const two = asked(yield* second.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
      assert.deepStrictEqual(questionsOf(two), [["elicit_2", "Sure of staging?"]])
      assert.deepStrictEqual(done, ["plan", "ServerClosed", "upload"])
      yield* leftOf(second, { attached: 0, parked: 1, fibers: 1 })
      yield* second.close

      const three = yield* third.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
      assert.strictEqual(goodText(three), "b1, plan 1, staging, upload 3, accept")
      assert.deepStrictEqual(done, ["plan", "ServerClosed", "upload", "ServerClosed"])
      assert.deepStrictEqual(rows(), [])
      yield* Effect.forEach([first, second, third], nothingLeft)
    })
  )

  it.effect("P45: a call goes on although it was parked at its first question and had done nothing", () =>
    Effect.gen(function* () {
      const { around, log, rows } = shared()
      const tool = Tool.make("greet", {
        execute: () =>
          Effect.map(
            Elicitor.text("Who?"),
            Option.getOrElse(() => "nobody")
          )
      })
      const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
      const { state } = asked(yield* first.calls.start(request("greet"), silent))
      assert.deepStrictEqual(log, ["open"])
      yield* first.close
      const turn = yield* second.calls.resume(reply("greet", state, { elicit_1: accept({ text: "Ada" }) }), silent)
      assert.strictEqual(goodText(turn), "Ada")
      assert.deepStrictEqual(log, ["open", "claim 1: true", "write 1 in 1: true", "close in 1: true"])
      assert.deepStrictEqual(rows(), [])
      yield* nothingLeft(second)
    })
  )

  it.effect("P46: a former owner that wakes up is superseded: its client hears that nobody waits any more", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const { done, tool } = deploying()
      const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
      const one = asked(yield* first.calls.start(deploy, silent))
      // The second process takes the call over, although the first one is alive.
      const two = asked(yield* second.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
      const late = first.calls.resume(
        reply("deploy", one.state, { elicit_1: accept({ environment: "production" }) }),
        silent
      )
      assert.strictEqual(yield* whyOf(late), "spent")
      yield* nothingLeft(first)
      assert.deepStrictEqual(done, ["plan", "upload", "Superseded"])
      // The owner has not noticed.
      const end = yield* second.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
      assert.strictEqual(goodText(end), "b1, plan 1, staging, upload 2, accept")
      assert.deepStrictEqual(rows(), [])
    })
  )

  it.effect("P46: a former owner in the middle of a step is superseded where it records it", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const tool = (seconds: number) =>
        Tool.make("slow", {
          execute: Effect.fn(function* () {
            yield* Elicitor.confirm("Start?")
            const by = yield* Effect.succeed(`in ${seconds} s`).pipe(
              Effect.delay(`${seconds} seconds`),
              Steps.once("work", Schema.String),
              // Nobody comes back from there, not even from where nothing may be interrupted.
              Effect.uninterruptible
            )
            yield* Elicitor.confirm("Stop?")
            return by
          })
        })
      const [first, second] = [yield* start([tool(60)], { around }), yield* start([tool(1)], { around })]
      const { state } = asked(yield* first.calls.start(request("slow"), silent))
      const waiting = yield* Effect.forkChild(first.calls.resume(reply("slow", state, { elicit_1: yes }), silent))
      yield* TestClock.adjust("500 millis")
      // The client has lost the response, and asks again where another process answers.
      const again = yield* Effect.forkChild(second.calls.resume(reply("slow", state, { elicit_1: yes }), silent))
      yield* TestClock.adjust("1 second")
      const two = asked(yield* Fiber.join(again))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(errorText(yield* Fiber.join(waiting)), notWaiting("slow"))
      yield* nothingLeft(first)
      assert.strictEqual(
        goodText(yield* second.calls.resume(reply("slow", two.state, { elicit_2: yes }), silent)),
        "in 1 s"
      )
      assert.deepStrictEqual(rows(), [])
    })
  )

  it.effect("P46: a former owner whose client never comes back leaves the journal to the new one", () =>
    Effect.gen(function* () {
      const { around, log, rows } = shared()
      const { tool } = deploying()
      const first = yield* start([tool], { around, settings: { abandonAfter: "5 minutes" } })
      const second = yield* start([tool], { around })
      const one = asked(yield* first.calls.start(deploy, silent))
      const two = asked(yield* second.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
      yield* TestClock.adjust("5 minutes")
      yield* nothingLeft(first)
      assert.include(log, "close in 0: false")
      assert.lengthOf(rows(), 1)
      const end = yield* second.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
      assert.match(goodText(end), /accept$/)
    })
  )

  it.effect("P48: a request that is repeated elsewhere gets the next turn, and its answers are ignored", () =>
    Effect.gen(function* () {
      const { around, log } = shared()
      const { done, tool } = deploying()
      const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
      const one = asked(yield* first.calls.start(deploy, silent))
      // Answered and recorded, but the response never arrives.
      yield* first.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent)
      yield* first.close
      const other = reply("deploy", one.state, { elicit_1: accept({ environment: "production" }), elicit_2: yes })
      const two = asked(yield* second.calls.resume(other, silent))
      assert.deepStrictEqual(questionsOf(two), [["elicit_2", "Sure of staging?"]])
      assert.deepStrictEqual(done, ["plan", "upload", "ServerClosed"])
      const end = yield* second.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
      assert.strictEqual(goodText(end), "b1, plan 1, staging, upload 2, accept")
      assert.deepStrictEqual(log.slice(-4), [
        "write upload in 0: true",
        "claim 1: true",
        "write 2 in 1: true",
        "close in 1: true"
      ])
    })
  )

  it.effect("P48: of two processes that take a call over at once one goes on, and nothing is done twice", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const { done, tool } = deploying()
      const [first, second, third] = [
        yield* start([tool], { around }),
        yield* start([tool], { around }),
        yield* start([tool], { around })
      ]
      const one = asked(yield* first.calls.start(deploy, silent))
      yield* first.close
      done.length = 0
      const take = (calls: Calls.Calls["Service"]) =>
        Effect.exit(calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
      const exits = yield* Effect.all([take(second.calls), take(third.calls)], { concurrency: "unbounded" })
      const turns = exits.filter(Exit.isSuccess).map(({ value }) => value)
      const rounds = turns.filter(({ _tag }) => _tag === "Asked")
      assert.lengthOf(rounds, 1)
      for (const turn of turns) if (turn._tag === "Done") assert.strictEqual(errorText(turn), notWaiting("deploy"))
      for (const exit of exits) {
        if (Exit.isFailure(exit))
          assert.instanceOf(Option.getOrThrow(Cause.findErrorOption(exit.cause)), Calls.NotWaiting)
      }
      assert.deepStrictEqual(done.toSorted(), ["Superseded", "upload"])
      const { state } = asked(rounds[0] ?? assert.fail())
      const owner = (yield* second.calls.count).parked === 1 ? second : third
      yield* nothingLeft(owner === second ? third : second)
      yield* owner.calls.resume(reply("deploy", state, { elicit_2: yes }), silent)
      assert.deepStrictEqual(done.toSorted(), ["Superseded", "upload"])
      assert.deepStrictEqual(rows(), [])
    })
  )

  it.effect("M54, M64: another principal, another tool or a made-up state takes nothing over", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const { tool } = deploying()
      const other = Tool.make("other", { execute: () => Elicitor.confirm("Other?") })
      const [first, second] = [yield* start([tool, other], { around }), yield* start([tool, other], { around })]
      const binding = { principal: "ada" }
      const { state } = asked(yield* first.calls.start({ ...deploy, binding }, silent))
      yield* first.close
      const before = rows()
      const answers = { elicit_1: staging }
      for (const [foreign, why] of [
        [reply("deploy", state, answers, { binding: { principal: "eve" } }), "spent"],
        [reply("deploy", state, answers), "spent"],
        [reply("deploy", state, answers, { binding: { principal: "ada", session: "s" } }), "spent"],
        [reply("other", state, answers, { binding }), "spent"],
        [reply("deploy", `${state}0`, answers, { binding }), "unknown"],
        [reply("deploy", state.replace(".1.", ".2."), answers, { binding }), "unknown"]
      ] as const) {
        assert.strictEqual(yield* whyOf(second.calls.resume(foreign, silent)), why)
        assert.deepStrictEqual(rows(), before)
      }
      const two = yield* second.calls.resume(reply("deploy", state, answers, { binding }), silent)
      assert.deepStrictEqual(questionsOf(two), [["elicit_2", "Sure of staging?"]])
    })
  )

  it.effect("P46: a tool that asks something else than it asked is ended, and answers no other question", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const stopped: Array<unknown> = []
      const asking = (message: string) =>
        Tool.make("ask", {
          execute: Effect.fn(
            function* () {
              yield* Elicitor.ask({ message, schema: Sure })
              yield* Elicitor.ask({ message: "And?", schema: Sure })
              return "went on"
            },
            Effect.onExit((exit) =>
              Effect.sync(() => {
                if (Exit.isFailure(exit)) stopped.push(Option.getOrUndefined(StopReason.of(exit.cause)))
              })
            )
          )
        })
      const first = yield* start([asking("Delete nothing?")], { around })
      const second = yield* start([asking("Delete everything?")], { around })
      const one = asked(yield* first.calls.start(request("ask"), silent))
      const two = asked(yield* first.calls.resume(reply("ask", one.state, { elicit_1: yes }), silent))
      yield* first.close
      stopped.length = 0
      const turn = yield* second.calls.resume(reply("ask", two.state, { elicit_2: yes }), silent)
      assert.strictEqual(errorText(turn), notWaiting("ask"))
      assert.deepStrictEqual(stopped, ["Diverged"])
      assert.deepStrictEqual(rows(), [])
      yield* nothingLeft(second)
    })
  )

  it.effect("P46: a call whose arguments the changed tool no longer takes is ended as well", () =>
    Effect.gen(function* () {
      const { around, rows } = shared()
      const asking = (type: string) =>
        Tool.raw("ask", {
          parameters: { type: "object", properties: { n: { type } } },
          execute: () => Effect.map(Elicitor.confirm("Sure?"), String)
        })
      const [first, second] = [
        yield* start([asking("number")], { around }),
        yield* start([asking("string")], { around })
      ]
      const { state } = asked(yield* first.calls.start(request("ask", { arguments: { n: 1 } }), silent))
      yield* first.close
      assert.strictEqual(yield* whyOf(second.calls.resume(reply("ask", state, { elicit_1: yes }), silent)), "diverged")
      assert.deepStrictEqual(rows(), [])
      yield* nothingLeft(second)
    })
  )

  it.effect("M53: questions that are asked together have the same ids wherever the call goes on", () =>
    Effect.gen(function* () {
      const { around } = shared()
      const twice = (name: string) =>
        Effect.gen(function* () {
          const one = yield* Elicitor.text(`${name} 1?`)
          const two = yield* Elicitor.text(`${name} 2?`)
          return [name, Option.getOrNull(one), Option.getOrNull(two)].join(" ")
        })
      const tool = Tool.make("both", {
        execute: () => Effect.map(Effect.all([twice("a"), twice("b")], { concurrency: 2 }), (all) => all.join(", "))
      })
      const text = (words: string) => accept({ text: words })
      const [first, second, third] = [
        yield* start([tool], { around }),
        yield* start([tool], { around }),
        yield* start([tool], { around })
      ]
      const one = asked(yield* first.calls.start(request("both"), silent))
      assert.deepStrictEqual(questionsOf(one), [
        ["elicit_1", "a 1?"],
        ["elicit_2", "b 1?"]
      ])
      yield* first.close
      // One answer is left out: its question is asked again (P53), beside the one that the other answer leads to.
      const two = asked(yield* second.calls.resume(reply("both", one.state, { elicit_1: text("A") }), silent))
      assert.deepStrictEqual(questionsOf(two), [
        ["elicit_2", "b 1?"],
        ["elicit_3", "a 2?"]
      ])
      yield* second.close
      const three = asked(
        yield* third.calls.resume(reply("both", two.state, { elicit_2: text("B"), elicit_3: text("AA") }), silent)
      )
      assert.deepStrictEqual(questionsOf(three), [["elicit_4", "b 2?"]])
      const end = yield* third.calls.resume(reply("both", three.state, { elicit_4: text("BB") }), silent)
      assert.strictEqual(goodText(end), "a A AA, b B BB")
    })
  )

  it.effect("M46, M57: requests are counted on, and a client that offers no more is not asked", () =>
    Effect.gen(function* () {
      const { around } = shared()
      const tool = Tool.make("count", {
        execute: Effect.fn(function* () {
          for (let n = 1; ; n++) {
            const answer = yield* Effect.result(Elicitor.ask({ message: `${n}?`, schema: Sure }))
            if (answer._tag === "Failure") return `${n}: ${answer.failure.message}`
            if (answer.success.action !== "accept") return `${n}: ${answer.success.action}`
          }
        })
      })
      const settings = { maxRequests: 3 }
      const go = Effect.fnUntraced(function* (last: Partial<Calls.CallReply>) {
        const [first, second] = [yield* start([tool], { around, settings }), yield* start([tool], { around, settings })]
        const one = asked(yield* first.calls.start(request("count"), silent))
        const two = asked(yield* first.calls.resume(reply("count", one.state, { elicit_1: yes }), silent))
        yield* first.close
        return goodText(yield* second.calls.resume(reply("count", two.state, { elicit_2: yes }, last), silent))
      })
      assert.match(yield* go({}), /^3: mcpserver: elicitation: the client makes 3 requests of a call at most/)
      assert.strictEqual(yield* go({ capabilities: {} }), "3: cancel")
    })
  )

  it.effect(
    "M46: a question that a request could not carry any more is answered the same wherever the call goes on",
    () =>
      Effect.gen(function* () {
        const { around } = shared()
        const { tool } = deploying()
        const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
        const both = Tool.make("two", {
          execute: Effect.fn(function* () {
            const [a, b] = yield* Effect.all(
              [
                Elicitor.ask({ message: "A?", schema: Sure }),
                Elicitor.ask({ message: "B?", url: "https://example.com" })
              ],
              { concurrency: 2 }
            )
            const c = yield* Elicitor.ask({ message: "C?", schema: Sure })
            return `${a.action} ${b.action} ${c.action}`
          })
        })
        const [third, fourth] = [yield* start([both], { around }), yield* start([both], { around })]
        const one = asked(yield* third.calls.start(request("two"), silent))
        const formOnly = { capabilities: { elicitation: { form: {} } } }
        const two = asked(yield* third.calls.resume(reply("two", one.state, { elicit_1: yes }, formOnly), silent))
        assert.deepStrictEqual(questionsOf(two), [["elicit_3", "C?"]])
        yield* third.close
        const end = yield* fourth.calls.resume(reply("two", two.state, { elicit_3: yes }), silent)
        assert.strictEqual(goodText(end), "accept cancel accept")
        yield* Effect.forEach([first, second, fourth], nothingLeft)
      })
  )

  it.effect("M73: the progress of a call that goes on elsewhere goes to the request that has it go on", () =>
    Effect.gen(function* () {
      const { around } = shared()
      const tool = Tool.make("report", {
        execute: Effect.fn(function* () {
          yield* Progress.report("before")
          yield* Elicitor.confirm("Go on?")
          yield* Progress.report("after")
          return "done"
        })
      })
      const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
      const { state } = asked(yield* first.calls.start(request("report"), silent))
      yield* first.close
      const seen: Array<Calls.ProgressUpdate> = []
      const turn = yield* second.calls.resume(reply("report", state, { elicit_1: yes }), {
        progress: (update) => Effect.sync(() => void seen.push(update))
      })
      assert.strictEqual(goodText(turn), "done")
      assert.deepStrictEqual(seen, [
        { progress: 1, message: "before" },
        { progress: 2, message: "after" }
      ])
    })
  )

  // ----- when there is a journal, and how long

  it.effect("M63: a run that asks nothing and has no steps opens no journal; nor does one of a session", () =>
    Effect.gen(function* () {
      const { around, log } = shared()
      const { tool } = deploying()
      const quiet = Tool.make("quiet", { execute: () => Effect.succeed("done") })
      const { calls, close } = yield* start([tool, quiet], { around })
      assert.strictEqual(goodText(yield* calls.start(request("quiet"), silent)), "done")
      // What the client offers decides: this one cannot be asked.
      const unasked = request("deploy", { arguments: { build: "b" }, capabilities: {}, binding: { session: "s" } })
      assert.strictEqual(goodText(yield* calls.start(unasked, silent)), "cancel")
      const bound = { binding: { session: "s" } }
      const one = asked(yield* calls.start({ ...deploy, ...bound }, silent))
      yield* calls.resume(reply("deploy", one.state, { elicit_1: staging }, bound), silent)
      yield* close
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("M61: the journal is left where the process or the tool goes, and closed at every other end", () =>
    Effect.gen(function* () {
      const ends = Effect.fnUntraced(function* (
        name: string,
        end: (owner: {
          readonly calls: Calls.Calls["Service"]
          readonly close: Effect.Effect<void>
          readonly state: string
        }) => Effect.Effect<unknown, unknown>
      ) {
        const { around, rows } = shared()
        const tool = Tool.make("ask", {
          execute: Effect.fn(function* () {
            if (!(yield* Elicitor.confirm("Go on?"))) return yield* Effect.fail("failed")
            return yield* Effect.never
          })
        })
        const { calls, close } = yield* start([tool], { around, settings: { removalGrace: 0 } })
        const { state } = asked(yield* calls.start(request("ask"), silent))
        assert.lengthOf(rows(), 1, name)
        yield* end({ calls, close, state })
        yield* nothingLeft({ calls, close })
        return rows().length === 1
      })
      const left = yield* Effect.all({
        serverClosed: ends("ServerClosed", ({ close }) => close),
        serverClosedWhileAttached: ends("ServerClosed, attached", ({ calls, close, state }) =>
          Effect.gen(function* () {
            const waiting = yield* Effect.forkChild(calls.resume(reply("ask", state, { elicit_1: yes }), silent))
            yield* Effect.yieldNow
            yield* close
            yield* Fiber.await(waiting)
          })
        ),
        toolRemoved: ends("ToolRemoved", ({ calls }) => calls.drain("all", "ToolRemoved", 0)),
        superseded: ends("Superseded", ({ calls, state }) => calls.interrupt({ state }, "Superseded")),
        failed: ends("failed", ({ calls, state }) =>
          calls
            .resume(reply("ask", state), silent)
            .pipe(
              Effect.andThen((turn) =>
                calls.resume(reply("ask", asked(turn).state, { elicit_1: { action: "decline" } }), silent)
              )
            )
        ),
        cancelled: ends("Cancelled", ({ calls, state }) =>
          Effect.gen(function* () {
            const waiting = yield* Effect.forkChild(calls.resume(reply("ask", state, { elicit_1: yes }), silent))
            yield* Effect.yieldNow
            yield* Fiber.interrupt(waiting)
          })
        ),
        abandoned: ends("Abandoned", () => TestClock.adjust("30 minutes"))
      })
      assert.deepStrictEqual(left, {
        serverClosed: true,
        serverClosedWhileAttached: true,
        toolRemoved: true,
        superseded: true,
        failed: false,
        cancelled: false,
        abandoned: false
      })
    })
  )

  it.effect("M54: a process never takes over what it has itself", () =>
    Effect.gen(function* () {
      const { around, log } = shared()
      const { done, tool } = deploying()
      const process = yield* start([tool], { around })
      const one = asked(yield* process.calls.start(deploy, silent))
      const two = asked(yield* process.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent))
      const before = [...log]
      assert.strictEqual(
        yield* whyOf(process.calls.resume(reply("deploy", one.state, { elicit_1: staging }), silent)),
        "spent"
      )
      assert.deepStrictEqual(log, before)
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
      const end = yield* process.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)
      assert.match(goodText(end), /accept$/)
      assert.deepStrictEqual(done, ["plan", "upload"])
      assert.strictEqual(
        yield* whyOf(process.calls.resume(reply("deploy", two.state, { elicit_2: yes }), silent)),
        "spent"
      )
    })
  )

  it.effect("P48: the request that has taken a call over may be repeated, too", () =>
    Effect.gen(function* () {
      const { around } = shared()
      const { done, tool } = deploying()
      const [first, second] = [yield* start([tool], { around }), yield* start([tool], { around })]
      const one = asked(yield* first.calls.start(deploy, silent))
      yield* first.close
      const again = second.calls.resume(reply("deploy", one.state, { elicit_1: staging }, { request: 7 }), silent)
      const two = yield* again
      assert.deepStrictEqual(yield* again, two)
      assert.deepStrictEqual(done, ["plan", "ServerClosed", "upload"])
      yield* leftOf(second, { attached: 0, parked: 1, fibers: 1 })
    })
  )
})
