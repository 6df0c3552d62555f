/**
 * What goes over standard input and output, byte by byte: the conformance suite speaks HTTP only.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { call, envelope, initialize, legacyCall, line, modern, type Program, start, textOf } from "./bytes.ts"

const seconds = { timeout: 120_000 }

/** Runs a program under a test, which ends it by ending its input: then its code is 0. */
const on = (name: string, body: (program: Program) => Effect.Effect<unknown, never, Scope.Scope>) => () =>
  Effect.gen(function* () {
    const program = yield* start(name)
    yield* body(program)
    yield* program.endInput
    assert.strictEqual(yield* program.exit, 0, program.stderr())
    // Whatever was written is a message, to the very end.
    yield* program.messages
  })

const upper = (id: unknown, text: string) => call(id, "upper", { text })

describe("framing", () => {
  it.live(
    "P93: lines may end with CR LF, blank ones are nothing, and any number may come at once",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const crLf = upper("cr lf", "a").replace("\n", "\r\n")
        yield* program.write(`\n\r\n  \n${crLf}\r\n\n${upper("b", "b")}${upper("c", "c")}\n`)
        for (const id of ["cr lf", "b", "c"]) yield* program.response(id)
        assert.strictEqual(textOf(yield* program.response("cr lf")), "A")
        assert.lengthOf(yield* program.messages, 3)
      })
    ),
    seconds
  )

  it.live(
    "P93: a message may come in pieces of any size, cut within a character too",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const text = "grüße, 世界 🌍"
        const bytes = Buffer.from(upper("pieces", text))
        // The server is there and reads before the first piece: what comes sooner would reach it as one.
        yield* program.write(upper("first", "ready"))
        yield* program.response("first")
        for (const byte of bytes) {
          yield* program.write(Uint8Array.of(byte))
          yield* Effect.sleep("1 millis")
        }
        assert.strictEqual(textOf(yield* program.response("pieces")), text.toUpperCase())
      })
    ),
    seconds
  )

  it.live(
    "P93, P96: bytes that are no message end nothing, and whatever is said of them has no id",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const bad: ReadonlyArray<string | Uint8Array> = [
          "no json\n",
          '{"jsonrpc":"2.0","id":7,"method":"tools/li\n',
          "[]\n",
          "null\n",
          "7\n",
          '{"jsonrpc":"1.0","id":7,"method":"tools/list"}\n',
          line({ id: null, method: "tools/list" }),
          line({ id: { a: 1 }, method: "tools/list" }),
          `${"[".repeat(10_000)}\n`,
          Uint8Array.of(0x00, 0x0a),
          Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0x0a),
          `\uFEFF${upper("byte order mark", "x")}`,
          // Responses to what was never asked.
          line({ id: 1, result: {} }),
          line({ id: "x", error: { code: 1, message: "x" } })
        ]
        for (const bytes of bad) yield* program.write(bytes)
        assert.strictEqual(textOf(yield* Effect.andThen(program.write(upper(1, "on")), program.response(1))), "ON")
        for (const bytes of bad) yield* program.write(bytes)
        assert.strictEqual(textOf(yield* Effect.andThen(program.write(upper(2, "on")), program.response(2))), "ON")
        for (const { error, id } of yield* program.messages) {
          if (error !== undefined) assert.isTrue(id === undefined || id === null, JSON.stringify(error))
        }
      })
    ),
    seconds
  )

  it.live(
    "P93, P95: what is not ended by a line end is no message, and the server ends with code 0",
    on("stdio", (program) =>
      Effect.gen(function* () {
        yield* program.write(upper(1, "a") + upper(2, "b").trimEnd())
        yield* program.response(1)
        yield* program.endInput
        yield* program.exit
        assert.deepStrictEqual(
          (yield* program.messages).map(({ id }) => id),
          [1]
        )
      })
    ),
    seconds
  )

  it.live(
    "P93: what was asked before the end of input, and takes no time, is answered",
    on("stdio", (program) =>
      Effect.gen(function* () {
        yield* program.write(
          initialize + line({ method: "notifications/initialized" }) + legacyCall(1, "upper", { text: "a" })
        )
        yield* program.endInput
        yield* program.exit
        assert.strictEqual(textOf(yield* program.response(1)), "A")
      })
    ),
    seconds
  )

  it.live(
    "P93: a client that does not read for a while loses nothing",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const many = 500
        const text = "x".repeat(2_000)
        yield* program.write(upper("first", "ready"))
        yield* program.response("first")
        yield* program.pauseReading
        for (let id = 1; id <= many; id++) yield* program.write(upper(id, text))
        // Far more than the pipe holds is waiting to be written.
        yield* Effect.sleep("200 millis")
        yield* program.resumeReading
        yield* program.count(many + 1)
        const messages = yield* program.messages
        assert.strictEqual(new Set(messages.map(({ id }) => id)).size, many + 1)
        for (const message of messages.slice(1)) assert.strictEqual(textOf(message), text.toUpperCase())
      })
    ),
    seconds
  )

  it.live(
    "P96: a message above 10 MiB ends the connection, which the log says, and one of 9 MiB is answered",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const text = "x".repeat(9 * 1024 * 1024)
        yield* program.write(upper(1, text))
        assert.strictEqual(textOf(yield* program.response(1)).length, text.length)
        // Not waited for: the server does not read it to its end.
        yield* Effect.forkChild(program.write(upper(2, `${text}${text}`)))
        assert.strictEqual(yield* program.exit, 0)
        assert.match(program.stderr(), /WARN.*the connection has ended: .*exceeded maximum size/)
        assert.lengthOf(yield* program.messages, 1)
      })
    ),
    seconds
  )

  it.live(
    "P33: a response has the very id of its request, text or number",
    on("stdio", (program) =>
      Effect.gen(function* () {
        for (const id of [0, "0", "", -1, 9_007_199_254_740_991, "grüße 🌍", "null"]) {
          yield* program.write(upper(id, "a"))
          assert.strictEqual((yield* program.response(id)).id, id)
        }
      })
    ),
    seconds
  )
})

