/**
 * Hundreds of calls at once, in random order: whatever their clients do, nothing is left of them.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import type { Calls } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random, Schema } from "effect"
import { TestClock } from "effect/testing"
import { accept, asked, nothingLeft, reply, request, silent, start, whyOf } from "./processes.ts"

const Sure = Schema.Struct({ confirm: Schema.Boolean })
const yes = accept({ confirm: true })

/** Asks, works, forks and fails as its arguments say. */
const fixture = () => {
  const held = { acquired: 0, released: 0 }
  const tool = Tool.make("storm", {
    parameters: Schema.Struct({
      rounds: Schema.Int,
      together: Schema.Int,
      work: Schema.Int,
      end: Schema.Literals(["value", "failure", "defect", "never"])
    }),
    execute: Effect.fn(function* ({ end, rounds, together, work }) {
      yield* Effect.acquireRelease(
        Effect.sync(() => void held.acquired++),
        () => Effect.sync(() => void held.released++)
      )
      for (let round = 1; round <= rounds; round++) {
        yield* Progress.report(`round ${round}`)
        yield* Effect.forEach(
          Array.from({ length: together }),
          () => Elicitor.ask({ message: "Sure?", schema: Sure }),
          { concurrency: "unbounded", discard: true }
        )
        if (work > 0) yield* Effect.sleep(work)
      }
      if (end === "failure") return yield* Effect.fail("failed")
      if (end === "defect") return yield* Effect.die("died")
      return end === "never" ? yield* Effect.never : "done"
    })
  })
  return { held, tool }
}

/** What a client does with a round. */
const moves = ["answer", "answer", "answer", "some", "cancel", "give up", "wrong", "twice", "leave"] as const

type Counts = Record<(typeof moves)[number] | "ended" | "cancelled while it ran", number>

