/**
 * What lives in a session: layers that are built once, whoever needs them first, and released with it.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { Calls, McpServer, McpSession } from "@agenttool/server"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { eras } from "./hosts.ts"
import { request, silent } from "./processes.ts"
import * as Core from "@agenttool/server/Core"

class Counter extends Context.Service<Counter, { readonly id: number; count: number }>()("test/SessionCounter") {}
class Reader extends Context.Service<Reader, { readonly read: () => string }>()("test/SessionReader") {}

/** A layer that counts what is made of it. */
const counting = (build: Effect.Effect<void, string> = Effect.void) => {
  const lived = { built: 0, released: 0 }
  const layer = Layer.effect(
    Counter,
    Effect.andThen(
      build,
      Effect.acquireRelease(
        Effect.sync(() => ({ id: ++lived.built, count: 0 })),
        () => Effect.sync(() => void lived.released++)
      )
    )
  )
  return { lived, layer }
}

const count = (name: string) =>
  Tool.make(name, {
    execute: () => Effect.map(Effect.service(Counter), (counter) => `${counter.id}: ${++counter.count}`)
  })

/** A session by hand, and how many finalizers it has. */
const session = (key = "s") =>
  Effect.map(Scope.make(), (scope) => {
    const value = McpSession.make({
      id: "",
      key,
      lifetime: "connection",
      client: () => ({ protocolVersion: "2026-07-28", capabilities: {}, info: undefined }),
      scope
    })
    const run = <E, A>(tool: Tool.Tool<E, McpSession.McpSession, Record<never, never>, A>) =>
      Effect.map(Effect.provideService(Tool.run(tool, {}), McpSession.McpSession, value), ({ output }) => output)
    return {
      run,
      end: Scope.close(scope, Exit.void),
      finalizers: () => (scope.state._tag === "Open" ? (scope.state.finalizers?.size ?? 1) : 0)
    }
  })