describe("the era", () => {
  const shapeOf = ({ result }: { readonly result?: Readonly<Record<string, unknown>> }) => result?.resultType

  it.live(
    "P3, P8, P30: a client that opens with any request of 2026-07-28 is served without a handshake",
    on("stdio", (program) =>
      Effect.gen(function* () {
        yield* program.write(modern(1, "tools/list"))
        const { result } = yield* program.response(1)
        assert.strictEqual(result?.resultType, "complete")
        assert.lengthOf(result?.tools as ReadonlyArray<unknown>, 3)
        // It stays so: the handshake of another era is refused with what is served, and so is a request that says nothing.
        yield* program.write(initialize)
        assert.strictEqual((yield* program.response("initialize")).error?.code, -32022)
        yield* program.write(legacyCall(2, "upper", { text: "a" }))
        assert.strictEqual((yield* program.response(2)).error?.code, -32602)
        yield* program.write(upper(3, "a"))
        assert.strictEqual(shapeOf(yield* program.response(3)), "complete")
      })
    ),
    seconds
  )

  it.live(
    "P8: a client that opens with a handshake is served as its revision has it",
    on("stdio", (program) =>
      Effect.gen(function* () {
        yield* program.write(initialize + line({ method: "notifications/initialized" }))
        const { result } = yield* program.response("initialize")
        assert.strictEqual(result?.protocolVersion, "2025-11-25")
        yield* program.write(legacyCall(1, "upper", { text: "a" }))
        const called = yield* program.response(1)
        assert.strictEqual(textOf(called), "A")
        assert.isUndefined(shapeOf(called))
      })
    ),
    seconds
  )

  it.live(
    "P1, P8: a client may look first and open either way then",
    on("stdio", (program) =>
      Effect.gen(function* () {
        yield* program.write(modern("look", "server/discover"))
        assert.deepStrictEqual((yield* program.response("look")).result?.supportedVersions, ["2026-07-28"])
        yield* program.write(initialize)
        assert.strictEqual((yield* program.response("initialize")).result?.protocolVersion, "2025-11-25")
        yield* program.write(legacyCall(1, "upper", { text: "a" }))
        assert.strictEqual(textOf(yield* program.response(1)), "A")
      })
    ),
    seconds
  )

  it.live(
    "P4, P12: a revision that is not served and a request that lacks its envelope are refused, and end nothing",
    on("stdio", (program) =>
      Effect.gen(function* () {
        const key = "io.modelcontextprotocol/protocolVersion"
        for (const id of ["first", "later"]) {
          yield* program.write(modern(`${id} version`, "tools/list", {}, { [key]: "2099-01-01" }))
          const { error } = yield* program.response(`${id} version`)
          assert.deepStrictEqual(
            [error?.code, error?.data],
            [-32022, { supported: ["2026-07-28"], requested: "2099-01-01" }]
          )
          yield* program.write(
            line({ id: `${id} bare`, method: "tools/list", params: { _meta: { [key]: "2026-07-28" } } })
          )
          assert.strictEqual((yield* program.response(`${id} bare`)).error?.code, -32602)
          // The second time around the connection has an era.
          yield* program.write(upper(id, "a"))
          assert.strictEqual(textOf(yield* program.response(id)), "A")
        }
        yield* program.write(modern("method", "tools/never"))
        assert.strictEqual((yield* program.response("method")).error?.code, -32601)
      })
    ),
    seconds
  )
})

