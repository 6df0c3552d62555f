/**
 * The life of calls, driven through the service, in virtual time.
 */
import { Elicitor, Progress, Recorder, Tool, ToolCall, ToolRecord } from "@agenttool/core"
import { Calls, McpServer, McpSession, Settings, StateNames, StopReason } from "@agenttool/server"
import * as Core from "@agenttool/server/Core"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import {
  accept,
  asked,
  errorText,
  goodText,
  leftOf,
  nothingLeft,
  questionsOf,
  reply,
  request,
  resultOf,
  silent,
  start,
  whyOf
} from "./processes.ts"

const Sure = Schema.Struct({ confirm: Schema.Boolean })
const ask = (message: string) => Elicitor.ask({ message, schema: Sure })
const yes = accept({ confirm: true })

/** What tools have held and let go, and why they were stopped. */
const tracing = () => {
  const log: Array<string> = []
  const holding = Effect.acquireRelease(
    Effect.sync(() => void log.push("acquired")),
    (_, exit) =>
      Effect.sync(() => {
        const reason = Exit.isFailure(exit) ? StopReason.of(exit.cause) : Option.none()
        log.push(Option.match(reason, { onNone: () => "released", onSome: (why) => `released: ${why}` }))
      })
  )
  return { log, holding }
}

/** Asks so often, and works for so many milliseconds before each question and at the end. */
const asking = (name = "ask") => {
  const traced = tracing()
  const tool = Tool.make(name, {
    parameters: Schema.Struct({ times: Schema.optionalKey(Schema.Int), work: Schema.optionalKey(Schema.Int) }),
    execute: Effect.fn(function* ({ times = 1, work = 0 }) {
      yield* traced.holding
      for (let time = 1; time <= times; time++) {
        yield* Effect.sleep(work)
        const answer = yield* ask(`${time}?`)
        if (answer.action !== "accept") return answer.action
      }
      yield* Effect.sleep(work)
      return "done"
    })
  })
  return { ...traced, tool }
}

/** Lets everything else run that can, until it is so; in virtual time nothing else happens by itself. */
const until = <A>(look: Effect.Effect<A>, isRight: (seen: A) => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let turn = 0; turn < 100; turn++) {
      if (isRight(yield* look)) return
      yield* Effect.yieldNow
    }
    assert.fail(`still ${JSON.stringify(yield* look)}`)
  })

const stopped = (tool: string, why: string) =>
  `mcpserver: tool "${tool}": the call was stopped: ${why}; call the tool again`

