/**
 * What only an HTTP endpoint has: status codes, sessions of 2025 clients, `Host` and `Origin`, dropped connections.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as Child from "./support/Child.ts"
import { type Ask, ask, inSession, modernHeaders, open } from "./support/endpoint.ts"
import { type LinkService, make, on, settled, textOf, until, within, layer as linkLayer } from "./support/Link.ts"
import { initialize, legacyCall, modernCall } from "./support/rawMessages.ts"

const call = (url: string, session: string, id: string, name: string, args: Record<string, unknown> = {}) =>
  ask(url, { message: legacyCall(id, name, args), headers: inSession(session) })

const runsOf = (link: LinkService, tool: string) => Effect.map(link.counts, ({ runs }) => runs[tool] ?? 0)

layer(linkLayer({ transport: "http", era: "2026-07-28" }), { excludeTestServices: true })("an HTTP endpoint", (it) => {
  it.effect(
    "S-06: an unknown session is 404, none is 400",
    on(({ url }) =>
      Effect.gen(function* () {
        const message = { id: 1, method: "tools/list", params: {} }
        for (const method of ["POST", "GET", "DELETE"]) {
          const body = method === "POST" ? { message } : {}
          const unknown = yield* ask(url, {
            method,
            ...body,
            headers: inSession("00000000-0000-4000-8000-000000000000")
          })
          assert.strictEqual(unknown.status, 404, method)
          const none = yield* ask(url, { method, ...body, headers: { "mcp-protocol-version": "2025-11-25" } })
          assert.strictEqual(none.status, 400, method)
        }
      })
    )
  )

  it.effect(
    "S-07, M45: DELETE stops what runs in the session, releases what lives in it, once, and the session is gone",
    on((link) =>
      Effect.gen(function* () {
        const { url } = link
        const before = yield* link.counts
        const session = yield* open(url)
        yield* call(url, session, "count", "count")
        yield* Effect.forkChild(call(url, session, "hold", "hold"), { startImmediately: true })
        yield* until(link.counts, ({ attached }) => attached === 1)
        const { status } = yield* ask(url, { method: "DELETE", headers: inSession(session) })
        assert.strictEqual(status, 200)
        yield* until(link.counts, ({ attached, closed, fibers }) => attached + fibers === 0 && closed > before.closed)
        const after = yield* link.counts
        assert.deepStrictEqual(
          [after.opened - before.opened, after.closed - before.closed, after.released - before.released],
          [1, 1, 1]
        )
        assert.strictEqual((yield* call(url, session, "late", "echo", { text: "x" })).status, 404)
      })
    )
  )

  it.effect(
    "S-08: a foreign Origin or Host is refused before anything runs, in both eras and for every method",
    on((link) =>
      Effect.gen(function* () {
        const { url } = link
        const before = yield* runsOf(link, "nothing")
        const session = yield* open(url)
        const requests: ReadonlyArray<Ask> = [
          { message: modernCall(1, "nothing"), headers: modernHeaders("nothing") },
          { message: legacyCall(1, "nothing"), headers: inSession(session) },
          { message: initialize },
          { method: "GET", headers: inSession(session) },
          { method: "DELETE", headers: inSession(session) }
        ]
        for (const from of requests) {
          for (const foreign of [{ origin: "http://evil.example" }, { origin: "null" }, { host: "evil.example" }]) {
            const { status } = yield* ask(url, { ...from, headers: { ...from.headers, ...foreign } })
            assert.strictEqual(status, 403, JSON.stringify([from, foreign]))
          }
        }
        assert.strictEqual(yield* runsOf(link, "nothing"), before)
        for (const origin of [{}, { origin: "http://localhost:1234" }, { origin: "http://127.0.0.1" }]) {
          for (const from of requests.slice(0, 2)) {
            const { status } = yield* ask(url, { ...from, headers: { ...from.headers, ...origin } })
            assert.strictEqual(status, 200)
          }
        }
        assert.strictEqual(yield* runsOf(link, "nothing"), before + 6)
        // The refused DELETE has not ended the session.
        assert.strictEqual((yield* ask(url, { method: "DELETE", headers: inSession(session) })).status, 200)
      })
    )
  )

  it.effect(
    "M60: at 2026-07-28 a closed response stream is the cancellation of its request",
    on((link) =>
      Effect.gen(function* () {
        const dropped = ask(link.url, { message: modernCall(1, "hold"), headers: modernHeaders("hold") })
        yield* Effect.raceFirst(
          dropped,
          until(link.counts, ({ attached }) => attached === 1)
        )
        yield* until(link.counts, ({ attached, fibers }) => attached === 0 && fibers === 0)
      })
    )
  )

  it.effect(
    "M60: the end of the request that a call was parked by does not stop it",
    on((link) =>
      Effect.gen(function* () {
        const { url } = link
        const { messages } = yield* ask(url, {
          message: modernCall(1, "ask", { arguments: { build: "b" } }),
          headers: modernHeaders("ask")
        })
        const state = messages.at(-1)?.result?.requestState
        assert.isDefined(state)
        assert.strictEqual((yield* link.counts).parked, 1)
        const next = modernCall(2, "ask", {
          requestState: state,
          inputResponses: { elicit_1: { action: "accept", content: { environment: "staging" } } }
        })
        const last = yield* ask(url, { message: next, headers: modernHeaders("ask") })
        assert.strictEqual(textOf(last.messages.at(-1)?.result ?? {}), "b to staging")
      })
    )
  )

  it.effect(
    "M68: in a session of the 2025 eras a dropped connection is no cancellation",
    on((link) =>
      Effect.gen(function* () {
        const { url } = link
        const session = yield* open(url)
        yield* Effect.raceFirst(
          call(url, session, "hold", "hold"),
          until(link.counts, ({ attached }) => attached === 1)
        )
        // A round trip later it still runs, and it ends with the session.
        yield* call(url, session, "echo", "echo", { text: "still there" })
        assert.strictEqual((yield* link.counts).attached, 1)
        yield* ask(url, { method: "DELETE", headers: inSession(session) })
      })
    )
  )

  it.effect(
    "M44: sessions have ids of their own, and a client of one does not see the other",
    on((link) =>
      Effect.gen(function* () {
        const { url } = link
        const [first, second] = [yield* open(url), yield* open(url)]
        assert.notStrictEqual(first, second)
        for (const [session, expected] of [
          [first, 1],
          [first, 2],
          [second, 1]
        ] as const) {
          const { messages } = yield* call(url, session, "c", "count")
          const text = textOf(messages.at(-1)?.result ?? {})
          assert.deepStrictEqual(JSON.parse(text), { count: expected, id: session, lifetime: "connection" })
        }
        for (const session of [first, second]) yield* ask(url, { method: "DELETE", headers: inSession(session) })
        yield* until(link.counts, ({ closed, opened }) => opened === closed)
      })
    )
  )
})

describe("an HTTP endpoint with other settings", () => {
  it.live("M45: a session without requests, running calls and open questions ends by itself", () =>
    Effect.gen(function* () {
      const link = yield* make({ transport: "http", era: "2026-07-28", settings: { sessionIdleTimeout: 150 } })
      const { url } = link
      const [idle, busy] = [yield* open(url), yield* open(url)]
      yield* call(url, idle, "count", "count")
      const held = yield* Effect.forkChild(call(url, busy, "hold", "hold"), { startImmediately: true })
      yield* until(link.counts, ({ closed }) => closed === 1)
      assert.strictEqual((yield* call(url, idle, "late", "nothing")).status, 404)
      // The one with a running call is there.
      assert.strictEqual((yield* call(url, busy, "beside", "nothing")).status, 200)
      yield* Fiber.interrupt(held)
      yield* ask(url, { method: "DELETE", headers: inSession(busy) })
      yield* settled(link)
    })
  )

  it.live("M84: one session more than there may be is turned away with 503, and no other session suffers", () =>
    Effect.gen(function* () {
      const { url } = yield* make({ transport: "http", era: "2026-07-28", settings: { maxSessions: 2 } })
      const [first] = [yield* open(url), yield* open(url)]
      const { status } = yield* ask(url, { message: initialize })
      assert.strictEqual(status, 503)
      assert.strictEqual((yield* call(url, first, "c", "nothing")).status, 200)
      yield* ask(url, { method: "DELETE", headers: inSession(first) })
      yield* open(url)
    })
  )

  it.live(
    "M61: after SIGTERM an HTTP server stops its calls, releases what lives in its sessions, and ends with code 0",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.http({ shutdownGrace: 400 })
        const { url } = child
        // A client that listens holds a request open all the time.
        const listening = yield* open(url)
        yield* Effect.forkChild(ask(url, { method: "GET", headers: inSession(listening) }), { startImmediately: true })
        const session = yield* open(url)
        yield* call(url, session, "count", "count")
        yield* ask(url, { message: modernCall(1, "ask", { arguments: { build: "b" } }), headers: modernHeaders("ask") })
        const running = yield* Effect.forkChild(
          ask(url, { message: modernCall(2, "hold"), headers: modernHeaders("hold") }),
          { startImmediately: true }
        )
        yield* child.said("holding")
        yield* child.kill("SIGTERM")
        yield* child.said("released ask")
        const late = yield* ask(url, { message: modernCall(3, "hold"), headers: modernHeaders("hold") })
        assert.include(textOf(late.messages.at(-1)?.result ?? {}), "the server is shutting down")
        const { messages } = yield* within("the stopped call", Fiber.join(running))
        assert.include(textOf(messages.at(-1)?.result ?? {}), "the server is shutting down")
        const { code, millis } = yield* child.exit
        assert.strictEqual(code, 0)
        assert.isBelow(millis, 3_000)
        for (const words of ["released hold", "closed the counter"]) {
          assert.include(child.output(), words)
        }
      }),
    { timeout: 30_000 }
  )
})