describe("cancellation", () => {
  const cancel = (requestId: unknown, more: Readonly<Record<string, unknown>> = {}) =>
    line({ method: "notifications/cancelled", params: { requestId, _meta: envelope, ...more } })

  for (const era of ["2026-07-28", "2025-11-25"] as const) {
    const slow = (id: unknown, label: string) =>
      era === "2026-07-28" ? call(id, "slow", { label }) : legacyCall(id, "slow", { label })
    const echo = (id: unknown) =>
      era === "2026-07-28" ? call(id, "echo", { text: "on" }) : legacyCall(id, "echo", { text: "on" })

    it.live(
      `P63, P65: a cancelled call is stopped and not answered, and what names no open request is ignored (${era})`,
      on("interop", (program) =>
        Effect.gen(function* () {
          if (era === "2025-11-25") yield* program.write(initialize + line({ method: "notifications/initialized" }))
          yield* program.write(slow(0, "zero") + slow("text", "text") + slow(7, "kept"))
          for (const label of ["zero", "text", "kept"]) yield* program.said(`acquired ${label}\n`)
          yield* program.write(
            cancel("0") +
              cancel(8) +
              cancel(null) +
              cancel({}) +
              line({ method: "notifications/cancelled" }) +
              cancel("7")
          )
          yield* program.write(cancel(0, { reason: "enough" }) + cancel("text"))
          for (const label of ["zero", "text"]) yield* program.said(`released ${label}: Cancelled\n`)
          yield* program.write(echo("after") + cancel("after"))
          yield* program.write(echo("last"))
          yield* program.response("last")
          assert.notInclude(program.stderr(), "released kept")
          yield* program.endInput
          yield* program.exit
          // The end of its session is not a cancellation.
          assert.include(program.stderr(), "released kept: SessionEnded\n")
          const answered = (yield* program.messages).map(({ id }) => id)
          for (const id of [0, "text", 7]) assert.notInclude(answered, id)
        })
      ),
      seconds
    )
  }

  it.live(
    "P18: an id that is used again while it is open gets an answer for each request, and nothing is left in the end",
    on("interop", (program) =>
      Effect.gen(function* () {
        yield* program.write(call(7, "slow", { label: "first" }))
        yield* program.said("acquired first\n")
        yield* program.write(call(7, "echo", { text: "a" }))
        assert.strictEqual(textOf(yield* program.response(7)), "a")
        yield* program.write(call(7, "echo", { text: "b" }))
        assert.strictEqual(textOf(yield* program.response(7, 2)), "b")
        yield* program.endInput
        yield* program.exit
        assert.include(program.stderr(), "released first: SessionEnded\n")
      })
    ),
    seconds
  )
})

describe("a client that goes", () => {
  it.live(
    "P95: ends a running and a parked call by ending the input, and the server with code 0",
    on("interop", (program) =>
      Effect.gen(function* () {
        yield* program.write(call(1, "slow", { label: "running" }) + call(2, "ask"))
        yield* program.said("acquired running\n")
        assert.strictEqual((yield* program.response(2)).result?.resultType, "input_required")
        yield* program.endInput
        assert.strictEqual(yield* program.exit, 0)
        assert.include(program.stderr(), "released running: SessionEnded\n")
      })
    ),
    seconds
  )

  it.live(
    "P95: ends the server with code 0, quietly, by not reading its output any more",
    on("interop", (program) =>
      Effect.gen(function* () {
        yield* program.write(call(1, "slow", { label: "running" }))
        yield* program.said("acquired running\n")
        yield* program.stopReading
        // Input stays open: the server learns of it where it writes.
        yield* program.write(call(2, "echo", { text: "nobody hears" }))
        assert.strictEqual(yield* program.exit, 0)
        assert.strictEqual(program.stderr(), "acquired running\nreleased running: SessionEnded\n")
      })
    ),
    seconds
  )
})