describe("abandonment", () => {
  it.effect("M58: a call is stopped half an hour after its round, not a moment before, and its state is spent", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool])
      const { state } = asked(yield* process.calls.start(request("ask"), silent))
      yield* TestClock.adjust("29 minutes")
      yield* TestClock.adjust("59 seconds")
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(log, ["acquired", "released: Abandoned"])
      yield* nothingLeft(process)
      assert.strictEqual(yield* whyOf(process.calls.resume(reply("ask", state), silent)), "spent")
    })
  )

  it.effect("M58: the time starts anew with each round, and a tool that works is left alone", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool], { settings: { abandonAfter: "10 seconds" } })
      const slow = { arguments: { times: 3, work: 60_000 } }
      const first = yield* Effect.forkChild(process.calls.start(request("ask", slow), silent))
      yield* TestClock.adjust("60 seconds")
      let round = asked(yield* Fiber.join(first))
      for (const id of ["elicit_1", "elicit_2"]) {
        yield* TestClock.adjust("9 seconds")
        const next = yield* Effect.forkChild(process.calls.resume(reply("ask", round.state, { [id]: yes }), silent))
        yield* TestClock.adjust("60 seconds")
        round = asked(yield* Fiber.join(next))
      }
      assert.deepStrictEqual(log, ["acquired"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(log, ["acquired", "released: Abandoned"])
      yield* nothingLeft(process)
    })
  )

  it.effect("M58: of many parked calls each has its own time", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool], { settings: { abandonAfter: "10 seconds" } })
      const states: Array<string> = []
      for (let call = 0; call < 5; call++) {
        states.push(asked(yield* process.calls.start(request("ask"), silent)).state)
        yield* TestClock.adjust("1 second")
      }
      // The second one is answered: the others are not waited for, nor does it hold them up.
      yield* process.calls.resume(reply("ask", states[1] ?? "", { elicit_1: yes }), silent)
      const abandoned = () => log.filter((line) => line === "released: Abandoned").length
      for (const expected of [0, 0, 0, 0, 0, 1, 1, 2, 3, 4]) {
        assert.strictEqual(abandoned(), expected)
        yield* TestClock.adjust("1 second")
      }
      yield* nothingLeft(process)
    })
  )

  it.effect("M52, M58: a tool that ends by itself while it is parked keeps its result that long", () =>
    Effect.gen(function* () {
      const tool = Tool.make("impatient", {
        execute: () =>
          ask("Quick?").pipe(
            Effect.timeoutOption("5 seconds"),
            Effect.map(Option.match({ onNone: () => "did without", onSome: () => "was told" }))
          )
      })
      const process = yield* start([tool], { settings: { abandonAfter: "1 minute" } })
      const states = [1, 2].map(() => Effect.map(process.calls.start(request("impatient"), silent), asked))
      const [kept, dropped] = yield* Effect.all(states)
      yield* TestClock.adjust("30 seconds")
      yield* leftOf(process, { attached: 0, parked: 2, fibers: 0 })
      const late = yield* process.calls.resume(reply("impatient", kept?.state ?? "", { elicit_1: yes }), silent)
      assert.strictEqual(goodText(late), "did without")
      yield* TestClock.adjust("30 seconds")
      yield* nothingLeft(process)
      assert.strictEqual(yield* whyOf(process.calls.resume(reply("impatient", dropped?.state ?? ""), silent)), "spent")
    })
  )

  it.effect("M28, M67: a pushed question that nobody answers is withdrawn, and the request hears why", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool])
      let withdrawn = 0
      const push: Calls.Attachment = {
        ...silent,
        ask: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void withdrawn++))
      }
      const call = yield* Effect.forkChild(process.calls.start(request("ask", { protocolVersion: "2025-11-25" }), push))
      yield* TestClock.adjust("29 minutes")
      yield* leftOf(process, { attached: 1, parked: 0, fibers: 1 })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(errorText(yield* Fiber.join(call)), stopped("ask", "nobody answered its question in time"))
      assert.deepStrictEqual([withdrawn, ...log], [1, "acquired", "released: Abandoned"])
      yield* nothingLeft(process)
    })
  )
})

