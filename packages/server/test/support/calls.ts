/**
 * What every transport does in both eras: listing, calling, failing, reporting, asking, stopping.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import {
  errorOf,
  errorText,
  goodText,
  layer as linkLayer,
  modern,
  on,
  type Options,
  resultOf,
  sendCall,
  sendCallAndWait,
  textOf,
  until,
  within
} from "./Link.ts"
import * as Tools from "./tools.ts"

export const suite = (options: Options): void =>
  layer(linkLayer(options), { excludeTestServices: true, timeout: "30 seconds" })(
    `${options.transport} ${options.era}: calls`,
    (it) => {
      // ----- listing

      it.effect(
        "M7, M75: tools are listed in the order of their registration, each time, and facts are no tool",
        on((link) =>
          Effect.gen(function* () {
            const list = Effect.promise(() => link.client.listTools())
            const first = yield* list
            assert.deepStrictEqual(
              first.tools.map(({ name }) => name),
              Tools.names
            )
            assert.deepStrictEqual(yield* list, first)
          })
        )
      )

      it.effect(
        "M1, M11, M83: the server says its name, its instructions and that it answers facts",
        on((link) =>
          Effect.sync(() => {
            assert.deepStrictEqual(link.client.getServerVersion(), { name: "suite", version: "1.2.3" })
            assert.strictEqual(link.client.getInstructions(), "Call the tools.")
            assert.deepStrictEqual(link.client.getServerCapabilities(), {
              tools: { listChanged: true },
              experimental: { "io.github.christopherdavenport.agenttool/facts": {} }
            })
          })
        )
      )

      // ----- arguments

      it.effect(
        "S-12, M21, M24: absent arguments are {}, null and [] never reach the tool",
        on((link) =>
          Effect.gen(function* () {
            const before = yield* link.counts
            for (const [tool, expected] of [
              ["nothing", "ran"],
              ["optional", "ran without"]
            ] as const) {
              for (const params of [{ name: tool }, { name: tool, arguments: {} }]) {
                const { response } = yield* link.send("tools/call", params)
                assert.strictEqual(goodText(yield* response), expected)
              }
              for (const wrong of [null, []]) {
                const { response } = yield* link.send("tools/call", { name: tool, arguments: wrong })
                const message = yield* response
                if (message.error === undefined) assert.match(errorText(message), /^invalid arguments: /)
                else assert.strictEqual(message.error.code, -32602)
              }
              const { runs } = yield* link.counts
              assert.strictEqual((runs[tool] ?? 0) - (before.runs[tool] ?? 0), 2)
            }
          })
        )
      )

      it.effect(
        "M21, M29: a tool gets the arguments as they were sent, and its call with an id but no idempotency key",
        on((link) =>
          Effect.gen(function* () {
            const result = yield* link.call("call", { z: 1, b: { y: 1, x: [2] }, a: 3 })
            const call = JSON.parse(textOf(result)) as Record<string, string> // as the tool writes it
            assert.strictEqual(call.text, '{"z":1,"b":{"y":1,"x":[2]},"a":3}')
            assert.strictEqual(call.tool, "call")
            assert.match(call.id ?? "", /^mcp_\d+$/)
            assert.strictEqual(call.idempotencyKey, "none")
            // No default of the schema is filled in.
            const bare = JSON.parse(textOf(yield* link.call("call", { b: 1 }))) as Record<string, string>
            assert.strictEqual(bare.text, '{"b":1}')
          })
        )
      )

      it.effect(
        "S-16, M22: arguments that do not fit are an error result that names the field, and nothing is run",
        on((link) =>
          Effect.gen(function* () {
            const before = yield* link.counts
            const text = errorText(yield* sendCallAndWait(link, "number", { n: "three" }))
            assert.match(text, /^invalid arguments: .*\bn\b/)
            const missing = errorText(yield* sendCallAndWait(link, "number", {}))
            assert.match(missing, /^invalid arguments: .*required/)
            assert.include(missing, "n")
            const supplied = errorText(yield* sendCallAndWait(link, "call", { a: 1 }))
            assert.match(supplied, /^invalid arguments: .*required/)
            assert.include(supplied, "b")
            assert.deepStrictEqual((yield* link.counts).runs, before.runs)
          })
        )
      )

      it.effect(
        "M23: members that no schema speaks of pass",
        on((link) =>
          Effect.gen(function* () {
            assert.strictEqual(textOf(yield* link.call("number", { n: 1, more: true })), "1")
            assert.strictEqual(textOf(yield* link.call("nothing", { more: true })), "ran")
          })
        )
      )

      // ----- results

      it.effect(
        "M25: a name that no tool has is a protocol error",
        on((link) =>
          Effect.gen(function* () {
            const { code, message } = errorOf(yield* sendCallAndWait(link, "no_such_tool"))
            assert.strictEqual(code, -32602)
            assert.include(message, 'unknown tool "no_such_tool"')
          })
        )
      )

      it.effect(
        "S-17, M26, M27: a failure is shown as it is, a defect in one line, and the log has the rest",
        on((link) =>
          Effect.gen(function* () {
            assert.strictEqual(errorText(yield* sendCallAndWait(link, "fails")), "no such user")
            const text = errorText(yield* sendCallAndWait(link, "dies"))
            const reference = /^tool "dies" failed unexpectedly \(([0-9a-f]+)\)$/.exec(text)?.[1]
            assert.isDefined(reference, text)
            const log = yield* until(Effect.sync(link.log), (lines) => lines.includes("secret cause"))
            assert.include(log, reference)
            assert.include(log, "secret value")
            assert.include(log, "tools.ts")
            assert.strictEqual(textOf(yield* link.call("echo", { text: "still here" })), "still here")
          })
        )
      )

      it.effect(
        "S-15: results without JSON are error results, and the server goes on",
        on((link) =>
          Effect.gen(function* () {
            for (const kind of ["bigint", "cyclic"]) {
              assert.match(errorText(yield* sendCallAndWait(link, "odd", { kind })), /^encode result: /)
            }
            assert.strictEqual(textOf(yield* link.call("odd", { kind: "undefined" })), "")
            assert.lengthOf((yield* Effect.promise(() => link.client.listTools())).tools, Tools.names.length)
          })
        )
      )

      // ----- progress

      it.effect(
        "M69, M70: ten numbered steps arrive in order, before the result",
        on((link) =>
          Effect.gen(function* () {
            // Read off the wire: the client of the SDK forgets its listener when it reads updates and result in one go.
            const { response, seen } = yield* sendCall(link, "steps", { numbered: true }, { token: 7 })
            assert.strictEqual(goodText(yield* response), "ten steps")
            assert.deepStrictEqual(
              seen.map(({ params }) => params),
              Array.from({ length: 10 }, (_, i) => ({
                progressToken: 7,
                progress: i + 1,
                total: 10,
                message: `step ${i + 1}`
              }))
            )
          })
        )
      )

      it.effect(
        "S-04, M69, M70: token 0 is a token, and text alone is numbered from 1",
        on((link) =>
          Effect.gen(function* () {
            const { response, seen } = yield* sendCall(link, "steps", { numbered: false }, { token: 0 })
            assert.strictEqual(goodText(yield* response), "ten steps")
            assert.deepStrictEqual(
              seen.map(({ params }) => params),
              Array.from({ length: 10 }, (_, i) => ({ progressToken: 0, progress: i + 1, message: `step ${i + 1}` }))
            )
          })
        )
      )

      it.effect(
        "S-05, M69: a token is passed on unchanged, and without one nothing is sent",
        on((link) =>
          Effect.gen(function* () {
            for (const token of ["abc", ""]) {
              const { response, seen } = yield* sendCall(link, "steps", { numbered: true }, { token })
              assert.strictEqual(goodText(yield* response), "ten steps")
              assert.deepStrictEqual(new Set(seen.map(({ params }) => params?.progressToken)), new Set([token]))
              assert.lengthOf(seen, 10)
            }
            const before = link.received.length
            assert.strictEqual(goodText(yield* sendCallAndWait(link, "steps", { numbered: true })), "ten steps")
            assert.lengthOf(
              link.received.slice(before).filter(({ method }) => method === "notifications/progress"),
              0
            )
          })
        )
      )

      it.effect(
        "C112, M71: numbers rise, whatever the tool says, and no message is lost",
        on((link) =>
          Effect.gen(function* () {
            const { response, seen } = yield* sendCall(link, "mixed_steps", {}, { token: "mixed" })
            yield* response
            const updates = seen.map(({ params }) => params)
            assert.deepStrictEqual(
              updates.map((params) => params?.message),
              [undefined, "text", "falls behind", undefined]
            )
            assert.deepStrictEqual(
              updates.map((params) => params?.total),
              [2, undefined, undefined, undefined]
            )
            const numbers = updates.map((params) => Number(params?.progress))
            assert.deepStrictEqual(numbers.slice(0, 2), [1, 2])
            assert.isTrue(
              numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0)),
              numbers.join()
            )
            assert.closeTo(numbers[3] ?? 0, 2, 0.001)
          })
        )
      )

      // ----- questions

      it.effect(
        "M47, M51: a tool that asks waits, and gets the user's answer",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask", { build: "b1" }))
            const question = yield* link.question
            assert.strictEqual(question.params.message, "Deploy b1 where?")
            assert.strictEqual((yield* link.counts).released, (yield* link.counts).acquired - 1)
            yield* question.reply({ action: "accept", content: { environment: "staging" } })
            assert.strictEqual(textOf(yield* Fiber.join(call)), "b1 to staging")
          })
        )
      )

      it.effect(
        "M47: a tool asks twice, one question after the other",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_twice"))
            yield* (yield* link.question).reply({ action: "accept", content: { environment: "production" } })
            const second = yield* link.question
            assert.strictEqual(second.params.message, "Sure of production?")
            yield* second.reply({ action: "accept", content: { confirm: true } })
            assert.strictEqual(textOf(yield* Fiber.join(call)), "production: true")
          })
        )
      )

      it.effect(
        "M53, M67: two questions are with the user at the same time, and each gets its own answer",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_both"))
            const questions = [yield* link.question, yield* link.question]
            const where = questions.find(({ params }) => params.message === "Where?")
            const sure = questions.find(({ params }) => params.message === "Sure?")
            yield* sure?.reply({ action: "accept", content: { confirm: false } }) ?? Effect.die("not asked")
            yield* where?.reply({ action: "accept", content: { environment: "staging" } }) ?? Effect.die("not asked")
            assert.strictEqual(textOf(yield* Fiber.join(call)), "staging, false")
          })
        )
      )

      it.effect(
        "M51, M59: decline and cancel reach the tool as what they are",
        on((link) =>
          Effect.gen(function* () {
            for (const action of ["decline", "cancel"] as const) {
              const call = yield* Effect.forkChild(link.call("ask", { build: "b" }))
              yield* (yield* link.question).reply({ action })
              assert.strictEqual(textOf(yield* Fiber.join(call)), action)
            }
          })
        )
      )

      it.effect(
        "S-19, M48, M51: forms with titles go out verbatim, and an answer that is no choice is a failure to catch",
        on((link) =>
          Effect.gen(function* () {
            for (const [kind, form] of [
              ["titled", Tools.titled],
              ["named", Tools.named]
            ] as const) {
              for (const [prio, expected] of [
                ["low", '{"action":"accept","content":{"prio":"low"}}'],
                ["Low", "failed: mcpserver: elicitation answer: "]
              ] as const) {
                const call = yield* Effect.forkChild(link.call("ask_raw", { kind }))
                const { params, reply } = yield* link.question
                assert.deepStrictEqual<unknown>("requestedSchema" in params ? params.requestedSchema : undefined, form)
                yield* reply({ action: "accept", content: { prio } })
                assert.isTrue(textOf(yield* Fiber.join(call)).startsWith(expected))
              }
            }
          })
        )
      )

      it.effect(
        "M48: a question without a schema is a form without fields, and any content is taken",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_raw", { kind: "none" }))
            const { params, reply } = yield* link.question
            assert.deepStrictEqual("requestedSchema" in params ? params.requestedSchema : undefined, {
              type: "object",
              properties: {}
            })
            yield* reply({ action: "accept", content: { any: "thing" } })
            assert.strictEqual(textOf(yield* Fiber.join(call)), '{"action":"accept","content":{"any":"thing"}}')
          })
        )
      )

      it.effect(
        "M48, M50: a url question has no form, and an id only before 2026-07-28",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_raw", { kind: "url" }))
            const { params, reply } = yield* link.question
            const { elicitationId, ...rest } = params as Record<string, unknown> // JSON
            assert.deepStrictEqual(rest, { mode: "url", message: "url", url: "https://example.com/pay" })
            if (link.era === modern) assert.isUndefined(elicitationId)
            else assert.match(String(elicitationId), /^[0-9a-f]{32}$/)
            yield* reply({ action: "accept" })
            assert.strictEqual(textOf(yield* Fiber.join(call)), '{"action":"accept"}')
          })
        )
      )

      it.effect(
        "M49: a form that is not flat fails to be asked, and nothing is sent",
        on((link) =>
          Effect.gen(function* () {
            const before = link.received.length
            const text = textOf(yield* link.call("ask_raw", { kind: "nested" }))
            assert.match(text, /^failed: mcpserver: elicitation schema: .*where/)
            const sent = link.received.slice(before)
            assert.lengthOf(
              sent.filter(({ method, result }) => method !== undefined || result?.resultType === "input_required"),
              0
            )
          })
        )
      )

      it.effect(
        "M51: a failure of asking that the tool lets through is its error result",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("ask_plainly"))
            yield* (yield* link.question).reply({ action: "accept", content: { prio: "none" } })
            const result = yield* Fiber.join(call)
            assert.strictEqual(result.isError, true)
            assert.match(textOf(result), /^mcpserver: elicitation answer: /)
          })
        )
      )

      it.effect(
        "C128, S-18, M46, M50: a client that cannot be asked is not asked, and the tool goes on at once",
        on((link) =>
          Effect.gen(function* () {
            for (const capabilities of [{}, { elicitation: { url: {} } }]) {
              // A client before 2026-07-28 says once what it offers.
              const from = link.era === modern ? link : yield* link.another({ capabilities })
              const before = from.received.length
              const message = yield* sendCallAndWait(from, "ask_or_skip", {}, { capabilities })
              assert.strictEqual(goodText(message), "skipped")
              assert.lengthOf(from.received.slice(before), 1)
            }
          })
        )
      )

      // ----- stopping

      it.effect(
        "M28, M60, M61: a client that cancels while the tool runs ends it, and gets no answer",
        on((link) =>
          Effect.gen(function* () {
            const { cancel, id } = yield* sendCall(link, "hold")
            yield* until(link.counts, ({ attached }) => attached === 1)
            yield* cancel
            yield* until(link.counts, ({ attached, fibers }) => attached === 0 && fibers === 0)
            assert.lengthOf(
              link.received.filter((message) => message.id === id),
              0
            )
            // What the client of the SDK does to cancel.
            const call = yield* Effect.forkChild(link.call("hold"))
            yield* until(link.counts, ({ attached }) => attached === 1)
            yield* Fiber.interrupt(call)
            yield* until(link.counts, ({ attached, fibers }) => attached === 0 && fibers === 0)
          })
        )
      )

      it.effect(
        "M9: calls run side by side, and one that is stopped leaves the others alone",
        on((link) =>
          Effect.gen(function* () {
            const held = yield* Effect.forEach([1, 2, 3], () => sendCall(link, "hold"))
            yield* until(link.counts, ({ attached }) => attached === 3)
            assert.strictEqual(textOf(yield* link.call("echo", { text: "beside" })), "beside")
            yield* held[1]?.cancel ?? Effect.void
            yield* until(link.counts, ({ attached }) => attached === 2)
            yield* Effect.forEach(held, ({ cancel }) => cancel)
          })
        )
      )

      it.effect(
        "M28: the cancellation of a request that is unknown or answered is ignored",
        on((link) =>
          Effect.gen(function* () {
            const { id, response } = yield* sendCall(link, "echo", { text: "done" })
            assert.strictEqual(goodText(yield* response), "done")
            for (const requestId of [id, "never sent", 12345]) {
              yield* link.notify("notifications/cancelled", { requestId })
            }
            assert.strictEqual(textOf(yield* link.call("echo", { text: "fine" })), "fine")
          })
        )
      )

      // ----- sessions

      it.effect(
        "M42-M45: what lives in a session is built once, shared by its calls, and ends with it",
        on((link) =>
          Effect.gen(function* () {
            const count = Effect.map(
              link.call("count"),
              (result) => JSON.parse(textOf(result)) as Record<string, unknown> // as the tool writes it
            )
            const [first, second] = [yield* count, yield* count]
            const perRequest = link.transport === "http" && link.era === modern
            const lifetime = perRequest ? "request" : "connection"
            const id = link.transport === "http" && !perRequest ? link.client.transport?.sessionId : ""
            assert.deepStrictEqual(
              [first, second],
              [
                { count: 1, id, lifetime },
                { count: perRequest ? 1 : 2, id, lifetime }
              ]
            )
            const { closed, opened } = yield* link.counts
            if (perRequest) yield* until(link.counts, (counts) => counts.opened === counts.closed)
            else assert.strictEqual(opened - closed, 1)
            // Over stdio another client has a server of its own.
            if (link.transport === "stdio" || perRequest) return
            yield* Effect.scoped(
              Effect.gen(function* () {
                const other = yield* link.another()
                assert.strictEqual((JSON.parse(textOf(yield* other.call("count"))) as { count: number }).count, 1)
                assert.strictEqual((yield* link.counts).opened, opened + 1)
              })
            )
            yield* until(link.counts, (counts) => counts.opened - counts.closed === 1)
          })
        )
      )

      it.effect(
        "M60, M61: when a session ends, what runs and asks in it is stopped, and what lives in it is released",
        on((link) =>
          Effect.gen(function* () {
            // Over stdio the server ends with it: see process.test.ts.
            if (link.transport === "stdio") return
            const perRequest = link.transport === "http" && link.era === modern
            const before = yield* link.counts
            const parkedState = yield* Effect.scoped(
              Effect.gen(function* () {
                const other = yield* link.another()
                yield* other.call("count")
                yield* sendCall(other, "hold")
                const { response } = yield* sendCall(other, "ask", { build: "b" })
                if (link.era !== modern) {
                  yield* other.question
                  yield* until(link.counts, ({ attached }) => attached === 2)
                  return undefined
                }
                const { requestState } = resultOf(yield* within("the round", response))
                yield* until(link.counts, ({ attached, parked }) => attached === 1 && parked === 1)
                return requestState
              })
            )
            const after = yield* until(
              link.counts,
              ({ attached, closed, opened }) => attached === 0 && opened - closed === before.opened - before.closed
            )
            assert.strictEqual(after.opened, before.opened + 1)
            assert.strictEqual(after.parked, perRequest ? 1 : 0)
            if (!perRequest) return
            // The end of a request is not the end of a call that it has parked.
            const { response } = yield* link.send("tools/call", {
              name: "ask",
              arguments: {},
              requestState: parkedState,
              inputResponses: { elicit_1: { action: "decline" } }
            })
            assert.strictEqual(goodText(yield* within("the result", response)), "decline")
          })
        )
      )

      it.effect(
        "M75, M80: facts are asked for by a method of their own, and params of the wrong shape are refused",
        on((link) =>
          Effect.gen(function* () {
            const ask = (params: Readonly<Record<string, unknown>>) =>
              Effect.flatMap(link.send("execution/facts", params), ({ response }) => within("facts", response))
            const answers = resultOf(yield* ask({ calls: [{ name: "nobody" }, { name: "echo" }] })).results
            assert.deepStrictEqual(answers, [
              { error: 'unknown tool "nobody"', replay: "unknown" },
              { replay: "unknown" }
            ])
            for (const calls of ["no list", [{}], [{ name: 1 }]]) {
              assert.strictEqual(errorOf(yield* ask({ calls })).code, -32602)
            }
          })
        )
      )

      it.effect(
        "M28: a call that was interrupted in the client fails there",
        on((link) =>
          Effect.gen(function* () {
            const call = yield* Effect.forkChild(link.call("hold"))
            yield* until(link.counts, ({ attached }) => attached === 1)
            assert.isTrue(Exit.hasInterrupts(yield* Effect.andThen(Fiber.interrupt(call), Fiber.await(call))))
          })
        )
      )
    }
  )
