/**
 * What registered tools find in their context, by layers and by types; and how a registration leaves a server in use.
 */
import { Elicitor, Recorder, Tool, ToolRecord } from "@agenttool/core"
import { Calls, McpServer, McpSession, Settings, Wire } from "@agenttool/server"
import * as Connected from "@agenttool/server/Connected"
import * as Core from "@agenttool/server/Core"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { Context, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest } from "effect/http"
import { createServer } from "node:http"
import { callText, client, type ClientOptions, type Era, eras, failureOf, listed } from "./hosts.ts"
import { until } from "./support/Link.ts"

// ----- services and references

class Db extends Context.Service<Db, string>()("test/Db") {}
const Region = Context.Reference<string>("test/Region", { defaultValue: () => "nowhere" })

const query = Tool.make("query", { execute: () => Effect.service(Db) }).pipe(
  Tool.facts(() => Effect.map(Effect.service(Db), (text) => ({ calls: [{ tool: "", text }] }))),
  Tool.replay(() => Effect.map(Effect.service(Db), (db) => (db === "inner" ? ("safe" as const) : ("unknown" as const))))
)
const where = Tool.make("where", { execute: () => Effect.service(Region) })

/** Says where it is before and after a question, and writes that down. */
const travel = Tool.make("travel", {
  execute: Effect.fn(function* () {
    const here = Effect.tap(Effect.service(Region), (region) =>
      Effect.orDie(Recorder.write(ToolRecord.make("test.region", { region })))
    )
    return [yield* here, yield* Effect.orDie(Elicitor.confirm("Go on?")), yield* here].join(" ")
  })
})

const provided = (db: string) => Layer.succeed(Db, db)

const yes: ClientOptions = { answer: () => ({ action: "accept", content: { confirm: true } }) }

const recording = () => {
  const written: Array<string> = []
  const recorder = (name: string): Recorder.RecorderService => ({
    write: ({ data }) => Effect.sync(() => void written.push(`${name}: ${data}`))
  })
  return { written, recorder }
}

/** Clients in memory of one server each. */
const inMemory = <E>(
  era: Era,
  registrations: Layer.Layer<never, E, McpServer.Core>,
  around: Layer.Layer<never> = Layer.empty
) =>
  Effect.map(
    McpServer.layerTest({
      protocolVersion: era,
      registrations,
      ...(yes.answer === undefined ? {} : { answer: yes.answer })
    }).pipe(Layer.provide(around), Layer.build),
    Context.get(McpServer.TestClient)
  )

/** Clients over HTTP; each of their requests has the header `x-region`, if it has any. */
const overHttp = <E>(
  era: Era,
  registrations: Layer.Layer<never, E, McpServer.Core>,
  around: Layer.Layer<never> = Layer.empty
) =>
  Effect.gen(function* () {
    const routes = McpServer.layerHttp({ name: "test", version: "1.0.0", registrations })
    const context = yield* HttpRouter.serve(Layer.merge(routes, byRegion), {
      disableLogger: true,
      disableListenLog: true
    }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0, gracefulShutdownTimeout: 1 })
      ),
      Layer.provide(around),
      Layer.build
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    return (region?: string) =>
      Effect.acquireRelease(
        Effect.promise(async () => {
          const made = client(era, yes)
          const headers: Record<string, string> = region === undefined ? {} : { "x-region": region }
          await made.connect(
            new StreamableHTTPClientTransport(new URL(`${HttpServer.formatAddress(address)}/mcp`), {
              requestInit: { headers }
            })
          )
          return made
        }),
        (made) => Effect.promise(() => made.close())
      )
  })

/** What a host's middleware puts around a request. */
const byRegion = HttpRouter.middleware(
  (effect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
      const region = headers["x-region"]
      return region === undefined
        ? effect
        : effect.pipe(Effect.provideService(Region, region), Effect.provideService(Db, `the one of ${region}`))
    }),
  { global: true }
)

const factsOf = (connected: McpServer.TestClient["Service"], name: string) =>
  Effect.map(
    Effect.promise(() =>
      connected.request(
        { method: Wire.factsMethod, params: { calls: [{ name }] } },
        Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Json) }))
      )
    ),
    ({ results }) => results[0]
  )

