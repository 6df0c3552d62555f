/**
 * Rules of the protocol that no other suite is named after, as they show on the wire of a listening server: most of them
 * are the SDK's to hold, and this is where we would notice that it no longer does. docs/protocol.md has the table.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import { EventStore, McpServer } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { type Context, Deferred, Effect, Exit, Layer, Schema, Scope } from "effect"
import * as Child from "./support/Child.ts"
import {
  type Answer,
  ask,
  inSession,
  legacyAsk,
  listen,
  modernAsk,
  modernRequest,
  open,
  type Options,
  responseOf,
  textOf,
  until
} from "./support/endpoint.ts"
import { readFileSync } from "node:fs"
import { envelope, initialize, initialized, legacyCall } from "./support/rawMessages.ts"
import { post, type Socket, socket } from "./support/sockets.ts"

const served = (more: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    const tools = [
      Tool.make("zebra", { execute: () => Effect.succeed("zebra") }),
      Tool.make("echo", {
        parameters: Schema.Struct({ text: Schema.String }),
        execute: ({ text }) => Effect.as(Effect.logInfo("a line for the log"), text)
      }),
      Tool.make("ask", {
        execute: () => Effect.map(Elicitor.confirm("Sure?"), (sure) => (sure ? "sure" : "not sure"))
      }),
      Tool.make("steps", {
        execute: Effect.fn(function* () {
          yield* Progress.report({ progress: 0.5, total: 2.5, message: "half" })
          yield* Deferred.await(gate)
          yield* Progress.report({ progress: 1 })
          return "done"
        })
      })
    ] as const
    // A registration that comes and goes while the server listens.
    const scope = yield* Scope.make()
    let core: Context.Context<McpServer.Core> | undefined
    const captured = Layer.effectDiscard(
      Effect.map(Effect.context<McpServer.Core>(), (context) => {
        core = context
      })
    )
    const listening = yield* listen({ registrations: Layer.merge(McpServer.tools(...tools), captured), ...more })
    const addLate = Effect.suspend(() => {
      assert.isDefined(core)
      return McpServer.tools(Tool.make("late", { execute: () => Effect.succeed("late") })).pipe(
        Layer.provide(Layer.succeedContext(core)),
        Layer.buildWithScope(scope),
        Effect.orDie
      )
    })
    return {
      openGate: Effect.asVoid(Deferred.succeed(gate, undefined)),
      addLate,
      removeLate: Scope.close(scope, Exit.void),
      ...listening
    }
  })

const json = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message })

/** The messages of a stream that is still open. */
const messagesOn = (stream: Socket): ReadonlyArray<Record<string, unknown>> =>
  stream
    .received()
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>)

const results = (answer: Answer) => responseOf(answer).result ?? assert.fail(answer.text)

const serverInfo = { name: "suite", version: "1.2.3" }

const listening = (toolsListChanged: boolean, id: string | number) =>
  post(
    json({
      id,
      method: "subscriptions/listen",
      params: { notifications: { toolsListChanged, promptsListChanged: true }, _meta: envelope }
    }),
    { "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" }
  )

