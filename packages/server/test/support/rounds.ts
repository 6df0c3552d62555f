/**
 * What 2026-07-28 adds: a question is the answer of the call, and the client comes back with the next request. Every
 * request here is written by hand.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  errorOf,
  errorText,
  goodText,
  layer as linkLayer,
  type LinkService,
  type Message,
  modern,
  on,
  type Options,
  resultOf,
  sendCall,
  sendCallAndWait,
  type SendOptions,
  textOf,
  until,
  within
} from "./Link.ts"

type Responses = Readonly<Record<string, unknown>>

const accept = (content: Readonly<Record<string, unknown>>) => ({ action: "accept", content })
const staging = accept({ environment: "staging" })
const confirmed = accept({ confirm: true })

/** The next request of a call: its answers, under the state of the round. */
const back = (
  link: LinkService,
  name: string,
  state: unknown,
  responses: Responses,
  options: SendOptions & { readonly args?: unknown } = {}
) =>
  Effect.flatMap(
    link.send(
      "tools/call",
      { name, arguments: options.args ?? {}, requestState: state, inputResponses: responses },
      options
    ),
    ({ response }) => within("the next turn", response)
  )

/** The state and the questions of a round. */
const roundOf = (message: Message) => {
  const { content, inputRequests, requestState, resultType } = resultOf(message)
  assert.strictEqual(resultType, "input_required", JSON.stringify(message))
  assert.isUndefined(content)
  assert.isDefined(requestState)
  assert.isDefined(inputRequests)
  return { state: requestState, requests: inputRequests, ids: Object.keys(inputRequests) }
}

const notWaiting = (tool: string) =>
  `mcpserver: tool "${tool}": the call these answers belong to is no longer waiting for them; call the tool again`

