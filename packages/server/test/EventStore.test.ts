/**
 * What a 2025 client missed while its connection was broken: the stores, and how a client resumes by them.
 */
import { Progress, Tool } from "@agenttool/core"
import { EventStore, McpServer } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Context, Deferred, Effect, Fiber, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as SqliteClient from "../../examples/src/sqlite/SqliteClient.ts"
import {
  type Answer,
  ask,
  inSession,
  legacyAsk,
  listen,
  modernAsk,
  open,
  textOf,
  until,
  within
} from "./support/endpoint.ts"
import { legacyCall } from "./support/rawMessages.ts"
import { post, socket } from "./support/sockets.ts"

const storeOf = <R>(layer: Layer.Layer<never, never, R>) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => {
    const store = Context.get(context, EventStore.EventStore)
    assert.isDefined(store)
    return store
  })

const message = (n: number): Schema.Json => ({ jsonrpc: "2.0", method: "n", params: { n, text: "ü\u2028'\"" } })

/** A database that lives as long as the test. */
const database = Effect.map(Layer.build(SqliteClient.layer()), (context) =>
  Layer.succeed(SqlClient.SqlClient, Context.get(context, SqlClient.SqlClient))
)

const stores = {
  memory: Effect.succeed(EventStore.layerMemory()),
  SQL: Effect.map(Effect.orDie(database), (sql) => Layer.provide(EventStore.layerSql(), sql))
}

for (const [kind, makeLayer] of Object.entries(stores)) {
  describe(`a store in ${kind}`, () => {
    it.effect("P127: gives each event an id of its own, and the later ones of the same stream, in order", () =>
      Effect.gen(function* () {
        const store = yield* storeOf(yield* makeLayer)
        const ids: Array<string> = []
        for (let n = 0; n < 20; n++) ids.push(yield* store.add(n % 2 === 0 ? "a/1" : "b/1", message(n)))
        assert.lengthOf(new Set(ids), 20)
        const after = yield* store.after(ids[4] ?? "")
        assert.deepStrictEqual(
          after,
          [6, 8, 10, 12, 14, 16, 18].map((n) => ({ id: ids[n] ?? "", stream: "a/1", message: message(n) }))
        )
        assert.deepStrictEqual(yield* store.streamOf(ids[5] ?? ""), Option.some("b/1"))
        assert.deepStrictEqual(yield* store.after(ids[19] ?? ""), [])
      })
    )

    it.effect("P127: knows nothing of ids that it has not given", () =>
      Effect.gen(function* () {
        const store = yield* storeOf(yield* makeLayer)
        yield* store.add("a/1", message(1))
        for (const id of ["", "0", "99", "nonsense", "__proto__", "' or 1=1 --"]) {
          assert.deepStrictEqual(yield* store.streamOf(id), Option.none())
          assert.deepStrictEqual(yield* store.after(id), [])
        }
      })
    )

    it.effect("P127: forgets the streams of a session, and no other's", () =>
      Effect.gen(function* () {
        const store = yield* storeOf(yield* makeLayer)
        const add = (stream: string) => store.add(stream, message(1))
        const [gone, alsoGone] = [yield* add("a%_/1"), yield* add("a%_/2")]
        const kept = [yield* add("a"), yield* add("axx/1"), yield* add("b/a%_/1"), yield* add("A%_/1")]
        yield* store.forget("a%_/")
        for (const id of [gone, alsoGone]) assert.deepStrictEqual(yield* store.streamOf(id), Option.none())
        // Case is not for a store to tell apart: keys of sessions are lower case.
        for (const id of kept.slice(0, 3)) assert.isTrue(Option.isSome(yield* store.streamOf(id)))
      })
    )
  })
}

describe("a store in memory", () => {
  it.effect("M84: keeps so many events, and so many bytes; the oldest go first", () =>
    Effect.gen(function* () {
      const few = yield* storeOf(EventStore.layerMemory({ maxEvents: 3 }))
      const ids = [
        yield* few.add("a/1", 1),
        yield* few.add("b/1", 2),
        yield* few.add("a/1", 3),
        yield* few.add("a/1", 4)
      ]
      assert.deepStrictEqual((yield* Effect.forEach(ids, few.streamOf)).map(Option.isSome), [false, true, true, true])
      const small = yield* storeOf(EventStore.layerMemory({ maxBytes: 1000 }))
      const big = "x".repeat(400)
      const sizes = [yield* small.add("a/1", big), yield* small.add("a/1", big), yield* small.add("a/1", big)]
      assert.deepStrictEqual((yield* Effect.forEach(sizes, small.streamOf)).map(Option.isSome), [false, true, true])
      // Larger than all: nothing of it is kept, nor what was there.
      const huge = yield* small.add("a/1", "x".repeat(2000))
      assert.deepStrictEqual(yield* small.streamOf(huge), Option.none())
      yield* small.forget("a/")
      const again = [yield* small.add("a/1", big), yield* small.add("a/1", big)]
      assert.deepStrictEqual((yield* Effect.forEach(again, small.streamOf)).map(Option.isSome), [true, true])
    })
  )
})