describe("2026-07-28", () => {
  it.live("P2, P10, P11, P15: discover says what is served, who serves it, and nothing that is not there", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const { capabilities, ...discovered } = results(yield* ask(url, modernRequest("server/discover")))
      assert.strictEqual(discovered.resultType, "complete")
      assert.include(discovered.supportedVersions, "2026-07-28")
      assert.isNumber(discovered.ttlMs)
      assert.include(["public", "private"], discovered.cacheScope)
      assert.deepStrictEqual(discovered._meta, { "io.modelcontextprotocol/serverInfo": serverInfo })
      assert.deepStrictEqual(capabilities, {
        tools: { listChanged: true },
        experimental: { "io.github.christopherdavenport.agenttool/facts": {} }
      })
    })
  )

  it.live(
    "P13, P15, P57: a client need not say who it is; results say who the server is; answers to answers have no cache hints",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const { "io.modelcontextprotocol/clientInfo": _, ...anonymous } = envelope
        const called = yield* ask(url, {
          ...modernAsk("zebra"),
          message: { id: 1, method: "tools/call", params: { name: "zebra", arguments: {}, _meta: anonymous } }
        })
        assert.strictEqual(textOf(called), "zebra")
        const round = results(yield* ask(url, modernAsk("ask")))
        const last = results(
          yield* ask(
            url,
            modernAsk("ask", {
              id: 2,
              params: { requestState: round.requestState, inputResponses: { elicit_1: { action: "cancel" } } }
            })
          )
        )
        for (const result of [results(called), round, last, results(yield* ask(url, modernRequest("tools/list")))]) {
          assert.deepInclude(result._meta, { "io.modelcontextprotocol/serverInfo": serverInfo })
        }
        for (const result of [round, last]) {
          assert.notProperty(result, "ttlMs")
          assert.notProperty(result, "cacheScope")
        }
      })
  )

  it.live(
    "P36, P37, P41, P42, P44: a round answers a call, with questions and a state; its retry is a request of its own",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const round = results(yield* ask(url, modernAsk("ask", { id: "one" })))
        assert.strictEqual(round.resultType, "input_required")
        assert.isString(round.requestState)
        assert.deepStrictEqual(Object.keys(round.inputRequests ?? {}), ["elicit_1"])
        const { method, params } = round.inputRequests?.elicit_1 ?? assert.fail("no question")
        assert.strictEqual(method, "elicitation/create")
        assert.property(params, "requestedSchema")
        assert.notProperty(params, "elicitationId")
        const retry = modernAsk("ask", {
          id: 2,
          params: {
            requestState: round.requestState,
            inputResponses: {
              elicit_1: { action: "accept", content: { confirm: true } },
              unasked: { action: "decline" }
            }
          }
        })
        assert.strictEqual(textOf(yield* ask(url, retry)), "sure")
      })
  )

  it.live("P20, P21, P62, P106: only what belongs to a request is on its stream, which ends with the response", () =>
    Effect.gen(function* () {
      const { addLate, log, openGate, port } = yield* served()
      const [stream, listens] = [yield* socket(port), yield* socket(port)]
      yield* listens.write(listening(true, "listens"))
      yield* listens.receives("acknowledged")
      const call = modernAsk("steps", { meta: { progressToken: "t" } })
      yield* stream.write(post(json(call.message ?? {}), { ...call.headers, connection: "close" }))
      yield* stream.receives('"half"')
      yield* addLate
      yield* listens.receives("list_changed")
      yield* openGate
      yield* stream.closed
      const messages = messagesOn(stream)
      assert.deepStrictEqual(
        messages.map(({ id, method }) => method ?? id),
        ["notifications/progress", "notifications/progress", 1]
      )
      assert.match(stream.received(), /x-accel-buffering: no/i)
      assert.deepStrictEqual(
        messagesOn(listens).map(({ method }) => method),
        ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"]
      )
      // Lines of the log are the operator's.
      assert.notInclude(stream.received(), "a line for the log")
      assert.isString(log())
    })
  )

  it.live(
    "P22, P23, P34: headers that are missing or say something else are 400 and -32020; the rest has the status of its code",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const good = modernAsk("zebra")
        const without = (name: string) => {
          const headers = { ...good.headers }
          delete headers[name]
          return headers
        }
        const unsupported = { ...envelope, "io.modelcontextprotocol/protocolVersion": "2027-01-01" }
        const answers = [
          [{ ...good, headers: without("mcp-method") }, 400, -32020],
          [{ ...good, headers: without("mcp-name") }, 400, -32020],
          [{ ...good, headers: { ...good.headers, "mcp-method": "tools/list" } }, 400, -32020],
          [{ ...good, headers: { ...good.headers, "mcp-name": "Zebra" } }, 400, -32020],
          [{ ...good, headers: { ...good.headers, "mcp-protocol-version": "2025-11-25" } }, 400, -32020],
          [
            {
              message: { id: 1, method: "tools/list", params: { _meta: unsupported } },
              headers: { "mcp-protocol-version": "2027-01-01", "mcp-method": "tools/list" }
            },
            400,
            -32022
          ],
          [modernRequest("no/such/method"), 404, -32601],
          [modernRequest("ping"), 404, -32601],
          [modernRequest("logging/setLevel", { params: { level: "info" } }), 404, -32601],
          [modernAsk("no_such_tool"), 200, -32602]
        ] as const
        for (const [request, status, code] of answers) {
          const answer = yield* ask(url, request)
          assert.deepStrictEqual([answer.status, responseOf(answer).error?.code], [status, code], answer.text)
        }
      })
  )

  it.live("P19, P102: a notification is accepted without a body, and has no response", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const { headers, message } = modernRequest("notifications/progress", {
        params: { progressToken: 1, progress: 1 }
      })
      const { id: _, ...notification } = message ?? {}
      const { status, text } = yield* ask(url, { message: notification, headers: headers ?? {} })
      assert.deepStrictEqual([status, text], [202, ""])
    })
  )

  it.live(
    "P101: a client of 2025 that does not take both kinds of answer is told so; one of 2026-07-28 is served",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const session = yield* open(url)
        for (const accept of ["text/html", "application/json", "text/event-stream"]) {
          assert.strictEqual((yield* ask(url, legacyAsk(session, legacyCall(1, "zebra"), { accept }))).status, 406)
          assert.strictEqual(textOf(yield* ask(url, modernAsk("zebra", { headers: { accept } }))), "zebra")
        }
      })
  )

  it.live("P108: a session id on a request means nothing, and none is given", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const session = yield* open(url)
      for (const id of [session, "00000000-0000-4000-8000-000000000000"]) {
        const answer = yield* ask(url, modernAsk("zebra", { headers: { "mcp-session-id": id } }))
        assert.strictEqual(textOf(answer), "zebra")
        assert.notProperty(answer.headers, "mcp-session-id")
      }
    })
  )

  it.live("P9, P108: an endpoint of this revision alone says which it serves, and has neither GET nor DELETE", () =>
    Effect.gen(function* () {
      const { url } = yield* served({ legacy: "reject" })
      const refused = yield* ask(url, { message: initialize })
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "2026-07-28")
      for (const method of ["GET", "DELETE"]) assert.strictEqual((yield* ask(url, { method })).status, 405)
      assert.strictEqual(textOf(yield* ask(url, modernAsk("zebra"))), "zebra")
    })
  )

  it.live("P71: tools are listed in the order of their registration, every time", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const list = Effect.map(ask(url, modernRequest("tools/list")), (answer) => JSON.stringify(results(answer).tools))
      const first = yield* list
      assert.deepStrictEqual(
        (JSON.parse(first) as ReadonlyArray<{ name: string }>).map(({ name }) => name),
        ["zebra", "echo", "ask", "steps"]
      )
      for (let times = 0; times < 3; times++) assert.strictEqual(yield* list, first)
    })
  )
})

