/**
 * What calls state about themselves, asked over the wire (`execution/facts`).
 */
import { Tool } from "@agenttool/core"
import { McpServer, McpSession } from "@agenttool/server"
import * as Connected from "@agenttool/server/Connected"
import * as Core from "@agenttool/server/Core"
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { Context, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"

const Answers = Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Unknown) }))

/** What tools have been run, and what claims have seen. */
const fixture = () => {
  const runs: Array<string> = []
  const seen: Array<unknown> = []
  const named = (name: string) =>
    Tool.raw(name, {
      parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
      execute: () =>
        Effect.sync(() => {
          runs.push(name)
          return name
        })
    })
  const bash = named("bash").pipe(
    Tool.facts((args, raw) => {
      seen.push([args, raw])
      return Effect.succeed({
        calls: [
          { tool: "read", args: { path: ".env" }, text: "read .env" },
          { tool: "", args: { path: "out/x" } },
          { tool: "write", text: "" }
        ],
        rewrite: { command: "cat .env" }
      })
    })
  )
  const itself = named("itself").pipe(
    Tool.facts(() => Effect.succeed({})),
    Tool.replay("safe")
  )
  const nothing = named("nothing").pipe(
    Tool.facts(() => Effect.succeed({ calls: [] })),
    Tool.replay("keyed")
  )
  const failing = named("failing").pipe(
    Tool.facts(() => Effect.fail("no such file")),
    Tool.replay(() => Effect.die("secret"))
  )
  const wordless = named("wordless").pipe(Tool.facts(() => Effect.fail("")))
  const dying = named("dying").pipe(Tool.facts(() => Effect.die(new Error("secret"))))
  const silent = named("silent")
  const slow = named("slow").pipe(
    Tool.facts(() =>
      Effect.onInterrupt(Effect.never, () =>
        Effect.sync(() => {
          seen.push("interrupted")
        })
      )
    )
  )
  const session = named("session").pipe(
    Tool.facts(() => Effect.map(McpSession.current, ({ lifetime }) => ({ calls: [{ tool: lifetime }] })))
  )
  return { runs, seen, tools: [bash, itself, nothing, failing, wordless, dying, silent, slow] as const, session }
}

const serving = (protocolVersion: "2026-07-28" | "2025-11-25" = "2026-07-28") =>
  Effect.gen(function* () {
    const { runs, seen, session, tools } = fixture()
    const log: Array<string> = []
    const logger = Logger.map(Logger.formatLogFmt, (line) => void log.push(line))
    const context = yield* McpServer.layerTest({
      protocolVersion,
      registrations: Layer.mergeAll(McpServer.tools(...tools), McpServer.tools(session))
    }).pipe(Layer.provide(Logger.layer([logger])), Layer.build)
    const client = Context.get(context, McpServer.TestClient)
    const facts = (calls?: ReadonlyArray<Record<string, unknown>> | null) =>
      Effect.tryPromise({
        try: (signal) =>
          client.request({ method: "execution/facts", params: calls === undefined ? {} : { calls } }, Answers, {
            signal
          }),
        catch: (error) => error
      }).pipe(Effect.map(({ results }) => results))
    return { facts, log, runs, seen }
  })