describe("a store in SQL", () => {
  it.effect("P127: is shared by processes, which give no id twice, nor after a restart", () =>
    Effect.gen(function* () {
      const layer = Layer.provide(EventStore.layerSql({ table: "events" }), yield* database)
      const [first, second] = [yield* storeOf(layer), yield* storeOf(layer)]
      const ids = [
        yield* first.add("a/1", message(1)),
        yield* second.add("b/1", message(2)),
        yield* first.add("a/1", message(3)),
        yield* second.add("b/1", message(4))
      ]
      const third = yield* storeOf(layer)
      ids.push(yield* third.add("c/1", message(5)))
      assert.lengthOf(new Set(ids), 5)
      assert.deepStrictEqual(
        (yield* second.after(ids[1] ?? "")).map((event) => event.id),
        [ids[3]]
      )
      assert.deepStrictEqual(
        (yield* first.after(ids[0] ?? "")).map((event) => event.id),
        [ids[2]]
      )
    })
  )

  it.effect("P127: drops what a killed process has left, when it is old", () =>
    Effect.gen(function* () {
      const layer = Layer.provide(EventStore.layerSql({ keepFor: "1 hour" }), yield* database)
      const killed = yield* storeOf(layer)
      const old = yield* killed.add("a/1", message(1))
      yield* TestClock.adjust("50 minutes")
      const young = yield* killed.add("a/1", message(2))
      yield* TestClock.adjust("20 minutes")
      const next = yield* storeOf(layer)
      assert.deepStrictEqual(yield* next.streamOf(old), Option.none())
      assert.deepStrictEqual(yield* next.streamOf(young), Option.some("a/1"))
    })
  )
})

// ----- resuming

/** A store that tells what it has kept. */
const watched = () => {
  const streams = new Map<string, string>()
  const layer = Layer.effect(
    EventStore.EventStore,
    Effect.map(storeOf(EventStore.layerMemory()), (store) => ({
      ...store,
      add: (stream, event) => Effect.tap(store.add(stream, event), (id) => Effect.sync(() => streams.set(id, stream))),
      forget: (prefix) =>
        Effect.tap(store.forget(prefix), () =>
          Effect.sync(() => {
            for (const [id, stream] of streams) if (stream.startsWith(prefix)) streams.delete(id)
          })
        )
    }))
  )
  return { streams, layer }
}

const served = (around: Layer.Layer<never>) =>
  Effect.gen(function* () {
    const runs = { count: 0, released: 0 }
    const gate = yield* Deferred.make<void>()
    const wait = Tool.make("wait", {
      execute: Effect.fn(function* () {
        runs.count++
        yield* Progress.report("begun")
        yield* Deferred.await(gate)
        yield* Progress.report("done")
        return "waited"
      })
    })
    const echo = Tool.make("echo", {
      parameters: Schema.Struct({ text: Schema.String }),
      execute: ({ text }) => Effect.succeed(text)
    })
    const listening = yield* listen({ registrations: McpServer.tools(wait, echo), around })
    return { runs, openGate: Effect.asVoid(Deferred.succeed(gate, undefined)), ...listening }
  })