describe("subscriptions", () => {
  it.live("P86-P89, P91: get what was asked for after the acknowledgement, each under its own id", () =>
    Effect.gen(function* () {
      const { addLate, port, removeLate } = yield* served()
      const streams = [yield* socket(port), yield* socket(port), yield* socket(port)] as const
      const [text, number, unasked] = streams
      yield* text.write(listening(true, "text"))
      yield* number.write(listening(true, 7))
      yield* unasked.write(listening(false, "unasked"))
      for (const stream of streams) yield* stream.receives("acknowledged")
      yield* addLate
      for (const stream of [text, number]) yield* stream.receives("list_changed")
      yield* removeLate
      for (const stream of [text, number]) {
        yield* until(
          Effect.sync(() => messagesOn(stream).length),
          (length) => length === 3
        )
      }
      const idOf = ({ params }: Record<string, unknown>) =>
        (params as { _meta: Record<string, unknown> })._meta["io.modelcontextprotocol/subscriptionId"]
      for (const [stream, id] of [
        [text, "text"],
        [number, 7]
      ] as const) {
        const [acknowledged, ...changes] = messagesOn(stream)
        assert.deepInclude(acknowledged, { method: "notifications/subscriptions/acknowledged" })
        assert.deepInclude(acknowledged?.params, { notifications: { toolsListChanged: true } })
        for (const message of messagesOn(stream)) assert.strictEqual(idOf(message), id)
        for (const { method } of changes) assert.strictEqual(method, "notifications/tools/list_changed")
      }
      // What is left of it is nothing, so it has ended.
      assert.deepStrictEqual(
        messagesOn(unasked).map(({ id, method }) => method ?? id),
        ["notifications/subscriptions/acknowledged", "unasked"]
      )
    })
  )
})

describe("a server that ends", () => {
  it.live(
    "P90: answers who listens with a complete result, and closes the stream",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.http({ shutdownGrace: 0 })
        const stream = yield* socket(Number(new URL(child.url).port))
        yield* stream.write(listening(true, "listens"))
        yield* stream.receives("acknowledged")
        yield* child.kill("SIGTERM")
        yield* stream.closed
        const last = messagesOn(stream).at(-1)
        assert.deepInclude(last, { id: "listens" })
        assert.deepInclude(last?.result, { resultType: "complete" })
        assert.include(JSON.stringify(last?.result), '"io.modelcontextprotocol/subscriptionId":"listens"')
        assert.strictEqual((yield* child.exit).code, 0)
      }),
    { timeout: 30_000 }
  )
})