describe("states", () => {
  it.effect("M54, M64: a state belongs to its tool, session and principal, and what fails that leaves it unspent", () =>
    Effect.gen(function* () {
      const process = yield* start([asking().tool, asking("other").tool])
      const binding = { session: "s1", principal: "ada" }
      const { state } = asked(yield* process.calls.start(request("ask", { binding }), silent))
      const back = (tool: string, from: Calls.Binding) =>
        process.calls.resume(reply(tool, state, { elicit_1: yes }, { binding: from }), silent)
      assert.strictEqual(yield* whyOf(back("other", binding)), "foreign")
      for (const from of [
        {},
        { session: "s1" },
        { principal: "ada" },
        { session: "s2", principal: "ada" },
        { session: "s1", principal: "bob" }
      ]) {
        assert.strictEqual(yield* whyOf(back("ask", from)), "foreign")
      }
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
      assert.strictEqual(goodText(yield* back("ask", binding)), "done")
      yield* nothingLeft(process)
    })
  )

  it.effect("M55: a spent state is told from one that never was ours, in this process alone", () =>
    Effect.gen(function* () {
      const process = yield* start([asking().tool])
      // The default key is one of the process; another process has another one.
      const around = Layer.succeed(StateNames.StateNames, StateNames.tagged("another key"))
      const other = yield* start([asking().tool], { around })
      const { state } = asked(yield* process.calls.start(request("ask"), silent))
      yield* process.calls.resume(reply("ask", state, { elicit_1: yes }), silent)
      const why = (of: typeof process, name: string) => whyOf(of.calls.resume(reply("ask", name), silent))
      assert.strictEqual(yield* why(process, state), "spent")
      assert.strictEqual(yield* why(other, state), "unknown")
      for (const invented of [
        "",
        "x",
        state.slice(1),
        `${state}0`,
        state.replace(/^./, (c) => (c === "0" ? "1" : "0"))
      ]) {
        assert.strictEqual(yield* why(process, invented), "unknown")
      }
    })
  )

  it.effect("M55: with a key from the configuration a state of the process before is a spent one", () =>
    Effect.gen(function* () {
      const around = StateNames.layerConfig(Config.Redacted("STATE_KEY")).pipe(
        Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ STATE_KEY: "the same for all" }))),
        Layer.orDie
      )
      const before = yield* start([asking().tool], { around })
      const { state } = asked(yield* before.calls.start(request("ask"), silent))
      yield* before.close
      const after = yield* start([asking().tool], { around })
      assert.strictEqual(yield* whyOf(after.calls.resume(reply("ask", state), silent)), "spent")
    })
  )

  it.effect("M63: states are unguessable: random, and never the same", () =>
    Effect.gen(function* () {
      const process = yield* start([asking().tool])
      const states = yield* Effect.forEach(Array.from({ length: 50 }), () =>
        Effect.map(process.calls.start(request("ask"), silent), (turn) => asked(turn).state)
      )
      assert.strictEqual(new Set(states.map((state) => state.slice(0, 32))).size, 50)
      for (const state of states) assert.match(state, /^[0-9a-f]{64}$/)
    })
  )
})

describe("bounds", () => {
  it.effect("M62: calls are parked up to a bound per session, and per principal where there is no session", () =>
    Effect.gen(function* () {
      const process = yield* start([asking().tool], { settings: { maxParkedPerSession: 2 } })
      const park = (binding: Calls.Binding) => process.calls.start(request("ask", { binding }), silent)
      for (const binding of [{ session: "s1" }, { session: "s2", principal: "ada" }, { principal: "ada" }]) {
        const first = asked(yield* park(binding))
        asked(yield* park(binding))
        assert.match(errorText(yield* park(binding)), /^mcpserver: elicitation: too many calls are waiting/)
        // One that goes on makes room.
        yield* process.calls.resume(reply("ask", first.state, { elicit_1: yes }, { binding }), silent)
        asked(yield* park(binding))
      }
      // Nobody's calls are bounded in all alone.
      for (let call = 0; call < 5; call++) asked(yield* park({}))
    })
  )

  it.effect("M62: calls are parked up to a bound in all", () =>
    Effect.gen(function* () {
      const process = yield* start([asking().tool], { settings: { maxParked: 3 } })
      for (let call = 0; call < 3; call++) asked(yield* process.calls.start(request("ask"), silent))
      assert.include(errorText(yield* process.calls.start(request("ask"), silent)), "too many calls are waiting")
      yield* leftOf(process, { attached: 0, parked: 3, fibers: 3 })
    })
  )

  it.effect("M84: zero and less stand for the defaults, and nothing set is all defaults", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(Settings.make({}), Settings.defaults)
      assert.deepStrictEqual(Settings.make({ abandonAfter: 0, maxRequests: 0 }), Settings.defaults)
      assert.strictEqual(Settings.make({ abandonAfter: -5 }).abandonAfter, "30 minutes")
      assert.strictEqual(Settings.make({ maxRequests: -1 }).maxRequests, -1)
      assert.strictEqual(Settings.defaults.maxRequests, 10)
      assert.strictEqual(Settings.defaults.maxParked, 10_000)
      assert.strictEqual(Settings.defaults.maxParkedPerSession, 100)
    })
  )
})