const lastIdIn = ({ text }: Answer): string => [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? assert.fail(text)

/** Asks for what came after an event; a stream that stays open is left after a while. */
const resume = (url: string, session: string, id: string) =>
  ask(url, {
    method: "GET",
    headers: { ...inSession(session), "last-event-id": id, accept: "text/event-stream" }
  })

describe("resuming", () => {
  for (const [kind, makeLayer] of Object.entries(stores)) {
    it.live(`P127, P125: the SDK's client gets the result of a call whose connection was cut, from either store`, () =>
      Effect.gen(function* () {
        const { openGate, runs, url } = yield* served(yield* makeLayer)
        const resumed: Array<string> = []
        let cut: (() => void) | undefined
        const client = new Client({ name: "test", version: "0" }, { versionNegotiation: { mode: "legacy" } })
        client.onerror = () => {}
        const transport = new StreamableHTTPClientTransport(new URL(url), {
          reconnectionOptions: {
            initialReconnectionDelay: 10,
            maxReconnectionDelay: 10,
            reconnectionDelayGrowFactor: 1,
            maxRetries: 5
          },
          fetch: async (target, init) => {
            const headers = new Headers(init?.headers)
            const lastId = headers.get("last-event-id")
            if (lastId !== null) resumed.push(lastId)
            if (init?.method !== "POST" || !String(init.body).includes('"tools/call"')) return fetch(target, init)
            // The connection of the call is one that the test can cut.
            const controller = new AbortController()
            cut = () => controller.abort()
            return fetch(target, { ...init, signal: controller.signal })
          }
        })
        yield* Effect.promise(() => client.connect(transport))
        const progress: Array<string | undefined> = []
        const call = yield* Effect.forkChild(
          Effect.promise(() =>
            client.callTool(
              { name: "wait", arguments: {} },
              { onprogress: ({ message: words }) => void progress.push(words) }
            )
          ),
          { startImmediately: true }
        )
        yield* until(
          Effect.sync(() => progress.length),
          (length) => length === 1
        )
        cut?.()
        yield* until(
          Effect.sync(() => resumed.length),
          (length) => length > 0
        )
        yield* openGate
        const { content } = yield* within(kind, Fiber.join(call))
        assert.deepStrictEqual(content, [{ type: "text", text: "waited" }])
        assert.deepStrictEqual(progress, ["begun", "done"])
        assert.strictEqual(runs.count, 1)
        yield* Effect.promise(() => client.close())
      })
    )
  }

  it.live("P127: a client gets only what came after the event that it names, on the stream of that event", () =>
    Effect.gen(function* () {
      const { layer } = watched()
      const { openGate, port, runs, url } = yield* served(layer)
      const session = yield* open(url)
      // One call ends on a stream of its own; another one's connection is cut.
      const ended = yield* ask(url, legacyAsk(session, legacyCall(1, "echo", { text: "of the ended one" })))
      const client = yield* socket(port)
      yield* client.write(post(JSON.stringify({ jsonrpc: "2.0", ...legacyCall(2, "wait") }), inSession(session)))
      const first = yield* client.receives(/^id: .+$/m)
      const id = /^id: (.+)$/m.exec(first)?.[1]?.trim() ?? ""
      yield* until(
        Effect.sync(() => runs.count),
        (count) => count === 1
      )
      yield* client.cut
      yield* openGate
      const again = yield* within("what was missed", resume(url, session, id))
      assert.include(again.text, '"waited"')
      assert.notInclude(again.text, "of the ended one")
      // Nothing came after its last event: there is nothing to be had again.
      const nothing = yield* Effect.timeoutOption(resume(url, session, lastIdIn(ended)), "300 millis")
      if (Option.isSome(nothing)) assert.notInclude(nothing.value.text, "of the ended one")
    })
  )

  it.live("P127: an event of another session is refused, and so is one that nobody has heard of", () =>
    Effect.gen(function* () {
      const { layer } = watched()
      const { log, url } = yield* served(layer)
      const [mine, other] = [yield* open(url), yield* open(url)]
      const secret = yield* ask(url, legacyAsk(other, legacyCall(1, "echo", { text: "a secret" })))
      for (const id of [
        lastIdIn(secret),
        ...[...secret.text.matchAll(/^id: (.+)$/gm)].map(([, each]) => each ?? ""),
        "no such event"
      ]) {
        const refused = yield* within("a refusal", resume(url, mine, id))
        assert.isTrue(refused.status >= 400 && refused.status < 500, String(refused.status))
        assert.notInclude(refused.text, "a secret")
      }
      assert.notInclude(log(), "ERROR")
    })
  )

  it.live("P127: what was kept of a session goes when it ends", () =>
    Effect.gen(function* () {
      const { layer, streams } = watched()
      const { url } = yield* served(layer)
      const [ends, stays] = [yield* open(url), yield* open(url)]
      for (const session of [ends, stays]) {
        yield* ask(url, legacyAsk(session, legacyCall(1, "echo", { text: session })))
      }
      const before = streams.size
      assert.isAbove(before, 0)
      yield* ask(url, { method: "DELETE", headers: inSession(ends) })
      yield* until(
        Effect.sync(() => streams.size),
        (size) => size === before / 2
      )
      yield* ask(url, { method: "DELETE", headers: inSession(stays) })
      yield* until(
        Effect.sync(() => streams.size),
        (size) => size === 0
      )
    })
  )

  it.live("P127: a store that fails costs the resumption, not the message", () =>
    Effect.gen(function* () {
      const broken = Layer.effect(
        EventStore.EventStore,
        Effect.map(storeOf(EventStore.layerMemory()), (store) => ({
          ...store,
          add: () => Effect.die(new Error("the database at 10.0.0.7 is down"))
        }))
      )
      const { log, url } = yield* served(broken)
      const session = yield* open(url)
      for (const text of ["one", "two"]) {
        const answer = yield* within(text, ask(url, legacyAsk(session, legacyCall(text, "echo", { text }))))
        assert.strictEqual(textOf(answer), text)
        assert.notInclude(answer.text, "10.0.0.7")
        const resumed = yield* resume(url, session, lastIdIn(answer))
        assert.isTrue(resumed.status >= 400 && resumed.status < 500, String(resumed.status))
      }
      assert.include(log(), "10.0.0.7")
    })
  )

  it.live("P107: at 2026-07-28 nothing is kept, and a Last-Event-ID is ignored", () =>
    Effect.gen(function* () {
      const { layer, streams } = watched()
      const { url } = yield* served(layer)
      const call = modernAsk("echo", {
        params: { arguments: { text: "x" } },
        meta: { progressToken: 1 },
        headers: { "last-event-id": "1" }
      })
      assert.strictEqual(textOf(yield* ask(url, call)), "x")
      assert.strictEqual(streams.size, 0)
    })
  )

  it.live("M84: without a store nothing can be resumed, and events have no ids", () =>
    Effect.gen(function* () {
      const { url } = yield* served(Layer.empty)
      const session = yield* open(url)
      const { text } = yield* ask(url, legacyAsk(session, legacyCall(1, "echo", { text: "x" })))
      assert.notMatch(text, /^id:/m)
    })
  )
})