describe("streams", () => {
  it.live("P92: tell at once that they are open, and nothing else until there is something to tell", () =>
    Effect.gen(function* () {
      const { port, url } = yield* served()
      const session = yield* open(url)
      const [standing, call] = [yield* socket(port), yield* socket(port)]
      const headers = { host: "127.0.0.1", accept: "text/event-stream", ...inSession(session) }
      yield* standing.write(
        `GET /mcp HTTP/1.1\r\n${Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}\r\n`
      )
      const silent = legacyCall("call", "steps")
      yield* call.write(post(json(silent), inSession(session)))
      for (const stream of [standing, call]) {
        const seen = yield* stream.receives(/\r\n\r\n/)
        assert.include(seen, "HTTP/1.1 200")
        yield* stream.receives(": open")
        assert.deepStrictEqual(messagesOn(stream), [])
      }
    })
  )
})

describe("the 2025 revisions", () => {
  const versions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const

  it.live("P114, P117: a handshake agrees on the revision that was asked for, or on the newest one", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      for (const [asked, agreed] of [
        ...versions.map((version) => [version, version] as const),
        ["1999-01-01", "2025-11-25"] as const
      ]) {
        const opened = yield* ask(url, {
          message: { ...initialize, params: { ...initialize.params, protocolVersion: asked } }
        })
        const result = results(opened)
        assert.strictEqual(result.protocolVersion, agreed)
        assert.deepStrictEqual(result.serverInfo, serverInfo)
        assert.deepInclude(result.capabilities, { tools: { listChanged: true } })
        for (const later of ["resultType", "ttlMs", "cacheScope"]) assert.notProperty(result, later)
      }
    })
  )

  it.live(
    "P116, P117, P124: in a session ping is answered, results have nothing of later revisions, the header is checked",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served()
        const session = yield* open(url)
        assert.deepStrictEqual(results(yield* ask(url, legacyAsk(session, { id: 1, method: "ping" }))), {})
        for (const message of [{ id: 2, method: "tools/list", params: {} }, legacyCall(3, "zebra")]) {
          const result = results(yield* ask(url, legacyAsk(session, message)))
          for (const later of ["resultType", "ttlMs", "cacheScope"]) assert.notProperty(result, later)
        }
        for (const version of ["1999-01-01", "nonsense"]) {
          const { status } = yield* ask(url, {
            message: { id: 4, method: "ping" },
            headers: inSession(session, version)
          })
          assert.strictEqual(status, 400)
        }
        const without = yield* ask(url, { message: { id: 5, method: "ping" }, headers: { "mcp-session-id": session } })
        assert.strictEqual(without.status, 200)
      })
  )

  it.live("P121: ids of sessions are visible ASCII and no two are alike; unknown methods are refused in them", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const ids = new Set<string>()
      for (let times = 0; times < 20; times++) ids.add(yield* open(url))
      assert.strictEqual(ids.size, 20)
      const [id = ""] = ids
      for (const each of ids) assert.match(each, /^[\x21-\x7e]{16,}$/)
      for (const method of ["server/discover", "prompts/list", "resources/list", "subscriptions/listen"]) {
        const { error } = responseOf(yield* ask(url, legacyAsk(id, { id: 1, method, params: {} })))
        assert.strictEqual(error?.code, -32601, method)
      }
    })
  )

  it.live("P118, P123: a question is on the stream of its call, and no message on two", () =>
    Effect.gen(function* () {
      const { addLate, port, url } = yield* served()
      const session = yield* open(url)
      const [standing, call] = [yield* socket(port), yield* socket(port)]
      const headers = { host: "127.0.0.1", accept: "text/event-stream", ...inSession(session) }
      yield* standing.write(
        `GET /mcp HTTP/1.1\r\n${Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}\r\n`
      )
      yield* standing.receives("HTTP/1.1 200")
      assert.strictEqual(
        (yield* ask(url, { method: "GET", headers: { ...inSession(session), accept: "text/event-stream" } })).status,
        409
      )
      yield* call.write(post(json(legacyCall("call", "ask")), inSession(session)))
      yield* call.receives("elicitation/create")
      yield* addLate
      yield* standing.receives("list_changed")
      const [question] = messagesOn(call)
      assert.notProperty(question?.params, "elicitationId")
      yield* ask(
        url,
        legacyAsk(session, { id: question?.id, result: { action: "accept", content: { confirm: true } } })
      )
      yield* call.receives('"sure"')
      assert.deepStrictEqual(
        messagesOn(standing).map(({ method }) => method),
        ["notifications/tools/list_changed"]
      )
      assert.lengthOf(messagesOn(call), 2)
    })
  )

  it.live("P120: before there were two modes a question names none", () =>
    Effect.gen(function* () {
      const { port, url } = yield* served()
      for (const [version, mode] of [
        ["2025-06-18", undefined],
        ["2025-11-25", "form"]
      ] as const) {
        const message = {
          ...initialize,
          params: { ...initialize.params, protocolVersion: version, capabilities: { elicitation: {} } }
        }
        const opened = yield* ask(url, { message })
        const session = String(opened.headers["mcp-session-id"])
        yield* ask(url, { message: initialized, headers: inSession(session, version) })
        const call = yield* socket(port)
        yield* call.write(post(json(legacyCall("call", "ask")), inSession(session, version)))
        yield* call.receives("elicitation/create")
        const [question] = messagesOn(call)
        assert.strictEqual((question?.params as { mode?: string } | undefined)?.mode, mode)
      }
    })
  )

  it.live(
    "P128: with a store a stream of 2025-11-25 begins with an event of an id and no data, and says when to come back",
    () =>
      Effect.gen(function* () {
        const { url } = yield* served({ around: EventStore.layerMemory() })
        const session = yield* open(url)
        const { text } = yield* ask(url, legacyAsk(session, legacyCall(1, "zebra")))
        assert.match(text, /^(: open\n\n)?id: \S+\nretry: \d+\ndata: \n\n/)
      })
  )

  it.live("P118: a client that offers no questions, or opened before there were any, is asked none", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const message = { ...initialize, params: { ...initialize.params, capabilities: {} } }
      const { headers } = yield* ask(url, { message })
      const session = String(headers["mcp-session-id"])
      yield* ask(url, { message: initialized, headers: inSession(session) })
      assert.strictEqual(textOf(yield* ask(url, legacyAsk(session, legacyCall(1, "ask")))), "not sure")
    })
  )

  it.live("P129: a batch of 2025-03-26 is answered, each request of it", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const session = yield* open(url, { version: "2025-03-26" })
      const batch = [legacyCall(1, "zebra"), { id: 2, method: "ping" }, { method: "notifications/initialized" }]
      const { messages, status } = yield* ask(url, {
        body: JSON.stringify(batch.map((message) => ({ jsonrpc: "2.0", ...message }))),
        headers: inSession(session, "2025-03-26")
      })
      assert.strictEqual(status, 200)
      assert.sameMembers(
        messages.flat().map(({ id }) => id),
        [1, 2]
      )
    })
  )
})

