/**
 * What the 2025 eras do instead: a question is a request of the server while the call is open.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  errorText,
  goodText,
  layer as linkLayer,
  on,
  type Options,
  sendCall,
  sendCallAndWait,
  textOf,
  until,
  within
} from "./Link.ts"

const era = "2025-11-25"

export const suite = (transport: Options["transport"]): void => {
  layer(linkLayer({ transport, era }), { excludeTestServices: true, timeout: "30 seconds" })(
    `${transport}: pushed questions`,
    (it) => {
      it.effect(
        "M65: the question is a request while the call is open, and the call gets one plain return",
        on((link) =>
          Effect.gen(function* () {
            const before = link.received.length
            const { id, response } = yield* sendCall(link, "ask_twice")
            for (const content of [{ environment: "staging" }, { confirm: true }]) {
              assert.strictEqual((yield* link.counts).attached, 1)
              yield* (yield* link.question).reply({ action: "accept", content })
            }
            assert.strictEqual(goodText(yield* response), "staging: true")
            const sent = link.received.slice(before)
            assert.lengthOf(
              sent.filter(({ method }) => method === "elicitation/create"),
              2
            )
            assert.lengthOf(
              sent.filter((message) => message.id === id),
              1
            )
          })
        )
      )

      it.effect(
        "M65, M67: a client that cancels while the question is open ends the call, and the question is withdrawn",
        on((link) =>
          Effect.gen(function* () {
            const { cancel, id } = yield* sendCall(link, "ask", { build: "b" })
            const question = yield* link.question
            yield* cancel
            yield* within("the question to be withdrawn", question.withdrawn)
            yield* until(link.counts, ({ attached, fibers }) => attached === 0 && fibers === 0)
            // The answer may come all the same, and changes nothing.
            yield* question.reply({ action: "accept", content: { environment: "staging" } })
            assert.strictEqual(textOf(yield* link.call("echo", { text: "on" })), "on")
            assert.lengthOf(
              link.received.filter((message) => message.id === id),
              0
            )
          })
        )
      )

      it.effect(
        "M65: a call that the client of the SDK cancels takes its question with it",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask", { build: "b" }))
            const question = yield* link.question
            yield* Fiber.interrupt(call)
            yield* within("the question to be withdrawn", question.withdrawn)
          })
        )
      )

      it.effect(
        "M66: a client that fails to ask fails the asking, which the tool may catch",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_many", { times: 1 }))
            yield* (yield* link.question).fail("no dialog today")
            assert.match(textOf(yield* Fiber.join(call)), /^1: mcpserver: elicitation: .*no dialog today/)
          })
        )
      )

      it.effect(
        "M66: the answer's content is checked",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_many", { times: 1 }))
            yield* (yield* link.question).reply({ action: "accept", content: { confirm: "yes" } })
            assert.match(textOf(yield* Fiber.join(call)), /^1: mcpserver: elicitation( answer)?: .*confirm/)
          })
        )
      )

      it.effect(
        "M57, M67: there is no limit of requests",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_many", { times: 12 }))
            for (let time = 1; time <= 12; time++) {
              yield* (yield* link.question).reply({ action: "accept", content: { confirm: true } })
            }
            assert.strictEqual(textOf(yield* Fiber.join(call)), "answered 12 times")
          })
        )
      )

      it.effect(
        "M73: updates before and after a question carry the call's token",
        on((link) =>
          Effect.gen(function* () {
            const { response, seen } = yield* sendCall(link, "steps_around", {}, { token: "t" })
            yield* (yield* link.question).reply({ action: "accept", content: { confirm: true } })
            assert.strictEqual(goodText(yield* response), "accept")
            assert.deepStrictEqual(
              seen.map(({ params }) => params),
              [
                { progressToken: "t", progress: 1, message: "before" },
                { progressToken: "t", progress: 2, message: "after" }
              ]
            )
          })
        )
      )

      it.effect(
        "M68: the tool is started once, whatever it asks",
        on((link) =>
          Effect.gen(function* () {
            const { runs } = yield* link.counts
            const call = yield* Effect.forkChild(link.call("ask_many", { times: 3 }))
            for (let time = 1; time <= 3; time++) {
              yield* (yield* link.question).reply({ action: "accept", content: { confirm: true } })
            }
            yield* Fiber.join(call)
            assert.strictEqual((yield* link.counts).runs.ask_many, (runs.ask_many ?? 0) + 1)
          })
        )
      )
    }
  )

  layer(linkLayer({ transport, era, settings: { abandonAfter: 250 } }), {
    excludeTestServices: true,
    timeout: "30 seconds"
  })(`${transport}: pushed questions with other settings`, (it) => {
    it.effect(
      "M28, M67: a question that nobody answers is withdrawn and its call stopped, with words to the client",
      on((link) =>
        Effect.gen(function* () {
          const { response } = yield* sendCall(link, "ask", { build: "b" })
          const question = yield* link.question
          assert.strictEqual(
            errorText(yield* within("the result", response)),
            'mcpserver: tool "ask": the call was stopped: nobody answered its question in time; call the tool again'
          )
          yield* within("the question to be withdrawn", question.withdrawn)
          yield* until(Effect.sync(link.log), (log) => log.includes("released ask"))
        })
      )
    )

    it.effect(
      "M67: both of two open questions are withdrawn",
      on((link) =>
        Effect.gen(function* () {
          const { response } = yield* sendCall(link, "ask_both")
          const questions = [yield* link.question, yield* link.question]
          assert.include(errorText(yield* within("the result", response)), "nobody answered")
          for (const { withdrawn } of questions) yield* within("a question to be withdrawn", withdrawn)
        })
      )
    )

    it.effect(
      "M58: a tool that works longer than a question may wait is left alone",
      on((link) =>
        Effect.gen(function* () {
          assert.strictEqual(goodText(yield* sendCallAndWait(link, "slow", { millis: 400 })), "slow")
        })
      )
    )
  })
}