describe("a layer of a session", () => {
  it.effect("M45: is built once per session, shared by the tools that are given it, and released with it", () =>
    Effect.gen(function* () {
      const { layer, lived } = counting()
      const one = count("one").pipe(McpSession.provide(layer))
      const two = count("two").pipe(McpSession.provide(layer))
      const [first, second] = [yield* session("first"), yield* session("second")]
      assert.strictEqual(lived.built, 0)
      assert.deepStrictEqual(
        [yield* first.run(one), yield* first.run(two), yield* second.run(one), yield* first.run(one)],
        ["1: 1", "1: 2", "2: 1", "1: 3"]
      )
      yield* first.end
      assert.deepStrictEqual(lived, { built: 2, released: 1 })
      yield* second.end
      assert.deepStrictEqual(lived, { built: 2, released: 2 })
    })
  )

  it.effect("M45: another layer value of the same service is another one", () =>
    Effect.gen(function* () {
      const [a, b] = [counting(), counting()]
      const current = yield* session()
      const one = count("one").pipe(McpSession.provide(a.layer))
      const two = count("two").pipe(McpSession.provide(b.layer))
      assert.deepStrictEqual([yield* current.run(one), yield* current.run(two)], ["1: 1", "1: 1"])
    })
  )

  it.effect("M45: is built once when two calls need it at the same time", () =>
    Effect.gen(function* () {
      const { layer, lived } = counting(Effect.sleep("1 second"))
      const tool = count("count").pipe(McpSession.provide(layer))
      const current = yield* session()
      const calls = yield* Effect.forkChild(
        Effect.all(
          [1, 2, 3].map(() => current.run(tool)),
          { concurrency: 3 }
        )
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual((yield* Fiber.join(calls)).toSorted(), ["1: 1", "1: 2", "1: 3"])
      assert.strictEqual(lived.built, 1)
    })
  )

  it.effect("M45: may need another layer of the session, and shares it", () =>
    Effect.gen(function* () {
      const { layer, lived } = counting()
      const released: Array<string> = []
      const reader = Layer.effect(
        Reader,
        Effect.map(Effect.service(Counter), (counter) => ({ read: () => `read ${counter.count}` }))
      ).pipe(
        Layer.tap(() => Effect.addFinalizer(() => Effect.sync(() => void released.push(`reader ${lived.released}`))))
      )
      const read = Tool.make("read", { execute: () => Effect.map(Effect.service(Reader), (made) => made.read()) })
      const together = read.pipe(McpSession.provide(reader.pipe(Layer.provide(layer))))
      // Innermost first: what the reader's layer needs is asked of the one outside.
      const nested = read.pipe(McpSession.provide(reader), McpSession.provide(layer))
      const current = yield* session()
      assert.strictEqual(yield* current.run(count("count").pipe(McpSession.provide(layer))), "1: 1")
      assert.strictEqual(yield* current.run(together), "read 1")
      assert.strictEqual(yield* current.run(nested), "read 1")
      yield* current.end
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
      assert.deepStrictEqual(released, ["reader 0", "reader 0"])
    })
  )

  it.effect("M45: a call that is interrupted while it is built leaves it to the others, whole", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      const { layer, lived } = counting(
        Effect.andThen(
          Effect.sync(() => void steps.push("started")),
          Effect.andThen(
            Effect.sleep("1 second"),
            Effect.sync(() => void steps.push("done"))
          )
        )
      )
      const tool = count("count").pipe(McpSession.provide(layer))
      const current = yield* session()
      const first = yield* Effect.forkChild(current.run(tool))
      yield* TestClock.adjust("500 millis")
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(current.run(tool))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(yield* Fiber.join(second), "1: 1")
      assert.deepStrictEqual(steps, ["started", "done"])
      yield* current.end
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
    })
  )

  it.effect("M45: a session that ends while it is built ends the building", () =>
    Effect.gen(function* () {
      const stopped: Array<string> = []
      const layer = Layer.effect(
        Counter,
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => void stopped.push("stopped")))
      )
      const current = yield* session()
      const call = yield* Effect.forkChild(Effect.exit(current.run(count("count").pipe(McpSession.provide(layer)))))
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      yield* current.end
      assert.deepStrictEqual(stopped, ["stopped"])
      assert.isTrue(Exit.isFailure(yield* Fiber.join(call)))
    })
  )

  it.effect("M45: one that fails fails the calls that wait for it, and is tried again by the next", () =>
    Effect.gen(function* () {
      let attempts = 0
      const { layer, lived } = counting(
        Effect.andThen(
          Effect.sleep("1 second"),
          Effect.suspend(() => (++attempts === 1 ? Effect.fail("not yet") : Effect.void))
        )
      )
      const tool = count("count").pipe(McpSession.provide(layer))
      const current = yield* session()
      const failing = yield* Effect.forkChild(
        Effect.all([Effect.flip(current.run(tool)), Effect.flip(current.run(tool))], { concurrency: 2 })
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(failing), ["not yet", "not yet"])
      assert.deepStrictEqual([attempts, lived.built, current.finalizers()], [1, 0, 0])
      const again = yield* Effect.forkChild(current.run(tool))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(again), "1: 1")
      yield* current.end
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
    })
  )

  it.effect("M45: one that dies is tried again, too", () =>
    Effect.gen(function* () {
      let attempts = 0
      const { layer } = counting(Effect.suspend(() => (++attempts === 1 ? Effect.die("broken") : Effect.void)))
      const tool = count("count").pipe(McpSession.provide(layer))
      const current = yield* session()
      assert.isTrue(Exit.hasDies(yield* Effect.exit(current.run(tool))))
      assert.strictEqual(yield* current.run(tool), "1: 1")
    })
  )

  it.effect("M45: ten thousand calls leave nothing behind in the session", () =>
    Effect.gen(function* () {
      const { layer } = counting()
      const good = count("good").pipe(McpSession.provide(layer))
      const bad = count("bad").pipe(McpSession.provide(counting(Effect.fail("never")).layer))
      const current = yield* session()
      yield* current.run(good)
      const after = current.finalizers()
      assert.isAtMost(after, 2)
      const calls = (tool: typeof good) => Effect.repeat(Effect.exit(current.run(tool)), { times: 9_999 })
      yield* calls(good)
      yield* calls(bad)
      assert.strictEqual(current.finalizers(), after)
      assert.strictEqual(yield* current.run(good), "1: 10002")
    })
  )

  it.effect("M81: is there for claims as well, and is the same", () =>
    Effect.gen(function* () {
      const { layer } = counting()
      const claiming = count("count").pipe(
        Tool.facts(() =>
          Effect.map(Effect.service(Counter), ({ count: text }) => ({ calls: [{ tool: "", text: String(text) }] }))
        ),
        McpSession.provide(layer)
      )
      const current = yield* session()
      yield* current.run(claiming)
      const scope = yield* Scope.make()
      const other = McpSession.make({
        id: "",
        key: "other",
        lifetime: "request",
        client: () => ({ protocolVersion: "", capabilities: {}, info: undefined }),
        scope
      })
      const claim = yield* Effect.provideService(Tool.factsOf(claiming, "{}"), McpSession.McpSession, other)
      assert.deepStrictEqual(claim, { claims: true, facts: { calls: [{ tool: "", text: "0" }] } })
    })
  )
})

