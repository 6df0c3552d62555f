/**
 * The bounds of a request's body: size, depth and time, as a unit and over real sockets, in both eras.
 */
import { Tool } from "@agenttool/core"
import { McpServer, Settings, TokenVerifier } from "@agenttool/server"
import * as HttpBody from "@agenttool/server/HttpBody"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Fiber, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  ask,
  type Ask,
  inSession,
  listen,
  modernAsk,
  open,
  type Options,
  responseOf,
  textOf
} from "./support/endpoint.ts"
import { initialize, legacyCall } from "./support/rawMessages.ts"
import { chunk, head, post, socket } from "./support/sockets.ts"

// ----- depth

const depthOf = (value: Schema.Json): number =>
  typeof value !== "object" || value === null
    ? 0
    : 1 + Math.max(0, ...Object.values(value).map((inner) => depthOf(inner as Schema.Json)))

/** Strings that look like what they are not: brackets, quotes and escapes in them. */
const trickyText = Arbitrary.schema(
  Schema.Array(Schema.Literals(["[", "{", '"', "\\", "]", "}", "a", "\u2028", "é"]))
).pipe(Arbitrary.map((parts) => parts.join("")))

/** Chains of arrays and objects around such strings, with something beside them on every level. */
const nested = Arbitrary.schema(Schema.Array(Schema.Literals(["array", "object"]))).pipe(
  Arbitrary.flatMap((levels) =>
    Arbitrary.map(
      trickyText,
      (text): Schema.Json =>
        levels.reduce<Schema.Json>(
          (inner, level) => (level === "array" ? [text, inner] : { [text]: inner, z: {} }),
          text
        )
    )
  )
)

describe("the depth of a JSON text", () => {
  it.prop("P76: is found without parsing it, whatever stands in its strings", { value: nested }, ({ value }) => {
    const depth = depthOf(value)
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)]) {
      assert.isFalse(HttpBody.isDeeper(text, depth))
      if (depth > 0) assert.isTrue(HttpBody.isDeeper(text, depth - 1))
    }
  })

  it("P76: of texts that are no JSON is told without a failure", () => {
    for (const text of ["", '"', '"\\', "]]]]", '{"a', "[".repeat(128), '"[[[['])
      assert.isFalse(HttpBody.isDeeper(text, 128))
    assert.isTrue(HttpBody.isDeeper("[".repeat(129), 128))
  })
})

// ----- reading

const settings = Settings.make({ maxBodyBytes: 100, maxJsonDepth: 4, receiveTimeout: "5 seconds" })

const requestOf = (body: string | ReadableStream<Uint8Array>, headers: Record<string, string> = {}) =>
  new Request("http://localhost/mcp", { method: "POST", body, headers, duplex: "half" } as RequestInit)

const statusOf = (result: Result.Result<unknown, HttpBody.Refusal>) =>
  Result.isSuccess(result) ? result.success : [result.failure.status, result.failure.code]

const streamOf = (start: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
  new ReadableStream<Uint8Array>({ start })

const bytes = (text: string) => new TextEncoder().encode(text)

describe("a body", () => {
  it.effect("P35: is parsed JSON, or refused with the code of a parse error", () =>
    Effect.gen(function* () {
      for (const [text, expected] of [
        ['{"a":[1,"é"]}', { a: [1, "é"] }],
        ["null", null],
        ["", [400, -32700]],
        ["{", [400, -32700]],
        ["{} {}", [400, -32700]],
        ["[[[[[1]]]]]", [400, -32600]],
        ["[[[[1]]]]", [[[[1]]]]]
      ] as const) {
        assert.deepStrictEqual(statusOf(yield* HttpBody.read(requestOf(text), settings)), expected, text)
      }
    })
  )

  it.effect("P35: that breaks off is refused, not waited for", () =>
    Effect.gen(function* () {
      const broken = streamOf((controller) => controller.error(new Error("reset")))
      assert.deepStrictEqual(statusOf(yield* HttpBody.read(requestOf(broken), settings)), [400, -32700])
    })
  )

  it.effect("M84: larger than the bound is refused, whether it says its length or not", () =>
    Effect.gen(function* () {
      const text = (size: number) => JSON.stringify("x".repeat(size - 2))
      assert.deepStrictEqual(yield* Effect.map(HttpBody.read(requestOf(text(100)), settings), statusOf), "x".repeat(98))
      for (const body of [text(101), text(1000), "é".repeat(51)]) {
        assert.deepStrictEqual(statusOf(yield* HttpBody.read(requestOf(body), settings)), [413, -32000])
        let pulled = 0
        const endless = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            pulled++
            controller.enqueue(bytes(body))
          }
        })
        assert.deepStrictEqual(statusOf(yield* HttpBody.read(requestOf(endless), settings)), [413, -32000])
        assert.isBelow(pulled, 10)
      }
    })
  )

  it.effect("M84: that does not arrive in time is refused with 408, and no longer read", () =>
    Effect.gen(function* () {
      let cancelled = 0
      const endless = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(bytes("{")),
        cancel: () => {
          cancelled++
        }
      })
      const reading = yield* Effect.forkChild(HttpBody.read(requestOf(endless), settings))
      yield* TestClock.adjust("4900 millis")
      assert.isUndefined(reading.pollUnsafe())
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(statusOf(yield* Fiber.join(reading)), [408, -32000])
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(cancelled, 1)
    })
  )
})