for (const version of ["2026-07-28", "2025-11-25"] as const) {
  describe(`${version}: facts`, () => {
    it.effect("M76, M77, M78: what each kind of claim is answered, and no tool is run", () =>
      Effect.gen(function* () {
        const { facts, runs } = yield* serving(version)
        const results = yield* facts([
          { name: "bash", arguments: { command: "cat .env > out/x" } },
          { name: "itself", arguments: {} },
          { name: "nothing", arguments: {} },
          { name: "silent", arguments: {} },
          { name: "nobody", arguments: {} }
        ])
        assert.deepStrictEqual(results, [
          {
            facts: {
              calls: [
                { tool: "read", args: { path: ".env" }, text: "read .env" },
                { tool: "", args: { path: "out/x" } },
                { tool: "write" }
              ],
              rewrite: { command: "cat .env" }
            },
            replay: "unknown"
          },
          { facts: { calls: null }, replay: "safe" },
          { facts: { calls: [] }, replay: "unknown" },
          { replay: "unknown" },
          { error: 'unknown tool "nobody"', replay: "unknown" }
        ])
        assert.deepStrictEqual(runs, [])
      })
    )

    it.effect(
      "M76, M80: a claim that fails is an error without facts, one without words too, and a defect is one line",
      () =>
        Effect.gen(function* () {
          const { facts, log } = yield* serving(version)
          const [failing, wordless, dying] = yield* facts([
            { name: "failing" },
            { name: "wordless" },
            { name: "dying" }
          ])
          assert.deepStrictEqual(failing, { error: "no such file", replay: "unknown" })
          assert.deepStrictEqual(wordless, { error: "facts claim failed", replay: "unknown" })
          const { error, replay } = dying as { readonly error: string; readonly replay: string } // JSON
          assert.strictEqual(replay, "unknown")
          const reference = /^tool "dying" failed unexpectedly \(([0-9a-f]+)\)$/.exec(error)?.[1]
          assert.isDefined(reference, error)
          assert.isTrue(log.some((line) => line.includes(reference) && line.includes("secret")))
        })
    )

    it.effect("M79: absent and empty arguments are {}, they are not checked, and no calls have no answers", () =>
      Effect.gen(function* () {
        const { facts, seen } = yield* serving(version)
        yield* facts([
          { name: "bash" },
          { name: "bash", arguments: {} },
          { name: "bash", arguments: { command: 7, z: 1, a: [null] } }
        ])
        assert.deepStrictEqual(seen, [
          [{}, "{}"],
          [{}, "{}"],
          [{ command: 7, z: 1, a: [null] }, '{"command":7,"z":1,"a":[null]}']
        ])
        for (const none of [undefined, null, []]) assert.deepStrictEqual(yield* facts(none), [])
      })
    )

    it.effect(
      "M81, M82: a claim sees the session of its request, and tools of every registration answer, in the order asked",
      () =>
        Effect.gen(function* () {
          const { facts } = yield* serving(version)
          assert.deepStrictEqual(yield* facts([{ name: "session" }, { name: "itself" }, { name: "session" }]), [
            { facts: { calls: [{ tool: "connection" }] }, replay: "unknown" },
            { facts: { calls: null }, replay: "safe" },
            { facts: { calls: [{ tool: "connection" }] }, replay: "unknown" }
          ])
        })
    )

    it.effect("M81: cancelling the request interrupts the claim that is being asked", () =>
      Effect.gen(function* () {
        const { facts, seen } = yield* serving(version)
        const asking = yield* Effect.forkChild(facts([{ name: "bash" }, { name: "slow" }]), { startImmediately: true })
        while (seen.length === 0) yield* nextTurn
        yield* Fiber.interrupt(asking)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(asking)))
        while (seen.length === 1) yield* nextTurn
        assert.strictEqual(seen[1], "interrupted")
        // The server goes on.
        assert.lengthOf(yield* facts([{ name: "itself" }]), 1)
      })
    )
  })
}

describe("facts and the end of the server", () => {
  it.effect("M61, M81: a claim that never ends does not keep the server from ending", () =>
    Effect.gen(function* () {
      const { seen, tools } = fixture()
      const scope = yield* Scope.make()
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair()
      const context = yield* McpServer.tools(...tools).pipe(Layer.provideMerge(Core.layer), Layer.buildWithScope(scope))
      yield* Connected.serve({ name: "test", version: "0" }, serverSide).pipe(
        Effect.provideContext(context),
        Scope.provide(scope)
      )
      // Unlike the client of `layerTest`, this one stays when the server goes.
      const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode: "legacy" } })
      yield* Effect.promise(() => client.connect(clientSide))
      const calls = [{ name: "bash" }, { name: "slow" }]
      const asking = client.request({ method: "execution/facts", params: { calls } }, Answers).catch(() => "refused")
      while (seen.length === 0) yield* nextTurn
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      while (closing.pollUnsafe() === undefined && seen.length === 1) {
        yield* TestClock.adjust("1 second")
        yield* nextTurn
      }
      yield* Fiber.join(closing)
      assert.strictEqual(yield* Effect.promise(() => asking), "refused")
      assert.strictEqual(seen[1], "interrupted")
    })
  )
})

const nextTurn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