export const suite = (transport: Options["transport"]): void => {
  layer(linkLayer({ transport, era: modern }), { excludeTestServices: true, timeout: "30 seconds" })(
    `${transport}: rounds`,
    (it) => {
      it.effect(
        "M52, M63: a round is the answer of the call, under an unguessable state that says nothing",
        on((link) =>
          Effect.gen(function* () {
            const first = yield* sendCallAndWait(link, "ask", { build: "b7" })
            const { requests, state } = roundOf(first)
            assert.match(state, /^[0-9a-f]{32}/)
            assert.notInclude(state, "ask")
            assert.deepStrictEqual(requests, {
              elicit_1: {
                method: "elicitation/create",
                params: {
                  mode: "form",
                  message: "Deploy b7 where?",
                  requestedSchema: {
                    type: "object",
                    properties: { environment: { type: "string", enum: ["staging", "production"] } },
                    required: ["environment"]
                  }
                }
              }
            })
            assert.strictEqual((yield* link.counts).parked, 1)
            assert.strictEqual(goodText(yield* back(link, "ask", state, { elicit_1: staging })), "b7 to staging")
          })
        )
      )

      it.effect(
        "M54, M56: every round has a state and an id of its own, and arguments of a resume are not looked at",
        on((link) =>
          Effect.gen(function* () {
            const first = roundOf(yield* sendCallAndWait(link, "ask_twice"))
            const wrong = { args: { not: "checked", at: ["all"] } }
            const second = roundOf(yield* back(link, "ask_twice", first.state, { elicit_1: staging }, wrong))
            assert.notStrictEqual(second.state, first.state)
            assert.deepStrictEqual([first.ids, second.ids], [["elicit_1"], ["elicit_2"]])
            const last = yield* back(link, "ask_twice", second.state, { elicit_2: confirmed }, wrong)
            assert.strictEqual(goodText(last), "staging: true")
          })
        )
      )

      it.effect(
        "M53: questions asked together go in one round, and each gets its own answer",
        on((link) =>
          Effect.gen(function* () {
            const { ids, state } = roundOf(yield* sendCallAndWait(link, "ask_both"))
            assert.deepStrictEqual(ids, ["elicit_1", "elicit_2"])
            const answers = { elicit_2: confirmed, elicit_1: staging }
            assert.strictEqual(goodText(yield* back(link, "ask_both", state, answers)), "staging, true")
          })
        )
      )

      it.effect(
        "M55: a spent state is an error result, an invented one a protocol error, and nothing is run for either",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
            yield* back(link, "ask", state, { elicit_1: staging })
            const before = yield* link.counts
            assert.strictEqual(errorText(yield* back(link, "ask", state, { elicit_1: staging })), notWaiting("ask"))
            for (const invented of ["0123456789abcdef0123456789abcdef", `${state}0`, "x", state.toUpperCase()]) {
              if (invented === state) continue
              const { code, message } = errorOf(yield* back(link, "ask", invented, { elicit_1: staging }))
              assert.strictEqual(code, -32602)
              assert.include(message, notWaiting("ask"))
            }
            assert.deepStrictEqual((yield* link.counts).runs, before.runs)
          })
        )
      )

      it.effect(
        "M54, M55: a state shown to another tool is refused and stays good",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
            const { code, message } = errorOf(yield* back(link, "ask_other", state, { elicit_1: staging }))
            assert.strictEqual(code, -32602)
            assert.include(message, notWaiting("ask_other"))
            assert.strictEqual((yield* link.counts).parked, 1)
            assert.strictEqual(goodText(yield* back(link, "ask", state, { elicit_1: staging })), "b to staging")
          })
        )
      )

      it.effect(
        "M55: of two requests with one state, one goes on and the other is refused",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
            const both = yield* Effect.all(
              [back(link, "ask", state, { elicit_1: staging }), back(link, "ask", state, { elicit_1: staging })],
              { concurrency: 2 }
            )
            assert.deepStrictEqual(both.map((message) => textOf(resultOf(message))).sort(), [
              "b to staging",
              notWaiting("ask")
            ])
          })
        )
      )

      it.effect(
        "M56: an empty state is none, and one that is no text is a protocol error",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* back(link, "ask", "", {}, { args: { build: "new" } }))
            assert.strictEqual(goodText(yield* back(link, "ask", state, { elicit_1: staging })), "new to staging")
            for (const odd of [7, {}]) {
              const { error } = yield* back(link, "ask", odd, {}, { args: { build: "b" } })
              assert.isDefined(error)
            }
          })
        )
      )

      it.effect(
        "M51: an answer that is left out is asked for again, under its id, and the others are delivered",
        on((link) =>
          Effect.gen(function* () {
            const first = roundOf(yield* sendCallAndWait(link, "ask_both"))
            const second = roundOf(yield* back(link, "ask_both", first.state, { elicit_2: confirmed }))
            assert.deepStrictEqual<unknown>(second.requests, { elicit_1: first.requests.elicit_1 })
            const third = roundOf(yield* back(link, "ask_both", second.state, {}))
            assert.deepStrictEqual(third.requests, second.requests)
            assert.strictEqual(
              goodText(yield* back(link, "ask_both", third.state, { elicit_1: staging })),
              "staging, true"
            )
          })
        )
      )

      it.effect(
        "M51: answers that nobody asked for are ignored",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
            const answers = { elicit_0: confirmed, elicit_2: confirmed, constructor: confirmed, elicit_1: staging }
            assert.strictEqual(goodText(yield* back(link, "ask", state, answers)), "b to staging")
          })
        )
      )

      it.effect(
        "M51: what the tool gets for each kind of answer",
        on((link) =>
          Effect.gen(function* () {
            const failed = (words: string) => `1: mcpserver: elicitation answer: ${words}`
            for (const [answer, expected] of [
              [{ action: "decline", content: { confirm: true } }, "1: decline"],
              [{ action: "cancel" }, "1: cancel"],
              [{ action: "accept", content: { confirm: "yes" } }, /^1: mcpserver: elicitation answer: .*confirm/],
              [{ action: "accept", content: "yes" }, /^1: mcpserver: elicitation answer: /],
              [{ action: "maybe" }, failed('unknown action "maybe"')],
              [{ roots: [] }, failed("the client answered with a roots result")],
              [
                { role: "assistant", model: "m", content: { type: "text", text: "" } },
                failed("the client answered with a sampling result")
              ],
              ["yes", /^1: mcpserver: elicitation answer: the client answered with /],
              // Accepted without content: `{}` is decoded in its place, which does not fit here.
              [{ action: "accept" }, /^1: elicitation answer: .*confirm/]
            ] as const) {
              const { state } = roundOf(yield* sendCallAndWait(link, "ask_many", { times: 1 }))
              const text = goodText(yield* back(link, "ask_many", state, { elicit_1: answer }))
              if (typeof expected === "string") assert.strictEqual(text, expected)
              else assert.match(text, expected)
            }
          })
        )
      )

      it.effect(
        "M51: an accepted answer without content is not checked",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask_raw", { kind: "titled" }))
            const text = goodText(yield* back(link, "ask_raw", state, { elicit_1: { action: "accept" } }))
            assert.strictEqual(text, '{"action":"accept"}')
          })
        )
      )

      it.effect(
        "M57: a client makes ten requests of a call; what the tool asks then fails, and the tool goes on",
        on((link) =>
          Effect.gen(function* () {
            let { ids, state } = roundOf(yield* sendCallAndWait(link, "ask_many", { times: 20 }))
            for (let request = 2; request <= 9; request++) {
              const round = roundOf(yield* back(link, "ask_many", state, { [String(ids[0])]: confirmed }))
              ids = round.ids
              state = round.state
            }
            assert.deepStrictEqual(ids, ["elicit_9"])
            assert.strictEqual(
              goodText(yield* back(link, "ask_many", state, { elicit_9: confirmed })),
              "10: mcpserver: elicitation: the client makes 10 requests of a call at most and this question would need " +
                "one more; ask fewer questions, or ask them together"
            )
          })
        )
      )

      it.effect(
        "M51, M57: on the last request an answer that is left out is cancel",
        on((link) =>
          Effect.gen(function* () {
            let { state } = roundOf(yield* sendCallAndWait(link, "ask_many", { times: 1 }))
            for (let request = 2; request <= 9; request++) {
              state = roundOf(yield* back(link, "ask_many", state, {})).state
            }
            assert.strictEqual(goodText(yield* back(link, "ask_many", state, {})), "1: cancel")
          })
        )
      )

      it.effect(
        "M46: what the first request offered holds; a later one that cannot carry the question answers it cancel",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask_twice"))
            const last = yield* back(link, "ask_twice", state, { elicit_1: staging }, { capabilities: {} })
            assert.strictEqual(goodText(last), "staging: cancel")
          })
        )
      )

      it.effect(
        "M59: a client gives up by answering cancel, and a late cancellation changes nothing",
        on((link) =>
          Effect.gen(function* () {
            const { cancel, response } = yield* sendCall(link, "ask", { build: "b" })
            const { state } = roundOf(yield* response)
            yield* cancel
            yield* link.notify("notifications/cancelled", { requestId: "raw-0" })
            assert.strictEqual((yield* link.counts).parked, 1)
            assert.strictEqual(goodText(yield* back(link, "ask", state, { elicit_1: { action: "cancel" } })), "cancel")
          })
        )
      )

      it.effect(
        "M73: updates go to the request that waits, with its token, and to none if it has none",
        on((link) =>
          Effect.gen(function* () {
            const first = yield* sendCall(link, "steps_around", {}, { token: "first" })
            const { state } = roundOf(yield* first.response)
            const second = yield* link.send(
              "tools/call",
              { name: "steps_around", requestState: state, inputResponses: { elicit_1: confirmed } },
              { token: "second" }
            )
            assert.strictEqual(goodText(yield* second.response), "accept")
            const updates = [...first.seen, ...second.seen].map(({ params }) => params)
            assert.deepStrictEqual(updates, [
              { progressToken: "first", progress: 1, message: "before" },
              { progressToken: "second", progress: 2, message: "after" }
            ])

            const silent = yield* sendCall(link, "steps_around", {}, { token: "third" })
            const round = roundOf(yield* silent.response)
            const before = link.received.length
            yield* back(link, "steps_around", round.state, { elicit_1: confirmed })
            assert.lengthOf(link.received.slice(before), 1)
          })
        )
      )

      it.effect(
        "M52: an answer that comes with the first request is used once, by its key, if it fits",
        on((link) =>
          Effect.gen(function* () {
            const start = (keys: ReadonlyArray<string>, responses: Responses) =>
              Effect.flatMap(
                link.send("tools/call", { name: "ask_keyed", arguments: { keys }, inputResponses: responses }),
                ({ response }) => response
              )
            assert.strictEqual(goodText(yield* start(["where"], { where: staging, other: confirmed })), "staging")
            // Once: the same key is asked for when it is used again.
            const again = roundOf(yield* start(["where", "where"], { where: staging }))
            assert.deepStrictEqual(again.ids, ["where"])
            const text = goodText(yield* back(link, "ask_keyed", again.state, { where: { action: "decline" } }))
            assert.strictEqual(text, "staging; decline")
            // Not at all if it does not fit.
            const unfit = roundOf(yield* start(["where"], { where: accept({ environment: "moon" }) }))
            assert.strictEqual(goodText(yield* back(link, "ask_keyed", unfit.state, { where: staging })), "staging")
          })
        )
      )

      it.effect(
        "M52: a key that is open, or looks like a number, is a failure of asking",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* sendCallAndWait(link, "ask_keyed", {
              keys: ["where", "where", "elicit_5"],
              together: true
            })
            const { ids, state } = roundOf(call)
            assert.deepStrictEqual(ids, ["where"])
            const parts = goodText(yield* back(link, "ask_keyed", state, { where: staging })).split("; ")
            assert.strictEqual(parts[0], "staging")
            assert.match(parts[1] ?? "", /^mcpserver: elicitation: .*"where" is in use/)
            assert.match(parts[2] ?? "", /^mcpserver: elicitation: .*"elicit_5"/)
          })
        )
      )

      it.effect(
        "M54, M64: a parked call answers to its own session only, where a session outlives a request",
        on((link) =>
          Effect.gen(function* () {
            if (link.transport === "stdio") return // its process is the session
            const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
            yield* Effect.scoped(
              Effect.gen(function* () {
                const other = yield* link.another()
                const message = yield* back(other, "ask", state, { elicit_1: staging })
                if (link.transport === "http") assert.strictEqual(goodText(message), "b to staging")
                else {
                  const { code, message: text } = errorOf(message)
                  assert.strictEqual(code, -32602)
                  assert.include(text, notWaiting("ask"))
                  assert.strictEqual((yield* link.counts).parked, 1)
                }
              })
            )
            if (link.transport === "memory") {
              assert.strictEqual(goodText(yield* back(link, "ask", state, { elicit_1: staging })), "b to staging")
            }
          })
        )
      )

      it.effect(
        "M28, M60: a request that is cancelled in a later round ends the call",
        on((link) =>
          Effect.gen(function* () {
            const { state } = roundOf(yield* sendCallAndWait(link, "ask_then_hold"))
            const second = yield* link.send("tools/call", {
              name: "ask_then_hold",
              requestState: state,
              inputResponses: { elicit_1: confirmed }
            })
            yield* until(link.counts, ({ attached, parked }) => attached === 1 && parked === 0)
            yield* second.cancel
            yield* until(link.counts, ({ attached, fibers }) => attached === 0 && fibers === 0)
            assert.lengthOf(
              link.received.filter((message) => message.id === second.id),
              0
            )
            assert.strictEqual(
              errorText(yield* back(link, "ask_then_hold", state, { elicit_1: confirmed })),
              notWaiting("ask_then_hold")
            )
          })
        )
      )
    }
  )

  layer(linkLayer({ transport, era: modern, settings: { abandonAfter: 1_000, maxRequests: -1, maxParked: 2 } }), {
    excludeTestServices: true,
    timeout: "30 seconds"
  })(`${transport}: rounds with other settings`, (it) => {
    it.effect(
      "M58: a call whose client does not come back is stopped, and its state is spent",
      on((link) =>
        Effect.gen(function* () {
          const { state } = roundOf(yield* sendCallAndWait(link, "ask", { build: "b" }))
          yield* until(link.counts, ({ fibers, parked }) => parked === 0 && fibers === 0)
          yield* until(Effect.sync(link.log), (log) => log.includes("released ask"))
          assert.strictEqual(errorText(yield* back(link, "ask", state, { elicit_1: staging })), notWaiting("ask"))
        })
      )
    )

    it.effect(
      "M58, M59: a client that stops waiting while its user is asked says nothing, and its call is stopped in time",
      on((link) =>
        Effect.gen(function* () {
          const call = yield* Effect.forkChild(link.call("ask", { build: "b" }))
          yield* link.question
          yield* Fiber.interrupt(call)
          yield* until(link.counts, ({ fibers, parked }) => parked === 0 && fibers === 0)
        })
      )
    )

    it.effect(
      "M57: a negative number of requests is no limit",
      on((link) =>
        Effect.gen(function* () {
          let { ids, state } = roundOf(yield* sendCallAndWait(link, "ask_many", { times: 12 }))
          for (let request = 2; request <= 12; request++) {
            const round = roundOf(yield* back(link, "ask_many", state, { [String(ids[0])]: confirmed }))
            ids = round.ids
            state = round.state
          }
          assert.strictEqual(
            goodText(yield* back(link, "ask_many", state, { elicit_12: confirmed })),
            "answered 12 times"
          )
        })
      )
    )

    it.effect(
      "M62: at the bound of parked calls asking fails, and the tool may go on",
      on((link) =>
        Effect.gen(function* () {
          const parked = yield* Effect.forEach([1, 2], () => sendCallAndWait(link, "ask_many", { times: 1 }))
          const text = goodText(yield* sendCallAndWait(link, "ask_many", { times: 1 }))
          assert.match(text, /^1: mcpserver: elicitation: too many calls are waiting/)
          for (const message of parked) yield* back(link, "ask_many", roundOf(message).state, { elicit_1: confirmed })
          roundOf(yield* sendCallAndWait(link, "ask_many", { times: 1 }))
        })
      )
    )
  })
}