// ----- over sockets

const verifier = TokenVerifier.layer({
  verify: () => Effect.succeed({ principal: "me", clientId: "cli", scopes: [], expiresAt: 4_102_444_800 })
})

/** Both ways in: where no token is asked for a plain call is served without the web platform. */
const ways = { "without tokens": Layer.empty, "with tokens": verifier }

const served = (around: Layer.Layer<never>, more: Partial<Options> = {}) => {
  const runs = { count: 0 }
  const echo = Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    execute: ({ text }) => Effect.sync(() => `${++runs.count}: ${text.length}`)
  })
  return Effect.map(listen({ registrations: McpServer.tools(echo), around, ...more }), (listening) => ({
    runs,
    ...listening
  }))
}

const token = { authorization: "Bearer x" }
const withToken = (request: Ask): Ask => ({ ...request, headers: { ...request.headers, ...token } })

const echoes = (text: string) => withToken(modernAsk("echo", { params: { arguments: { text } } }))

for (const [way, around] of Object.entries(ways)) {
  describe(`an endpoint ${way}`, () => {
    it.live("M84: answers 413 to a body above its bound, in both eras, before it has come", () =>
      Effect.gen(function* () {
        const { port, runs, url } = yield* served(around, { maxBodyBytes: 2000 })
        const session = yield* open(url, { headers: token })
        const legacy = (text: string): Ask =>
          withToken({ message: legacyCall(1, "echo", { text }), headers: inSession(session) })
        for (const make of [echoes, legacy]) {
          assert.strictEqual(textOf(yield* ask(url, make("x".repeat(1000)))), `${runs.count}: 1000`)
          const refused = yield* ask(url, make("x".repeat(3000)))
          assert.strictEqual(refused.status, 413)
          assert.include(responseOf(refused).error?.message, "2000 bytes")
        }
        assert.strictEqual(runs.count, 2)
        for (const length of [{ "content-length": 100_000_000 }, { "transfer-encoding": "chunked" }]) {
          const connection = yield* socket(port)
          yield* connection.write(head({ ...token, ...length }))
          if ("transfer-encoding" in length) yield* connection.write(chunk(`"${"x".repeat(3000)}`))
          yield* connection.receives("HTTP/1.1 413")
          // What is still to come of it is not waited for.
          yield* connection.closed
        }
      })
    )

    it.live("P76: answers 400 to a body that is nested too deeply, 100,000 levels as well", () =>
      Effect.gen(function* () {
        const { runs, url } = yield* served(around)
        const session = yield* open(url, { headers: token })
        for (const depth of [129, 100_000, 1_000_000]) {
          for (const nest of ["[".repeat(depth) + "]".repeat(depth), '{"a":'.repeat(depth), "[".repeat(depth)]) {
            const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":${nest}}}}`
            if (body.length > 4_000_000) continue
            for (const headers of [modernAsk("echo").headers, inSession(session), {}]) {
              const answer = yield* ask(url, withToken({ body, headers: headers ?? {} }))
              assert.strictEqual(answer.status, 400)
              assert.include(responseOf(answer).error?.message, "nested deeper than 128 levels")
            }
          }
        }
        assert.strictEqual(runs.count, 0)
        assert.strictEqual(textOf(yield* ask(url, echoes("x"))), "1: 1")
      })
    )

    it.live("M84: answers 408 to a body that is too slow, closes its connection, and serves others meanwhile", () =>
      Effect.gen(function* () {
        const { port, runs, url } = yield* served(around, { receiveTimeout: 300 })
        const connection = yield* socket(port)
        yield* connection.write(head({ ...token, "content-length": 1000 }))
        yield* connection.write('{"jsonrpc":')
        assert.strictEqual(textOf(yield* ask(url, echoes("x"))), "1: 1")
        assert.strictEqual(connection.received(), "")
        yield* connection.receives("HTTP/1.1 408")
        yield* connection.closed
        assert.strictEqual(runs.count, 1)
      })
    )

    it.live("M84: answers 415 to a POST that is no JSON at once, without its body", () =>
      Effect.gen(function* () {
        const { port } = yield* served(around)
        for (const type of ["text/plain", "application/x-www-form-urlencoded", "text/plain; application/json", ""]) {
          const connection = yield* socket(port)
          yield* connection.write(head({ ...token, "content-type": type, "content-length": 1000 }))
          yield* connection.receives("HTTP/1.1 415")
          yield* connection.closed
        }
      })
    )

    it.live("P35: answers 400 with -32700 to what is no JSON, and goes on on the same connection", () =>
      Effect.gen(function* () {
        const { port } = yield* served(around)
        const connection = yield* socket(port)
        yield* connection.write(post("{", token))
        yield* connection.receives("-32700")
        yield* connection.write(post(JSON.stringify({ jsonrpc: "2.0", ...initialize }), token))
        yield* connection.receives("HTTP/1.1 200")
        assert.isFalse(connection.isClosed())
      })
    )
  })
}
