/**
 * How many calls run at once, and what a client meets at every bound of a server that listens.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { McpServer, Settings, TokenVerifier } from "@agenttool/server"
import * as Running from "@agenttool/server/Running"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Redacted, References, Schema } from "effect"
import * as Processes from "./processes.ts"
import {
  type Answer,
  ask,
  inSession,
  legacyAsk,
  listen,
  modernAsk,
  open,
  type Options,
  responseOf,
  textOf,
  until
} from "./support/endpoint.ts"
import { initialize, legacyCall } from "./support/rawMessages.ts"

// ----- as a unit

const bounds = { maxRunning: 4, maxRunningPerSession: 2, maxQueued: 3 }

const owners = ["a", "b", "c", ""] as const

/** What may happen: somebody comes, somebody with a place leaves, somebody who waits gives up. */
const Happening = Schema.Union([
  Schema.Struct({ does: Schema.Literal("enter"), owner: Schema.Literals(owners) }),
  Schema.Struct({
    does: Schema.Literals(["leave", "gives up"]),
    which: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
  })
])

interface Visitor {
  readonly owner: string
  readonly fiber: Fiber.Fiber<boolean>
}

/** Some of the visitors, and what became of the others. */
const isIn = ({ fiber }: Visitor) => {
  const exit = fiber.pollUnsafe()
  return exit !== undefined && Exit.isSuccess(exit) && exit.value
}
const waits = ({ fiber }: Visitor) => fiber.pollUnsafe() === undefined

const ofOwner = (visitors: ReadonlyArray<Visitor>, owner: string) =>
  visitors.filter((visitor) => visitor.owner === owner)