describe("docs/protocol.md", () => {
  const rows = readFileSync(new URL("../../../docs/protocol.md", import.meta.url), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, id, , held, test] = /^\| (P\d+) \| (.*?) \| (.*?) \| (.*?) \|$/.exec(line) ?? []
      return id === undefined ? [] : [{ id, held: held ?? "", test: test ?? "" }]
    })

  it("P1-P137: has a row for every rule, in order, which says who holds it", () => {
    const contract = readFileSync(new URL("../../../docs/contract/protocol.md", import.meta.url), "utf8")
    const rules = [...contract.matchAll(/^- \*\*(P\d+)\*\*/gm)].map(([, id]) => id)
    assert.deepStrictEqual(
      rows.map(({ id }) => id),
      rules
    )
    for (const { held, id, test } of rows) {
      assert.match(held, /^(us|SDK|both|in part|not held|client|host|nobody)\b/, id)
      if (/^(us|SDK|both)\b/.test(held)) assert.match(test, /^`/, id)
    }
  })

  it("P1-P137: names tests that there are", () => {
    const root = new URL("../../../packages/", import.meta.url).pathname
    for (const { id, test } of rows) {
      for (const [, file, title = "no title"] of test.matchAll(/`([^`]+\.ts)`: “([^”]+)”/g)) {
        assert.include(readFileSync(`${root}${file}`, "utf8"), title, id)
      }
    }
  })
})