describe("stopping", () => {
  it.effect("M28: a request that is cancelled interrupts its tool, and not the one of another request", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool])
      const slow = request("ask", { arguments: { work: 1_000 } })
      const [one, two] = [
        yield* Effect.forkChild(process.calls.start(slow, silent), { startImmediately: true }),
        yield* Effect.forkChild(process.calls.start(slow, silent), { startImmediately: true })
      ]
      yield* Fiber.interrupt(one)
      assert.deepStrictEqual(log, ["acquired", "acquired", "released: Cancelled"])
      yield* TestClock.adjust("1 second")
      asked(yield* Fiber.join(two))
    })
  )

  it.effect("M60: a session's end stops its calls, parked or not, and leaves those of others", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const process = yield* start([tool])
      const of = (session: string, work = 0) => request("ask", { binding: { session }, arguments: { work } })
      asked(yield* process.calls.start(of("s1"), silent))
      const waiting = yield* Effect.forkChild(process.calls.start(of("s1", 1_000), silent), { startImmediately: true })
      asked(yield* process.calls.start(of("s2"), silent))
      assert.strictEqual(yield* process.calls.interrupt({ session: "s1" }, "SessionEnded"), 2)
      assert.strictEqual(errorText(yield* Fiber.join(waiting)), stopped("ask", "its session ended"))
      assert.strictEqual(log.filter((line) => line === "released: SessionEnded").length, 2)
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
      assert.strictEqual(yield* process.calls.interrupt({ session: "s1" }, "SessionEnded"), 0)
    })
  )

  it.effect("M61: nobody waits for the finalizers of a call that is stopped, but the end of the server", () =>
    Effect.gen(function* () {
      const released = yield* Deferred.make<void>()
      const tool = Tool.make("slow_release", {
        execute: () =>
          Effect.andThen(
            Effect.acquireRelease(Effect.void, () => Deferred.await(released)),
            Effect.never
          )
      })
      const process = yield* start([tool])
      const call = yield* Effect.forkChild(process.calls.start(request("slow_release"), silent), {
        startImmediately: true
      })
      const closing = yield* Effect.forkChild(process.calls.drain("all", "ServerClosed", 0), {
        startImmediately: true
      })
      assert.strictEqual(errorText(yield* Fiber.join(call)), stopped("slow_release", "the server is shutting down"))
      yield* leftOf(process, { attached: 0, parked: 0, fibers: 1 })
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(closing)
      yield* nothingLeft(process)
    })
  )

  it.effect("M61: closing the server stops all calls, parked ones too, and waits for their finalizers", () =>
    Effect.gen(function* () {
      const { log, tool } = asking()
      const scope = yield* Scope.make()
      const context = yield* McpServer.tools(tool).pipe(Layer.provideMerge(Core.layer), Layer.buildWithScope(scope))
      const calls = Context.get(context, Calls.Calls)
      asked(yield* calls.start(request("ask"), silent))
      const waiting = yield* Effect.forkChild(calls.start(request("ask", { arguments: { work: 60_000 } }), silent), {
        startImmediately: true
      })
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      // The registration goes first: its parked calls at once, the running one after its grace.
      yield* until(
        Effect.sync(() => log.length),
        (lines) => lines === 3
      )
      assert.deepStrictEqual(log, ["acquired", "acquired", "released: ToolRemoved"])
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(closing)
      assert.strictEqual(errorText(yield* Fiber.join(waiting)), stopped("ask", "the tool was removed"))
      assert.strictEqual(log.length, 4)
    })
  )

  it.effect(
    "M10, M28: released tools are unknown at once, their parked calls are stopped, running ones get a grace",
    () =>
      Effect.gen(function* () {
        const { log, tool } = asking()
        const kept = asking("kept").tool
        const core = yield* Layer.build(Core.layer)
        const calls = Context.get(core, Calls.Calls)
        const scope = yield* Scope.make()
        yield* McpServer.tools(tool).pipe(Layer.buildWithScope(scope), Effect.provideContext(core))
        yield* McpServer.tools(kept).pipe(Layer.build, Effect.provideContext(core))
        const start = (name: string, work = 0) =>
          Effect.forkChild(calls.start(request(name, { arguments: { work } }), silent), { startImmediately: true })
        yield* start("ask")
        yield* start("kept")
        const [short, long] = [yield* start("ask", 2_000), yield* start("ask", 60_000)]
        yield* until(calls.count, ({ parked }) => parked === 2)
        const releasing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
        yield* until(calls.count, ({ parked }) => parked === 1)
        assert.deepStrictEqual(log.slice(-1), ["released: ToolRemoved"])
        assert.strictEqual((yield* Effect.flip(calls.start(request("ask"), silent)))._tag, "UnknownTool")
        // One that asks within its grace has nobody who could go on with it.
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(errorOrRound(yield* Fiber.join(short)), stopped("ask", "the tool was removed"))
        yield* TestClock.adjust("3 seconds")
        assert.strictEqual(errorText(yield* Fiber.join(long)), stopped("ask", "the tool was removed"))
        yield* Fiber.join(releasing)
        assert.deepStrictEqual(yield* calls.countOf({ session: "none" }), { attached: 0, parked: 0 })
        assert.strictEqual((yield* calls.count).parked, 1)
      })
  )

  it.effect("M61: a tool that asks where it cannot be interrupted is told cancel when it is stopped", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const tool = Tool.make("stubborn", {
        execute: () =>
          Effect.uninterruptible(
            Effect.tap(ask("Sure?"), (answer) => Effect.sync(() => void heard.push(answer.action)))
          )
      })
      const process = yield* start([tool])
      asked(yield* process.calls.start(request("stubborn"), silent))
      const pushed = yield* Effect.forkChild(
        process.calls.start(request("stubborn", { protocolVersion: "2025-11-25" }), {
          ...silent,
          ask: () => Effect.never
        }),
        { startImmediately: true }
      )
      yield* process.calls.drain("all", "ServerClosed", 0)
      assert.deepStrictEqual(heard, ["cancel", "cancel"])
      assert.include(errorText(yield* Fiber.join(pushed)), "the server is shutting down")
      yield* nothingLeft(process)
    })
  )

  it.effect("M52: a fiber that outlives its tool is told cancel, whether it asks before the end or after it", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const hear = Effect.tap(ask("Anybody?"), (answer) => Effect.sync(() => void heard.push(answer.action)))
      const tool = Tool.make("leaves_a_fiber", {
        execute: () =>
          Effect.gen(function* () {
            yield* Effect.forkDetach(Effect.andThen(Effect.sleep("2 seconds"), hear))
            yield* Effect.forkDetach(hear, { startImmediately: true })
            return "gone"
          })
      })
      const process = yield* start([tool])
      assert.strictEqual(goodText(yield* process.calls.start(request("leaves_a_fiber"), silent)), "gone")
      yield* Effect.yieldNow
      assert.deepStrictEqual(heard, ["cancel"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(heard, ["cancel", "cancel"])
      yield* nothingLeft(process)
    })
  )

  it.effect("M28: what a tool does on its way out, its cancelled client neither hears nor is asked", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const sent: Array<string> = []
      const tool = Tool.make("leaves_with_words", {
        execute: () =>
          Effect.andThen(
            Effect.acquireRelease(Effect.void, () =>
              Effect.gen(function* () {
                yield* Progress.report("rolling back")
                const answer = yield* Effect.orDie(ask("Keep the files?"))
                heard.push(answer.action)
              })
            ),
            Effect.never
          )
      })
      const process = yield* start([tool])
      const attachment: Calls.Attachment = {
        progress: ({ message = "" }) => Effect.sync(() => void sent.push(message)),
        ask: ({ id }) =>
          Effect.andThen(
            Effect.sync(() => sent.push(id)),
            Effect.never
          )
      }
      const call = yield* Effect.forkChild(
        process.calls.start(request("leaves_with_words", { protocolVersion: "2025-11-25" }), attachment),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(call)
      yield* Effect.yieldNow
      assert.deepStrictEqual([heard, sent], [["cancel"], []])
      yield* nothingLeft(process)
    })
  )
})