describe("the places of running calls", () => {
  it.effect.prop(
    "M84: are never more than the bounds, never lost, and given in turn",
    { happenings: Schema.Array(Happening) },
    ({ happenings }) =>
      Effect.gen(function* () {
        const running = Running.make(Settings.make(bounds))
        let here: ReadonlyArray<Visitor> = []

        const look = () => {
          const inside = here.filter(isIn)
          const waiting = here.filter(waits)
          assert.deepStrictEqual(running.count(), { running: inside.length, queued: waiting.length })
          assert.isAtMost(inside.length, bounds.maxRunning)
          assert.isAtMost(waiting.length, bounds.maxQueued)
          for (const owner of ["a", "b", "c"]) {
            assert.isAtMost(ofOwner(inside, owner).length, bounds.maxRunningPerSession, owner)
          }
          for (const owner of owners) {
            // First come, first served: nobody is in who came after one of the same owner who waits.
            const mine = ofOwner(here, owner)
            const firstWaiting = mine.findIndex(waits)
            if (firstWaiting >= 0) assert.isFalse(mine.slice(firstWaiting).some(isIn), owner)
            // Nobody waits beside a place that is free for them.
            const full =
              inside.length === bounds.maxRunning ||
              (owner !== "" && ofOwner(inside, owner).length === bounds.maxRunningPerSession)
            if (firstWaiting >= 0) assert.isTrue(full, owner)
          }
        }

        for (const happening of happenings) {
          if (happening.does === "enter") {
            const queued = running.count().queued
            const fiber = yield* Effect.forkChild(running.enter(happening.owner), { startImmediately: true })
            const visitor = { owner: happening.owner, fiber }
            if (isIn(visitor) || waits(visitor)) here = [...here, visitor]
            else assert.strictEqual(queued, bounds.maxQueued)
          } else {
            const choice = here.filter(happening.does === "leave" ? isIn : waits)
            const chosen = choice[happening.which % Math.max(1, choice.length)]
            if (chosen === undefined) continue
            here = here.filter((visitor) => visitor !== chosen)
            if (happening.does === "leave") running.leave(chosen.owner)
            else yield* Fiber.interrupt(chosen.fiber)
          }
          yield* Effect.yieldNow
          look()
        }
        for (let left = here.find(isIn); left !== undefined; left = here.find(isIn)) {
          const visitor = left
          here = here.filter((other) => other !== visitor)
          running.leave(visitor.owner)
          yield* Effect.yieldNow
        }
        assert.deepStrictEqual(here, [])
        assert.deepStrictEqual(running.count(), { running: 0, queued: 0 })
      })
  )

  it.effect("M84: an owner that is busy does not hold up the others", () =>
    Effect.gen(function* () {
      const running = Running.make(Settings.make({ maxRunning: 3, maxRunningPerSession: 1, maxQueued: 10 }))
      assert.isTrue(yield* running.enter("a"))
      const second = yield* Effect.forkChild(running.enter("a"), { startImmediately: true })
      assert.isTrue(yield* running.enter("b"))
      assert.isUndefined(second.pollUnsafe())
      running.leave("b")
      yield* Effect.yieldNow
      assert.isUndefined(second.pollUnsafe())
      running.leave("a")
      assert.isTrue(yield* Fiber.join(second))
    })
  )

  it.effect("M58: who goes on after an answer does not wait, and nobody else enters until the bound holds again", () =>
    Effect.gen(function* () {
      const running = Running.make(Settings.make({ maxRunning: 1, maxQueued: 10 }))
      assert.isTrue(yield* running.enter("a"))
      running.take("b")
      assert.strictEqual(running.count().running, 2)
      const next = yield* Effect.forkChild(running.enter("c"), { startImmediately: true })
      running.leave("a")
      yield* Effect.yieldNow
      assert.isUndefined(next.pollUnsafe())
      running.leave("b")
      assert.isTrue(yield* Fiber.join(next))
      assert.deepStrictEqual(running.count(), { running: 1, queued: 0 })
    })
  )

  it.live("P65: no place is lost, whenever the call is cancelled", () =>
    Effect.gen(function* () {
      const held = yield* Deferred.make<void>()
      const hold = Tool.make("hold", { execute: () => Deferred.await(held) })
      const quick = Tool.make("quick", { execute: () => Effect.succeed("quick") })
      const { calls } = yield* Processes.start([hold, quick], { settings: { maxRunning: 1, maxQueued: 1 } })
      const call = (name: string) => Effect.orDie(calls.start(Processes.request(name), Processes.silent))
      // A fiber that gives way after every step can be interrupted after every step. (Two steps go for giving way.)
      const stepwise = Effect.provideService(References.MaxOpsBeforeYield, 3)
      const cancelled = (name: string, steps: number) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(stepwise(call(name)), { startImmediately: true })
          for (let step = 0; step < steps; step++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          yield* until(calls.count, ({ fibers }) => fibers <= 1)
        })
      for (let steps = 0; steps < 120; steps++) {
        yield* cancelled("quick", steps)
        assert.strictEqual(Processes.goodText(yield* call("quick")), "quick", `after ${steps} steps`)
      }
      // And so for one that waits in the queue.
      for (let steps = 0; steps < 80; steps++) {
        const holder = yield* Effect.forkChild(call("hold"), { startImmediately: true })
        yield* until(calls.count, ({ attached }) => attached === 1)
        const waiting = yield* Effect.forkChild(stepwise(call("quick")), { startImmediately: true })
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow
        yield* Effect.forkChild(Fiber.interrupt(holder), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        yield* until(calls.count, ({ fibers }) => fibers === 0)
        assert.strictEqual(Processes.goodText(yield* call("quick")), "quick", `after ${steps} steps`)
      }
    })
  )
})

// ----- over a listening server

const verifier = TokenVerifier.layer({
  verify: (token) =>
    Effect.succeed({ principal: Redacted.value(token), clientId: "cli", scopes: [], expiresAt: 4_102_444_800 })
})

const bearer = (principal: string) => ({ authorization: `Bearer ${principal}` })