describe("a storm of calls", () => {
  for (const seed of ["one", "two", "three"]) {
    it.effect(
      "M61, M62: 500 calls that ask, are answered, cancelled, abandoned and stopped leave nothing behind",
      () =>
        Effect.gen(function* () {
          const { held, tool } = fixture()
          const settings = { maxParkedPerSession: 60, abandonAfter: "1 minute" } as const
          const process = yield* start([tool], { settings })
          const { calls } = process
          const seen: Counts = {
            answer: 0,
            some: 0,
            cancel: 0,
            "give up": 0,
            wrong: 0,
            twice: 0,
            leave: 0,
            ended: 0,
            "cancelled while it ran": 0
          }
          const states: Array<string> = []

          /** Waits for a turn, or loses patience: interrupting is the client's cancellation. */
          const patiently = <E>(turn: Effect.Effect<Calls.Turn, E>) =>
            Effect.gen(function* () {
              const impatient = (yield* Random.nextIntBetween(0, 6)) === 0
              if (!impatient) return yield* turn
              const waiting = yield* Effect.forkChild(turn, { startImmediately: true })
              yield* Effect.sleep(yield* Random.nextIntBetween(0, 20))
              const ended = waiting.pollUnsafe() !== undefined
              if (!ended) seen["cancelled while it ran"]++
              yield* Fiber.interrupt(waiting)
              return ended ? yield* Fiber.join(waiting) : undefined
            })

          const play = (binding: Calls.Binding, args: Schema.JsonObject) =>
            Effect.gen(function* () {
              let turn = yield* patiently(calls.start(request("storm", { arguments: args, binding }), silent))
              while (turn?._tag === "Asked") {
                const { questions, state } = turn
                states.push(state)
                const move = moves[yield* Random.nextIntBetween(0, moves.length)] ?? "answer"
                seen[move]++
                const all = Object.fromEntries(questions.map(({ id }) => [id, yes]))
                const back = (responses: Record<string, Schema.Json>, from = binding) =>
                  calls.resume(reply("storm", state, responses, { binding: from }), silent)
                yield* Effect.sleep(yield* Random.nextIntBetween(0, 50))
                switch (move) {
                  case "answer":
                    turn = yield* patiently(back({ ...all, unasked: yes }))
                    break
                  case "some":
                    turn = yield* patiently(back(Object.fromEntries(questions.slice(1).map(({ id }) => [id, yes]))))
                    break
                  case "cancel":
                    turn = yield* patiently(
                      back(Object.fromEntries(questions.map(({ id }) => [id, { action: "cancel" }])))
                    )
                    break
                  case "give up":
                    yield* calls.interrupt({ state }, "SessionEnded")
                    return
                  case "wrong":
                    // "spent" if it was stopped meanwhile; then the right one fails below.
                    assert.include(["foreign", "spent"], yield* whyOf(back(all, { session: "nobody's" })))
                    turn = yield* patiently(back(all))
                    break
                  case "twice": {
                    // Both at once: one goes on, the other is told that it is too late.
                    const [one, other] = yield* Effect.all([Effect.exit(back(all)), Effect.exit(back(all))], {
                      concurrency: 2
                    })
                    const good = [one, other].filter(({ _tag }) => _tag === "Success")
                    assert.isAtMost(good.length, 1)
                    turn = yield* good[0] ?? one
                    break
                  }
                  case "leave":
                    return
                }
              }
              if (turn !== undefined) seen.ended++
            }).pipe(
              // Stopped meanwhile, from outside.
              Effect.catchTag("NotWaiting", ({ why }) => Effect.sync(() => assert.strictEqual(why, "spent")))
            )

          const players = yield* Effect.forEach(Array.from({ length: 500 }), (_, i) =>
            Effect.gen(function* () {
              const binding = { session: `session ${i % 10}` }
              const ends = ["value", "value", "failure", "defect", "never"]
              const args = {
                rounds: yield* Random.nextIntBetween(0, 4),
                together: yield* Random.nextIntBetween(1, 4),
                work: (yield* Random.nextIntBetween(0, 3)) * 10,
                end: ends[yield* Random.nextIntBetween(0, ends.length)] ?? "value"
              }
              return yield* Effect.forkChild(Effect.andThen(Effect.sleep(i % 40), play(binding, args)))
            })
          )
          yield* TestClock.adjust("10 millis")
          // One session ends in the middle of it all.
          yield* calls.interrupt({ session: "session 3" }, "SessionEnded")
          yield* TestClock.adjust("10 seconds")
          // What never ends is stopped with its sessions, what nobody came back for by its time.
          for (let session = 0; session < 10; session++) {
            if (session % 2 === 0) yield* calls.interrupt({ session: `session ${session}` }, "SessionEnded")
          }
          yield* TestClock.adjust("2 minutes")
          for (let session = 0; session < 10; session++) {
            yield* calls.drain({ session: `session ${session}` }, "SessionEnded", 0)
          }
          yield* Effect.forEach(players, Fiber.join)

          yield* nothingLeft(process)
          assert.strictEqual(held.acquired, held.released)
          assert.isAtLeast(held.acquired, 450)
          // All of it happened.
          for (const [what, times] of Object.entries(seen)) assert.isAbove(times, 5, what)
          assert.strictEqual(new Set(states).size, states.length)
          for (const state of states) {
            const back = calls.resume(reply("storm", state, {}, { binding: { session: "session 0" } }), silent)
            assert.strictEqual(yield* whyOf(back), "spent")
          }
          // No session has lost a place to park: there are exactly as many as at the start.
          const binding = { session: "session 0" }
          const asks = { rounds: 1, together: 1, work: 0, end: "value" }
          const park = calls.start(request("storm", { arguments: asks, binding }), silent)
          for (let call = 0; call < 60; call++) asked(yield* park)
          assert.strictEqual((yield* park)._tag, "Done")
          yield* TestClock.adjust("1 minute")
          yield* nothingLeft(process)
        }).pipe(Random.withSeed(seed)),
      { timeout: 30_000 }
    )
  }
})