for (const era of eras) {
  describe(`${era}: a registered tool`, () => {
    it.live("M40: finds what its registration was provided with, although another one is around the server", () =>
      Effect.gen(function* () {
        const registrations = McpServer.tools(query).pipe(Layer.provide(provided("inner")))
        for (const connected of [
          yield* inMemory(era, registrations, provided("outer")),
          yield* (yield* overHttp(era, registrations, provided("outer")))()
        ]) {
          assert.strictEqual(yield* callText(connected, "query"), "inner")
          assert.deepStrictEqual(yield* factsOf(connected, "query"), {
            facts: { calls: [{ tool: "", text: "inner" }] },
            replay: "safe"
          })
        }
      })
    )

    it.live("M40: of two registrations with one service each finds its own", () =>
      Effect.gen(function* () {
        const renamed = Tool.make("other", { execute: () => Effect.service(Db) })
        const connected = yield* inMemory(
          era,
          Layer.mergeAll(
            McpServer.tools(query).pipe(Layer.provide(provided("one"))),
            McpServer.tools(renamed).pipe(Layer.provide(provided("two")))
          )
        )
        assert.strictEqual(yield* callText(connected, "query"), "one")
        assert.strictEqual(yield* callText(connected, "other"), "two")
      })
    )

    it.live("M40, M41: finds the host's references, those around the registration before those around the server", () =>
      Effect.gen(function* () {
        const { recorder, written } = recording()
        const around = Layer.merge(Layer.succeed(Region, "server"), Recorder.layer(recorder("server")))
        const registrations = Layer.mergeAll(
          McpServer.tools(travel),
          McpServer.tools(where).pipe(Layer.provide(Layer.succeed(Region, "registration")))
        )
        for (const connected of [
          yield* inMemory(era, registrations, around),
          yield* (yield* overHttp(era, registrations, around))()
        ]) {
          assert.strictEqual(yield* callText(connected, "travel"), "server true server")
          assert.strictEqual(yield* callText(connected, "where"), "registration")
        }
        assert.deepStrictEqual(
          written,
          Array.from({ length: 4 }, () => 'server: {"region":"server"}')
        )
      })
    )

    it.live("M40, M41: finds what the host's middleware put around the request, also after the request is over", () =>
      Effect.gen(function* () {
        const { recorder, written } = recording()
        const registrations = Layer.mergeAll(
          McpServer.tools(travel),
          McpServer.tools(query, where).pipe(
            Layer.provide(Layer.merge(provided("inner"), Layer.succeed(Region, "registration")))
          )
        )
        const connect = yield* overHttp(era, registrations, Recorder.layer(recorder("host")))
        const [plain, north, south] = [yield* connect(), yield* connect("north"), yield* connect("south")]
        assert.strictEqual(yield* callText(north, "where"), "north")
        assert.strictEqual(yield* callText(south, "where"), "south")
        assert.strictEqual(yield* callText(plain, "where"), "registration")
        assert.strictEqual(yield* callText(south, "query"), "the one of south")
        assert.strictEqual(yield* callText(plain, "query"), "inner")
        assert.deepInclude(yield* factsOf(north, "query"), {
          facts: { calls: [{ tool: "", text: "the one of north" }] }
        })
        assert.strictEqual(yield* callText(north, "travel"), "north true north")
        assert.strictEqual(yield* callText(plain, "travel"), "nowhere true nowhere")
        assert.deepStrictEqual(written, [
          'host: {"region":"north"}',
          'host: {"region":"north"}',
          'host: {"region":"nowhere"}',
          'host: {"region":"nowhere"}'
        ])
      })
    )

    it.live(
      "M28, M10: is gone with its layer: parked calls at once, running ones after their grace, clients told once",
      () =>
        Effect.gen(function* () {
          const log: Array<string> = []
          let told = 0
          const holding = (name: string, effect: Effect.Effect<unknown, unknown>) =>
            Tool.make(name, {
              execute: () =>
                Effect.as(
                  Effect.onInterrupt(effect, () => Effect.sync(() => void log.push(name))),
                  `${name} ended`
                )
            })
          const asking = Effect.orDie(Elicitor.confirm("?"))
          const going = [
            holding("parked", asking),
            holding("long", Effect.never),
            holding("short", Effect.sleep("150 millis")),
            holding(
              "inside",
              Effect.acquireUseRelease(
                asking,
                () => Effect.never,
                () => Effect.void
              )
            )
          ]
          const staying = holding("staying", Effect.sleep("600 millis"))
          const context = yield* coreOf(McpServer.tools(staying), era, { toolsChanged: () => void told++ })
          const scope = yield* Scope.make()
          yield* McpServer.tools(...going).pipe(Layer.buildWithScope(scope), Effect.provideContext(context.core))
          yield* until(
            Effect.sync(() => told),
            (times) => times === 1
          )
          const { connected } = context
          const call = (name: string) => Effect.forkScoped(Effect.exit(callText(connected, name)))
          const [parked, long, short, inside, stays] = [
            yield* call("parked"),
            yield* call("long"),
            yield* call("short"),
            yield* call("inside"),
            yield* call("staying")
          ]
          yield* until(context.count, ({ attached, parked: waiting }) => attached + waiting === 5)
          const releasing = yield* Effect.forkScoped(Scope.close(scope, Exit.void))
          yield* until(
            Effect.sync(() => told),
            (times) => times === 2
          )
          assert.deepStrictEqual(yield* listed(connected), ["staying"])
          assert.strictEqual((yield* failureOf(() => connected.callTool({ name: "long", arguments: {} }))).code, -32602)
          // What waits for its user does not wait for the grace.
          assert.deepStrictEqual(log.toSorted(), era === "2026-07-28" ? ["inside", "parked"] : [])
          yield* Fiber.join(releasing)
          const textOf = (exit: Exit.Exit<string>) => (Exit.isSuccess(exit) ? exit.value : "failed")
          const removed = (name: string) =>
            `mcpserver: tool "${name}": the call was stopped: the tool was removed; call the tool again`
          assert.strictEqual(textOf(yield* Fiber.join(short)), "short ended")
          assert.strictEqual(textOf(yield* Fiber.join(long)), removed("long"))
          assert.strictEqual(textOf(yield* Fiber.join(stays)), "staying ended")
          assert.sameMembers(log, ["parked", "long", "inside"])
          yield* context.answer
          const spent = /no longer waiting for them; call the tool again$|unknown tool/
          for (const name of [parked, inside]) {
            const exit = yield* Fiber.join(name)
            // In the older era the request was open all the time.
            if (Exit.isSuccess(exit)) assert.match(exit.value, era === "2025-11-25" ? /the tool was removed/ : spent)
          }
          yield* until(context.count, ({ attached, fibers, parked: waiting }) => attached + fibers + waiting === 0)
          assert.strictEqual(told, 2)
        })
    )
  })
}