const served = (more: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const counts = { running: 0, most: 0, runs: 0 }
    const gate = yield* Deferred.make<void>()
    const wait = Tool.make("wait", {
      execute: () =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            counts.runs++
            counts.running++
            counts.most = Math.max(counts.most, counts.running)
          }),
          () => Effect.as(Deferred.await(gate), "waited"),
          () =>
            Effect.sync(() => {
              counts.running--
            })
        )
    })
    const confirm = Tool.make("confirm", { execute: () => Effect.map(Elicitor.confirm("Sure?"), String) })
    const crowd = Tool.make("crowd", {
      parameters: Schema.Struct({ size: Schema.Int }),
      execute: ({ size }) =>
        Effect.map(
          Effect.all(
            Array.from({ length: size }, (_, index) =>
              Effect.match(Elicitor.confirm(`${index}?`), { onSuccess: String, onFailure: ({ message }) => message })
            ),
            { concurrency: "unbounded" }
          ),
          (answers) => answers.join("\n")
        )
    })
    const big = Tool.make("big", {
      parameters: Schema.Struct({ size: Schema.Int }),
      execute: ({ size }) => Effect.succeed("x".repeat(size))
    })
    const listening = yield* listen({
      registrations: McpServer.tools(wait, confirm, crowd, big),
      around: verifier,
      ...more
    })
    return { counts, openGate: Effect.asVoid(Deferred.succeed(gate, undefined)), ...listening }
  })

const busy = 'mcpserver: tool "wait": the server is busy; try again later'

/** The text of a result, be it good or an error. */
const anyText = (answer: Answer): string => responseOf(answer).result?.content?.[0]?.text ?? answer.text