/** The text of an error result, or what else the turn is. */
const errorOrRound = (turn: Calls.Turn): string => (turn._tag === "Asked" ? "a round" : errorText(turn))

describe("what a tool finds in its context", () => {
  it.effect("M29: its call is the same through all rounds, and calls are counted, refused ones too", () =>
    Effect.gen(function* () {
      const seen: Array<ToolCall.Call> = []
      const note = Effect.tap(ToolCall.current, (call) => Effect.sync(() => void seen.push(call)))
      const tool = Tool.make("noted", {
        parameters: Schema.Struct({ n: Schema.optionalKey(Schema.Finite) }),
        execute: () => note.pipe(Effect.andThen(ask("One?")), Effect.andThen(note), Effect.as("done"))
      })
      const process = yield* start([tool])
      const begin = (args: Schema.JsonObject) => process.calls.start(request("noted", { arguments: args }), silent)
      const { state } = asked(yield* begin({ n: 1 }))
      errorText(yield* begin({ n: "one" }))
      yield* process.calls.resume(reply("noted", state, { elicit_1: yes }), silent)
      asked(yield* begin({}))
      assert.deepStrictEqual(
        seen.map(({ arguments: text, id, idempotencyKey }) => [id, text, idempotencyKey]),
        [
          ["mcp_1", '{"n":1}', undefined],
          ["mcp_1", '{"n":1}', undefined],
          ["mcp_3", "{}", undefined]
        ]
      )
      assert.strictEqual(seen[0], seen[1])
    })
  )

  it.effect("M40, M41: the recorder that the host provides is seen by a run that has outlived its first request", () =>
    Effect.gen(function* () {
      const written: Array<string> = []
      const recorder = (name: string): Recorder.RecorderService => ({
        write: ({ data }) => Effect.sync(() => void written.push(`${name} ${data}`))
      })
      const write = (n: number) => Effect.orDie(Recorder.write(ToolRecord.make("test.record", { n })))
      const tool = Tool.make("records", {
        execute: () => write(1).pipe(Effect.andThen(ask("One?")), Effect.andThen(write(2)), Effect.as("done"))
      })
      // For the whole connection; and beside that, one that surrounds a request.
      const process = yield* start([tool], { around: Recorder.layer(recorder("host")) })
      const run = Effect.gen(function* () {
        const { state } = asked(yield* process.calls.start(request("records"), silent))
        return state
      })
      const states = [yield* run, yield* Effect.provideService(run, Recorder.Recorder, recorder("request"))]
      for (const state of states) yield* process.calls.resume(reply("records", state, { elicit_1: yes }), silent)
      assert.deepStrictEqual(written, ['host {"n":1}', 'request {"n":1}', 'host {"n":2}', 'request {"n":2}'])

      // Without one, writing does nothing and succeeds.
      const bare = yield* start([tool])
      const { state } = asked(yield* bare.calls.start(request("records"), silent))
      assert.strictEqual(goodText(yield* bare.calls.resume(reply("records", state, { elicit_1: yes }), silent)), "done")
      assert.lengthOf(written, 4)
    })
  )

  it.effect("M46: a client that offers no elicitation leaves the host's own elicitor in place, and has none else", () =>
    Effect.gen(function* () {
      const { tool } = asking()
      const unable = request("ask", { capabilities: {} })
      const own = Elicitor.layer({ ask: () => Effect.succeed({ action: "decline" }) })
      for (const [around, expected] of [
        [Layer.empty, "cancel"],
        [own, "decline"]
      ] as const) {
        const process = yield* start([tool], { around })
        assert.strictEqual(goodText(yield* process.calls.start(unable, silent)), expected)
        // One that does offer it is asked itself.
        asked(yield* process.calls.start(request("ask"), silent))
      }
    })
  )

  it.effect("M42: outside of a served call there is no session", () =>
    Effect.gen(function* () {
      const seen: Array<boolean> = []
      const tool = Tool.make("session", {
        execute: () =>
          Effect.map(McpSession.option, (session) => {
            seen.push(Option.isSome(session))
            return "done"
          })
      })
      yield* Tool.run(tool, {})
      const process = yield* start([tool])
      yield* process.calls.start(request("session"), silent)
      assert.deepStrictEqual(seen, [false, false])
    })
  )

  it.effect("M73: what is reported while nobody waits is dropped, and the count goes on", () =>
    Effect.gen(function* () {
      const sent: Array<Calls.ProgressUpdate> = []
      const tool = Tool.make("reports", {
        execute: Effect.fn(function* () {
          yield* Effect.forkChild(Effect.andThen(Effect.sleep("1 second"), Progress.report("while parked")))
          yield* ask("One?")
          yield* Progress.report("after")
          return "done"
        })
      })
      const process = yield* start([tool])
      const attachment = { progress: (update: Calls.ProgressUpdate) => Effect.sync(() => void sent.push(update)) }
      const { state } = asked(yield* process.calls.start(request("reports"), attachment))
      yield* TestClock.adjust("1 second")
      yield* process.calls.resume(reply("reports", state, { elicit_1: yes }), attachment)
      assert.deepStrictEqual(sent, [{ progress: 2, message: "after" }])
    })
  )

  it.effect("M53: questions of fibers that the tool forked in the same step go in one round", () =>
    Effect.gen(function* () {
      const tool = Tool.make("many", {
        execute: () =>
          Effect.map(
            Effect.forEach([1, 2, 3, 4, 5], (n) => ask(`${n}?`), { concurrency: "unbounded" }),
            (answers) => answers.map(({ action }) => action).join()
          )
      })
      const process = yield* start([tool])
      const turn = yield* process.calls.start(request("many"), silent)
      assert.deepStrictEqual(
        questionsOf(turn),
        [1, 2, 3, 4, 5].map((n) => [`elicit_${n}`, `${n}?`])
      )
      const responses = Object.fromEntries(questionsOf(turn).map(([id]) => [id, { action: "decline" }]))
      const last = yield* process.calls.resume(reply("many", asked(turn).state, responses), silent)
      assert.strictEqual(goodText(last), "decline,decline,decline,decline,decline")
    })
  )

  it.effect("M27: the value of a defect is shown where a setting says so", () =>
    Effect.gen(function* () {
      const tool = Tool.make("dies", { execute: () => Effect.die("secret") })
      const hidden = yield* start([tool])
      assert.match(
        errorText(yield* hidden.calls.start(request("dies"), silent)),
        /^tool "dies" failed unexpectedly \([0-9a-f]+\)$/
      )
      const shown = yield* start([tool], { settings: { showDefects: true } })
      assert.strictEqual(errorText(yield* shown.calls.start(request("dies"), silent)), 'tool "dies" panicked: secret')
    })
  )

  it.effect("M30: a result that is too large is an error result that says so", () =>
    Effect.gen(function* () {
      const tool = Tool.make("large", { execute: () => Effect.succeed("x".repeat(2_000)) })
      const process = yield* start([tool], { settings: { maxResultBytes: 1_000 } })
      assert.match(errorText(yield* process.calls.start(request("large"), silent)), /too large/)
    })
  )

  it.effect("M28: an interrupt that is the tool's own does not leave its request without an answer", () =>
    Effect.gen(function* () {
      const tool = Tool.make("interrupts", { execute: () => Effect.interrupt })
      const process = yield* start([tool])
      const turn = yield* process.calls.start(request("interrupts"), silent)
      assert.strictEqual(errorText(turn), stopped("interrupts", "interrupted"))
      assert.isDefined(resultOf(turn))
      yield* nothingLeft(process)
    })
  )
})