/** A connected server whose user answers no question before it is told to, and what else may be registered on it. */
const coreOf = (
  first: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core>,
  era: Era,
  options: ClientOptions
) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const core = yield* Core.layer.pipe(
      Layer.provideMerge(Layer.succeed(Settings.Settings, Settings.make({ removalGrace: "400 millis" }))),
      Layer.provide(Logger.layer([])),
      Layer.buildWithScope(scope)
    )
    yield* Effect.provideContext(Layer.buildWithScope(first, scope), core)
    const [clientSide, serverSide] = InMemoryTransport.createLinkedPair()
    yield* Effect.provideContext(Connected.serve({ name: "test", version: "1.0.0" }, serverSide), core)
    const answers: Array<() => void> = []
    const connected = client(era, options)
    connected.setRequestHandler(
      "elicitation/create",
      () => new Promise((resolve) => void answers.push(() => resolve({ action: "cancel" })))
    )
    yield* Effect.promise(() => connected.connect(clientSide))
    return {
      connected,
      core,
      count: Context.get(core, Calls.Calls).count,
      answer: Effect.sync(() => {
        for (const answer of answers) answer()
      })
    }
  })

describe("the types of registrations", () => {
  const session = Tool.make("session", { execute: () => Effect.map(McpSession.current, ({ id }) => id) })

  it("M42: a tool that needs its session does not run without one", () => {
    // @ts-expect-error: there is no session outside of a server
    const direct: Effect.Effect<unknown, unknown> = Tool.run(session, {})
    assert.isDefined(direct)
    // Served it needs nothing.
    const registration: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.tools(session)
    assert.isDefined(registration)
  })

  it.effect("M42: a host may give it one by hand", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const value = McpSession.make({
        id: "by hand",
        key: "k",
        lifetime: "request",
        client: () => ({ protocolVersion: "2026-07-28", capabilities: {}, info: undefined }),
        scope: yield* Scope.fork(scope)
      })
      const result = yield* Tool.run(session, {}).pipe(Effect.provideService(McpSession.McpSession, value))
      assert.strictEqual(result.output, "by hand")
    })
  )

  it("M40: a service that is missing shows in what the layer needs", () => {
    // @ts-expect-error: nobody has provided the database
    const missing: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = McpServer.tools(query, where)
    const needs: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core | Db> = McpServer.tools(query, where)
    const given: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core> = Layer.provide(needs, provided("db"))
    // And in what a server needs that has it.
    const open = { name: "test", version: "1.0.0", registrations: needs }
    // @ts-expect-error: nobody has provided the database
    const stdio: Layer.Layer<never, McpServer.RegistrationError> = McpServer.layerStdio(open)
    const whole: Layer.Layer<never, McpServer.RegistrationError, Db> = McpServer.layerStdio(open)
    const http: Layer.Layer<never, McpServer.RegistrationError, Db | HttpRouter.HttpRouter> = McpServer.layerHttp(open)
    assert.lengthOf([missing, given, stdio, whole, http], 5)
  })
})