describe("bounds that a client meets", () => {
  it.live(
    "M84: so many calls run at once, so many wait for their turn, and the next one is told that the server is busy",
    () =>
      Effect.gen(function* () {
        const { count, counts, openGate, url } = yield* served({ maxRunning: 3, maxQueued: 2 })
        const call = (id: number) => Effect.map(ask(url, modernAsk("wait", { id, headers: bearer(`p${id}`) })), anyText)
        const five = yield* Effect.forkChild(Effect.all([1, 2, 3, 4, 5].map(call), { concurrency: "unbounded" }), {
          startImmediately: true
        })
        yield* until(
          Effect.sync(() => counts.running),
          (running) => running === 3
        )
        // The other two are on their way into the queue: once it is full, there is no waiting any more.
        const sixth = yield* Effect.repeat(Effect.timeoutOption(call(6), "300 millis"), {
          until: (answer) => answer._tag === "Some"
        })
        assert.strictEqual(sixth._tag === "Some" ? sixth.value : "", busy)
        yield* openGate
        const answers = yield* Fiber.join(five)
        assert.deepStrictEqual(
          answers.filter((text) => text !== busy),
          answers.filter((text) => text === "waited")
        )
        assert.isAtLeast(answers.filter((text) => text === "waited").length, 3)
        assert.strictEqual(counts.most, 3)
        yield* until(count, ({ attached, fibers }) => attached + fibers === 0)
      })
  )

  it.live("M84: so many per principal and per session, and others are served meanwhile", () =>
    Effect.gen(function* () {
      const { counts, openGate, url } = yield* served({ maxRunningPerSession: 1, maxQueued: 0 })
      const session = yield* open(url, { headers: bearer("root") })
      const calls = [
        (id: number) => modernAsk("wait", { id, headers: bearer("alice") }),
        (id: number) => legacyAsk(session, legacyCall(id, "wait"), bearer("root"))
      ]
      for (const [index, call] of calls.entries()) {
        yield* Effect.forkScoped(ask(url, call(1)), { startImmediately: true })
        yield* until(
          Effect.sync(() => counts.running),
          (running) => running === index + 1
        )
        assert.strictEqual(anyText(yield* ask(url, call(2))), busy)
      }
      const other = yield* Effect.forkChild(ask(url, modernAsk("wait", { headers: bearer("bob") })), {
        startImmediately: true
      })
      yield* until(
        Effect.sync(() => counts.running),
        (running) => running === 3
      )
      yield* openGate
      assert.strictEqual(textOf(yield* Fiber.join(other)), "waited")
    })
  )

  it.live(
    "M62: so many calls are parked per principal and in all; at the bound the asking fails, and the call goes on",
    () =>
      Effect.gen(function* () {
        const { count, url } = yield* served({ maxParked: 3, maxParkedPerSession: 2 })
        const call = (principal: string) =>
          Effect.map(ask(url, modernAsk("confirm", { headers: bearer(principal) })), responseOf)
        const isParked = (message: { result?: { resultType?: string } }) =>
          message.result?.resultType === "input_required"
        assert.deepStrictEqual([yield* call("alice"), yield* call("alice"), yield* call("bob")].map(isParked), [
          true,
          true,
          true
        ])
        const perPrincipal = yield* call("alice")
        const inAll = yield* call("bob")
        for (const { result } of [perPrincipal, inAll]) {
          assert.strictEqual(result?.isError, true)
          assert.include(result?.content?.[0]?.text, "mcpserver: elicitation: ")
        }
        assert.deepStrictEqual(yield* count, { attached: 0, parked: 3, fibers: 3 })
      })
  )

  it.live("M84: so many questions are open in one call", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ maxQuestions: 3 })
      const headers = bearer("alice")
      const params = { arguments: { size: 5 } }
      const { result } = responseOf(yield* ask(url, modernAsk("crowd", { headers, params })))
      assert.lengthOf(Object.keys(result?.inputRequests ?? {}), 3)
      const inputResponses = Object.fromEntries(
        Object.keys(result?.inputRequests ?? {}).map((id) => [id, { action: "accept", content: { confirm: true } }])
      )
      const last = yield* ask(
        url,
        modernAsk("crowd", {
          id: 2,
          headers,
          params: { ...params, requestState: result?.requestState, inputResponses }
        })
      )
      const answers = textOf(last).split("\n")
      assert.deepStrictEqual(answers.slice(0, 3), ["true", "true", "true"])
      for (const refused of answers.slice(3)) assert.include(refused, "mcpserver: elicitation: ")
      assert.lengthOf(answers, 5)
    })
  )

  it.live("M30: a result above its bound becomes an error that says so, in both eras", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ maxResultBytes: 1000 })
      const headers = bearer("alice")
      const session = yield* open(url, { headers })
      const calls = [
        (size: number) => modernAsk("big", { headers, params: { arguments: { size } } }),
        (size: number) => legacyAsk(session, legacyCall(1, "big", { size }), headers)
      ]
      for (const call of calls) {
        assert.lengthOf(textOf(yield* ask(url, call(500))), 500)
        const { result } = responseOf(yield* ask(url, call(2000)))
        assert.strictEqual(result?.isError, true)
        assert.match(
          result?.content?.[0]?.text ?? "",
          /^mcpserver: tool "big": the result is too large: \d+ bytes, at most 1000 are allowed$/
        )
      }
    })
  )

  it.live("M84: so many sessions; one more is 503 with when to come again, and one that ends makes room", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ maxSessions: 2 })
      const headers = bearer("alice")
      const [first] = [yield* open(url, { headers }), yield* open(url, { headers })]
      const refused = yield* ask(url, { message: initialize, headers })
      assert.strictEqual(refused.status, 503)
      assert.match(refused.headers["retry-after"] ?? "", /^\d+$/)
      assert.notProperty(refused.headers, "mcp-session-id")
      // Requests of 2026-07-28 need no session.
      assert.strictEqual(
        textOf(yield* ask(url, modernAsk("big", { headers, params: { arguments: { size: 1 } } }))),
        "x"
      )
      assert.strictEqual(
        (yield* ask(url, { method: "DELETE", headers: { ...inSession(first), ...headers } })).status,
        200
      )
      yield* open(url, { headers })
    })
  )

  it.live("M84: a handshake that is refused holds no session", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ maxSessions: 1 })
      const headers = bearer("alice")
      for (let times = 1; times <= 3; times++) {
        const wrong = { ...initialize, params: { protocolVersion: 7 } }
        const refused = yield* ask(url, { message: wrong, headers })
        assert.notProperty(refused.headers, "mcp-session-id", `${refused.status} ${refused.text}`)
        const notAcceptable = yield* ask(url, { message: initialize, headers: { ...headers, accept: "text/html" } })
        assert.strictEqual(notAcceptable.status, 406)
      }
      yield* open(url, { headers })
    })
  )
})
