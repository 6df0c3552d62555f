/**
 * How a program that serves over stdio ends, and what it writes where.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fileURLToPath } from "node:url"
import * as Child from "./support/Child.ts"
import * as Raw from "./support/rawMessages.ts"
import { textOf, until } from "./support/Link.ts"

const seconds = { timeout: 30_000 }

/** Ready to serve, in either era. */
const handshake = {
  "2026-07-28": (child: Child.Child) =>
    Effect.andThen(
      child.send({ id: "discover", method: "server/discover", params: { _meta: Raw.envelope } }),
      child.response("discover")
    ),
  "2025-11-25": (child: Child.Child) =>
    child
      .send(Raw.initialize)
      .pipe(Effect.andThen(child.response("initialize")), Effect.andThen(child.send(Raw.initialized)))
}
const eras = ["2026-07-28", "2025-11-25"] as const

const callIn = (era: (typeof eras)[number], id: string, name: string, args: Record<string, unknown> = {}) =>
  era === "2026-07-28" ? Raw.modernCall(id, name, { arguments: args }) : Raw.legacyCall(id, name, args)

/** Whether a process is there. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("stdio programs", () => {
  it.live(
    "S-01: nothing but frames is written to standard output, and nothing of the noise is lost",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.stdio()
        yield* handshake["2025-11-25"](child)
        for (const id of ["a", "b", "c"]) yield* child.send(Raw.legacyCall(id, "noisy"))
        for (const id of ["a", "b", "c"])
          assert.strictEqual(textOf((yield* child.response(id)).result ?? {}), "made noise")
        // Line readers of some languages end a line at these.
        yield* child.send(Raw.legacyCall("separators", "echo", { text: "a\u2028b\u2029c" }))
        assert.strictEqual(textOf((yield* child.response("separators")).result ?? {}), "a\u2028b\u2029c")
        assert.notMatch(child.lines().join("\n"), /[\u2028\u2029]/)
        yield* child.endInput
        yield* child.exit
        for (const line of child.lines()) assert.strictEqual((JSON.parse(line) as { jsonrpc: string }).jsonrpc, "2.0")
        const countOf = (words: string) => child.stderr().split(words).length - 1
        assert.strictEqual(countOf("noise at the start"), 1)
        for (const words of ["noise of console.log", "noise of process.stdout", "noise of Effect.log"]) {
          assert.strictEqual(countOf(words), 3, words)
        }
      }),
    seconds
  )

  it.live(
    "S-02: an empty standard input ends the server at once, with code 0",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.stdio({}, { emptyInput: true })
        const { code } = yield* child.exit
        assert.strictEqual(code, 0)
        assert.deepStrictEqual(child.lines(), [])
      }),
    seconds
  )

  for (const era of eras) {
    it.live(
      `S-02, M61: at the end of input running and parked calls are stopped, their finalizers run, the code is 0`,
      () =>
        Effect.gen(function* () {
          const child = yield* Child.stdio()
          yield* handshake[era](child)
          yield* child.send(callIn(era, "session", "count"))
          yield* child.response("session")
          yield* child.send(callIn(era, "running", "hold"))
          yield* child.said("holding")
          yield* child.send(callIn(era, "asking", "ask", { build: "b" }))
          yield* until(Effect.sync(child.lines), (lines) => lines.some((line) => line.includes("Deploy b where?")))
          yield* child.endInput
          const { code, millis } = yield* child.exit
          assert.strictEqual(code, 0)
          assert.isBelow(millis, 2_000)
          for (const words of ["released hold", "released ask", "closed the counter"]) {
            assert.include(child.stderr(), words, era)
          }
        }),
      seconds
    )
  }

  it.live(
    "S-02, S-03: a line that is no message does not end the server, the end of input does, with code 0",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.stdio()
        yield* handshake["2025-11-25"](child)
        yield* child.write('{"jsonrpc":"2.0","id":7,"method":"tools/li\n')
        yield* child.write("\n")
        yield* child.write("[]\n")
        yield* child.write('{"jsonrpc":"2.0"}\n')
        yield* child.write("\u0000\uFFFD nothing\n")
        yield* child.send({ id: "list", method: "tools/list" })
        const { result } = yield* child.response("list")
        assert.isDefined(result?.tools)
        for (const line of child.lines()) {
          const message = JSON.parse(line) as { id?: unknown; error?: { code: number } }
          if (message.error === undefined) continue
          assert.deepStrictEqual([message.id ?? null, message.error.code], [null, -32700])
        }
        yield* child.endInput
        const { code, millis } = yield* child.exit
        assert.strictEqual(code, 0)
        assert.isBelow(millis, 2_000)
      }),
    seconds
  )

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it.live(
      "M28, M61: after a signal running calls have their grace, new ones are refused, finalizers run, the code is 0",
      () =>
        Effect.gen(function* () {
          const child = yield* Child.stdio({ shutdownGrace: 400 })
          yield* handshake["2026-07-28"](child)
          yield* child.send(Raw.modernCall("session", "count"))
          yield* child.response("session")
          yield* child.send(Raw.modernCall("asking", "ask", { arguments: { build: "b" } }))
          yield* child.response("asking")
          yield* child.send(Raw.modernCall("short", "slow", { arguments: { millis: 200 } }))
          yield* child.send(Raw.modernCall("running", "hold"))
          yield* child.said("holding")
          yield* child.kill(signal)
          // Parked calls are stopped at once: now the server is stopping.
          yield* child.said("released ask")
          yield* child.send(Raw.modernCall("late", "hold"))
          yield* child.send(Raw.modernCall("asking late", "ask", { arguments: { build: "b" } }))
          const { code, millis } = yield* child.exit
          assert.strictEqual(code, 0)
          assert.isBelow(millis, 2_000)
          assert.strictEqual(textOf((yield* child.response("short")).result ?? {}), "slow")
          for (const [id, tool] of [
            ["running", "hold"],
            ["late", "hold"],
            ["asking late", "ask"]
          ] as const) {
            const { result } = yield* child.response(id)
            assert.strictEqual(result?.isError, true)
            assert.strictEqual(
              textOf(result ?? {}),
              `mcpserver: tool "${tool}": the call was stopped: the server is shutting down; call the tool again`
            )
          }
          for (const words of ["released hold", "released slow", "closed the counter"]) {
            assert.include(child.stderr(), words, signal)
          }
        }),
      seconds
    )
  }

  it.live(
    "S-02: a server whose parent is killed does not stay behind",
    () =>
      Effect.gen(function* () {
        // A parent that starts the server, calls the holding tool, says its pid, and waits.
        const parent = yield* Child.start([fileURLToPath(new URL("./support/parent.ts", import.meta.url))])
        const [line = "{}"] = yield* until(Effect.sync(parent.lines), (lines) => lines.length > 0)
        const { pid } = JSON.parse(line) as { pid: number }
        assert.isTrue(isAlive(pid))
        yield* parent.kill("SIGKILL")
        yield* until(
          Effect.sync(() => isAlive(pid)),
          (alive) => !alive
        )
      }),
    seconds
  )
})
