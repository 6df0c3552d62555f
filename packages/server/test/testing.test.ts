/**
 * The test kit itself: what an author's tests may lean on.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import type { McpServer } from "@agenttool/server"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import type { ElicitResult } from "@modelcontextprotocol/client"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { eras } from "./hosts.ts"

const echo = Tool.make("echo", {
  parameters: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text)
})

const interview = Tool.make("interview", {
  execute: Effect.fn(function* () {
    const answers = [yield* Elicitor.text("First?"), yield* Elicitor.text("Second?"), yield* Elicitor.text("Third?")]
    return answers.map(Option.getOrElse(() => "-")).join(", ")
  })
})

const said = (text: string) => ({ action: "accept" as const, content: { text } })

for (const protocolVersion of eras) {
  describe(`${protocolVersion}: connect`, () => {
    it.effect("M47: calls a tool in one line, with answers in the order asked, then cancel", () =>
      Effect.gen(function* () {
        const mcp = yield* connect({
          tools: [echo, interview],
          protocolVersion,
          answers: [said("a"), { action: "decline" }]
        })
        assert.strictEqual(yield* mcp.text("echo", { text: "hi" }), "hi")
        assert.strictEqual(yield* mcp.text("interview"), "a, -, -")
        // The answers are for the whole connection.
        assert.strictEqual(yield* mcp.text("interview"), "-, -, -")
        assert.deepStrictEqual((yield* mcp.call("echo", { text: "hi" })).content, [{ type: "text", text: "hi" }])
        assert.strictEqual((yield* mcp.call("echo")).isError, true)
        assert.deepStrictEqual(yield* mcp.count, { attached: 0, parked: 0, fibers: 0 })
      })
    )

    it.effect("M47: answers by a function of the question", () =>
      Effect.gen(function* () {
        const mcp = yield* connect({
          tools: [interview],
          protocolVersion,
          answer: ({ message }) => said(message.toLowerCase())
        })
        assert.strictEqual(yield* mcp.text("interview"), "first?, second?, third?")
      })
    )

    it.effect("M46: offers what the test says", () =>
      Effect.gen(function* () {
        const mcp = yield* connect({ tools: [interview], protocolVersion, capabilities: {} })
        assert.strictEqual(yield* mcp.text("interview"), "-, -, -")
      })
    )

    it.effect("M70: has seen every message of both sides, in order", () =>
      Effect.gen(function* () {
        const steps = Tool.make("steps", {
          execute: Effect.fn(function* () {
            yield* Progress.report("one")
            yield* Elicitor.confirm("Go on?")
            return "done"
          })
        })
        const mcp = yield* connect({ tools: [steps], protocolVersion })
        const before = yield* mcp.messages
        yield* Effect.promise(() => mcp.client.callTool({ name: "steps", arguments: {} }, { onprogress: () => {} }))
        const all = yield* mcp.messages
        assert.deepStrictEqual(all.slice(0, before.length), before)
        const seen = all.slice(before.length).map(({ from, message }) => {
          if ("method" in message) return `${from}: ${message.method}`
          return `${from}: ${"result" in message ? "result" : "error"}`
        })
        assert.deepStrictEqual(
          seen,
          protocolVersion === "2026-07-28"
            ? [
                "client: tools/call",
                "server: notifications/progress",
                "server: result",
                "client: tools/call",
                "server: result"
              ]
            : [
                "client: tools/call",
                "server: notifications/progress",
                "server: elicitation/create",
                "client: result",
                "server: result"
              ]
        )
      })
    )

    it.effect("M84: takes every setting, and time is the test's", () =>
      Effect.gen(function* () {
        const released: Array<string> = []
        const wait = Tool.make("wait", {
          execute: () =>
            Effect.onInterrupt(Effect.andThen(Elicitor.confirm("?"), Effect.never), () =>
              Effect.sync(() => void released.push("released"))
            )
        })
        const asked = yield* Deferred.make<(answer: ElicitResult) => void>()
        const mcp = yield* connect({
          tools: [wait],
          protocolVersion,
          abandonAfter: "1 minute",
          answer: () => new Promise((resolve) => void Deferred.doneUnsafe(asked, Exit.succeed(resolve)))
        })
        const call = yield* Effect.forkScoped(Effect.exit(mcp.call("wait")))
        const answer = yield* Deferred.await(asked)
        yield* TestClock.adjust("59 seconds")
        assert.deepStrictEqual(released, [])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(released, ["released"])
        answer({ action: "cancel" })
        const exit = yield* Fiber.join(call)
        assert.isTrue(Exit.isSuccess(exit) && exit.value.isError === true)
      })
    )

    it.effect("M61: ends with its scope: calls are stopped, and the client is closed", () =>
      Effect.gen(function* () {
        let released = 0
        const hold = Tool.make("hold", {
          execute: () =>
            Effect.andThen(
              Effect.acquireRelease(Effect.void, () => Effect.sync(() => void released++)),
              Effect.never
            )
        })
        const scope = yield* Scope.make()
        const mcp = yield* Scope.provide(connect({ tools: [hold], protocolVersion, shutdownGrace: 0 }), scope)
        const call = yield* Effect.forkScoped(Effect.exit(mcp.call("hold")))
        yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.join(call)
        assert.strictEqual(released, 1)
        assert.isUndefined(mcp.client.transport)
      })
    )
  })
}

describe("connect", () => {
  it.effect("M2, M3: fails with the registration error of a tool that cannot be served", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(connect({ tools: [echo, Tool.make("", { execute: () => Effect.void })] }))
      assert.strictEqual(error.message, 'mcpserver: tool "": empty name')
    })
  )

  it.effect("M43: each connection has a server of its own", () =>
    Effect.gen(function* () {
      const [one, two] = [
        yield* connect({ tools: [interview], answers: [said("one")] }),
        yield* connect({ tools: [interview], answers: [said("two")] })
      ]
      assert.strictEqual(yield* one.text("interview"), "one, -, -")
      assert.strictEqual(yield* two.text("interview"), "two, -, -")
    })
  )

  it.effect("M42: asks by types for what the tools need", () =>
    Effect.gen(function* () {
      class Db extends Context.Service<Db, string>()("test/TestingDb") {}
      const query = Tool.make("query", { execute: () => Effect.service(Db) })
      // @ts-expect-error: nobody has provided the database
      const missing: Effect.Effect<unknown, McpServer.RegistrationError, Scope.Scope> = connect({ tools: [query] })
      assert.isDefined(missing)
      const mcp = yield* connect({ tools: [query] }).pipe(Effect.provide(Layer.succeed(Db, "the database")))
      assert.strictEqual(yield* mcp.text("query"), "the database")
    })
  )
})