for (const protocolVersion of eras) {
  describe(`${protocolVersion}: the session of a connection`, () => {
    it.effect("M43, M44: is one value for all calls, without an id in memory, and knows its client", () =>
      Effect.gen(function* () {
        const seen = new Set<McpSession.Session>()
        const who = Tool.make("who", {
          execute: () =>
            Effect.map(McpSession.current, (current) => {
              seen.add(current)
              const { info, protocolVersion: version } = current.client()
              return JSON.stringify([current.id, current.lifetime, info?.name, version, current.principal ?? "nobody"])
            })
        })
        const [one, two] = [
          yield* connect({ tools: [who], protocolVersion }),
          yield* connect({ tools: [who], protocolVersion })
        ]
        const expected = JSON.stringify(["", "connection", "test", protocolVersion, "nobody"])
        assert.deepStrictEqual(
          [yield* one.text("who"), yield* one.text("who"), yield* two.text("who")],
          [expected, expected, expected]
        )
        assert.strictEqual(seen.size, 2)
        assert.strictEqual(new Set(Array.from(seen, ({ key }) => key)).size, 2)
      })
    )

    it.live("M45, M61: its layers are released after its calls have ended", () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        const held = Layer.effect(
          Counter,
          Effect.acquireRelease(Effect.succeed({ id: 1, count: 0 }), () =>
            Effect.sync(() => void log.push("layer released"))
          )
        )
        const started = yield* Deferred.make<void>()
        const slow = Tool.make("slow", {
          execute: () =>
            Effect.andThen(Effect.service(Counter), Deferred.succeed(started, undefined)).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() =>
                Effect.delay(
                  Effect.sync(() => void log.push("call ended")),
                  "30 millis"
                )
              )
            )
        }).pipe(McpSession.provide(held))
        const scope = yield* Scope.make()
        const mcp = yield* Scope.provide(connect({ tools: [slow], protocolVersion, shutdownGrace: 0 }), scope)
        yield* Effect.forkScoped(Effect.exit(mcp.call("slow")))
        yield* Deferred.await(started)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(log, ["call ended", "layer released"])
      })
    )
  })
}

describe("the id of a session", () => {
  it.effect("M44: is that of the transport, and empty where there is none, or no session at all", () =>
    Effect.gen(function* () {
      const given = (value: string) =>
        McpSession.make({
          id: value,
          key: "k",
          lifetime: "connection",
          client: () => ({ protocolVersion: "", capabilities: {}, info: undefined }),
          scope: Scope.makeUnsafe()
        })
      const within = (value: string) => Effect.provideService(McpSession.id, McpSession.McpSession, given(value))
      assert.deepStrictEqual([yield* within("abc"), yield* within(""), yield* McpSession.id], ["abc", "", ""])
      const tool = Tool.make("id", { execute: () => McpSession.id })
      // It needs no session, so it runs anywhere.
      assert.strictEqual((yield* Tool.run(tool, {})).output, "")
    })
  )
})

describe("the session of one request", () => {
  it.effect("M45: lasts as long as the run that it started, through all rounds", () =>
    Effect.gen(function* () {
      const { layer, lived } = counting()
      const tool = Tool.make("ask", {
        execute: () =>
          Effect.andThen(Effect.service(Counter), (counter) =>
            Effect.map(Elicitor.confirm("?"), () => `${counter.id}, released ${lived.released}`)
          )
      }).pipe(McpSession.provide(layer))
      const core = yield* Layer.build(Layer.provideMerge(McpServer.tools(tool), Core.layer))
      const calls = Context.get(core, Calls.Calls)
      const within = (run: Effect.Effect<Calls.Turn, unknown>) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const value = McpSession.make({
            id: "",
            key: "request",
            lifetime: "request",
            client: () => ({ protocolVersion: "2026-07-28", capabilities: {}, info: undefined }),
            scope
          })
          return yield* run.pipe(
            Effect.provideService(McpSession.McpSession, value),
            Effect.provideService(McpSession.Ended, Scope.close(scope, Exit.void))
          )
        })
      const turn = yield* within(calls.start(request("ask"), silent))
      assert.deepStrictEqual(lived, { built: 1, released: 0 })
      const state = turn._tag === "Asked" ? turn.state : ""
      const end = yield* within(
        calls.resume({ tool: "ask", state, responses: {}, capabilities: {}, binding: {} }, silent)
      )
      assert.include(JSON.stringify(end), "1, released 0")
      yield* Effect.yieldNow
      assert.deepStrictEqual(lived, { built: 1, released: 1 })
    })
  )
})
