/**
 * What an operator sees of calls: spans, metrics and the annotations of log lines.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { McpServer, type Settings, StopReason, Telemetry } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Metric, Option, Schema, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import { TestClock } from "effect/testing"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Processes from "./processes.ts"
import { ask, capturingLog, inSession, legacyAsk, listen, modernAsk, open, textOf } from "./support/endpoint.ts"
import { legacyCall } from "./support/rawMessages.ts"

/** Keeps every span, and the metrics of this test alone. */
const observed = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const registry = new Map()
  const { layer, log } = capturingLog()
  const callSpans = () => spans.filter(({ name }) => name.startsWith("tools/call "))
  return {
    spans,
    callSpans,
    /** The only span of a call, which has ended. */
    theSpan: () => {
      const [span, ...more] = callSpans()
      assert.isDefined(span)
      assert.lengthOf(more, 0)
      assert.strictEqual(span.status._tag, "Ended")
      return span
    },
    log,
    around: Layer.mergeAll(layer, Layer.succeed(Tracer.Tracer, tracer), Layer.succeed(Metric.MetricRegistry, registry)),
    value: <State>(metric: Metric.Metric<never, State>) =>
      Effect.provideService(Metric.value(metric), Metric.MetricRegistry, registry),
    /** How often a tool ended in which way. */
    outcomes: Effect.map(Effect.provideService(Metric.snapshot, Metric.MetricRegistry, registry), (snapshots) =>
      Object.fromEntries(
        snapshots.flatMap((snapshot) =>
          snapshot.id === "mcp_server_tool_calls" && "count" in snapshot.state
            ? [[`${snapshot.attributes?.tool} ${snapshot.attributes?.outcome}`, Number(snapshot.state.count)]]
            : []
        )
      )
    )
  }
}

const attributesOf = (span: Tracer.Span) => Object.fromEntries(span.attributes)

const tools = [
  Tool.make("good", { execute: () => Effect.as(Effect.logInfo("at work"), "good") }),
  Tool.make("fails", { execute: () => Effect.fail("no such user") }),
  Tool.make("dies", { execute: () => Effect.die(new Error("broken")) }),
  Tool.make("strict", { parameters: Schema.Struct({ n: Schema.Int }), execute: () => Effect.succeed("strict") }),
  Tool.raw("supplied", {
    parameters: { type: "object", properties: { n: { type: "integer" } } },
    execute: () => Effect.succeed("supplied")
  }),
  Tool.make("hold", { execute: () => Effect.never }),
  Tool.make("sleeps", { execute: () => Effect.as(Effect.sleep("3 seconds"), "slept") }),
  Tool.make("asks", {
    execute: Effect.fn(function* () {
      yield* Effect.sleep("1 second")
      const first = yield* Elicitor.confirm("First?")
      yield* Effect.logInfo("between")
      yield* Effect.sleep("2 seconds")
      return `${first} ${yield* Elicitor.confirm("Second?")}`
    })
  })
] as const

const yes = { elicit_1: Processes.accept({ confirm: true }), elicit_2: Processes.accept({ confirm: true }) }

const start = (settings: Partial<Settings.Settings> = {}) =>
  Effect.gen(function* () {
    const seen = observed()
    const process = yield* Processes.start(tools, { settings: { removalGrace: 0, ...settings }, around: seen.around })
    const call = (tool: string, rest: Parameters<typeof Processes.request>[1] = {}) =>
      Effect.orDie(process.calls.start(Processes.request(tool, rest), Processes.silent))
    return { ...seen, ...process, call }
  })

describe("the span of a call", () => {
  it.effect("M28: is one, with what is known of the call, and of how it ended", () =>
    Effect.gen(function* () {
      const { call, theSpan } = yield* start()
      yield* call("good", { binding: { principal: "alice" } })
      const span = theSpan()
      assert.strictEqual(span.name, "tools/call good")
      assert.strictEqual(span.kind, "server")
      assert.deepStrictEqual(attributesOf(span), {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "good",
        "gen_ai.tool.call.id": "mcp_1",
        "enduser.id": "alice",
        "mcp.call.outcome": "success",
        "mcp.call.rounds": 0,
        "mcp.call.waited_ms": 0
      })
      assert.isTrue(Option.isNone(span.parent))
    })
  )

  it.effect("M28: spans all rounds of its call, and tells them and the time in which it waited for answers", () =>
    Effect.gen(function* () {
      const { call, calls, callSpans, theSpan, value } = yield* start()
      const first = yield* Effect.forkChild(call("asks"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      const { state } = Processes.asked(yield* Fiber.join(first))
      assert.strictEqual(callSpans()[0]?.status._tag, "Started")
      yield* TestClock.adjust("5 seconds")
      const reply = (of: string) => calls.resume(Processes.reply("asks", of, yes), Processes.silent)
      const second = yield* Effect.forkChild(reply(state), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      const asked = Processes.asked(yield* Fiber.join(second))
      yield* TestClock.adjust("7 seconds")
      assert.strictEqual(Processes.goodText(yield* reply(asked.state)), "true true")
      const span = theSpan()
      assert.include(attributesOf(span), {
        "mcp.call.outcome": "success",
        "mcp.call.rounds": 2,
        "mcp.call.waited_ms": 12_000
      })
      const { status } = span
      assert.strictEqual(status._tag === "Ended" ? Number(status.endTime - status.startTime) / 1e9 : 0, 15)
      // The time in which it ran has no waiting in it.
      const ran = yield* value(Metric.withAttributes(Telemetry.duration, { tool: "asks" }))
      const waited = yield* value(Metric.withAttributes(Telemetry.waited, { tool: "asks" }))
      assert.deepStrictEqual([ran.sum, ran.count, waited.sum, waited.count], [3_000, 1, 12_000, 1])
    })
  )

  it.effect("M28: and the metrics say in which way it ended", () =>
    Effect.gen(function* () {
      const { call, calls, callSpans, outcomes } = yield* start({ abandonAfter: "1 minute" })
      yield* call("good")
      yield* call("good")
      yield* call("fails")
      yield* call("dies")
      yield* call("strict", { arguments: { n: "x" } })
      yield* call("supplied", { arguments: { n: "x" } })
      const cancelled = yield* Effect.forkChild(call("hold"), { startImmediately: true })
      yield* Fiber.interrupt(cancelled)
      const abandoned = yield* Effect.forkChild(call("asks"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(abandoned)
      yield* TestClock.adjust("2 minutes")
      const stopped = yield* Effect.forkChild(call("hold"), { startImmediately: true })
      yield* calls.drain("all", "ServerClosed", 0)
      yield* Fiber.join(stopped)
      assert.deepStrictEqual(yield* outcomes, {
        "good success": 2,
        "fails error": 1,
        "dies defect": 1,
        "strict error": 1,
        "supplied error": 1,
        "hold cancelled": 1,
        "asks abandoned": 1,
        "hold stopped": 1
      })
      assert.deepStrictEqual(
        callSpans().map((span) => [
          span.name,
          span.attributes.get("mcp.call.outcome"),
          span.attributes.get("error.type")
        ]),
        [
          ["tools/call good", "success", undefined],
          ["tools/call good", "success", undefined],
          ["tools/call fails", "error", "error"],
          ["tools/call dies", "defect", "defect"],
          ["tools/call strict", "error", "error"],
          ["tools/call supplied", "error", "error"],
          ["tools/call hold", "cancelled", "cancelled"],
          ["tools/call asks", "abandoned", "abandoned"],
          ["tools/call hold", "stopped", "stopped"]
        ]
      )
      // Why a call was stopped is in the cause of its span.
      const reasons = callSpans().map(({ status }) =>
        status._tag === "Ended" && Exit.isFailure(status.exit)
          ? Option.getOrUndefined(StopReason.of(status.exit.cause))
          : undefined
      )
      assert.deepStrictEqual(reasons.slice(6), ["Cancelled", "Abandoned", "ServerClosed"])
    })
  )

  it.effect("M84: a call that is turned away since the server is busy is counted as that", () =>
    Effect.gen(function* () {
      const { call, callSpans, outcomes } = yield* start({ maxRunning: 1, maxQueued: 0 })
      yield* Effect.forkChild(call("hold"), { startImmediately: true })
      yield* call("good")
      assert.deepStrictEqual(yield* outcomes, { "good busy": 1 })
      const attributes = callSpans().at(-1)?.attributes
      assert.deepStrictEqual([attributes?.get("error.type"), attributes?.get("gen_ai.tool.call.id")], ["busy", "mcp_2"])
    })
  )
})

describe("the gauges", () => {
  it.effect("M62: parked calls are counted while they are, and are back to nothing in every way", () =>
    Effect.gen(function* () {
      const { call, calls, close, value } = yield* start({ abandonAfter: "1 minute" })
      const parked = Effect.map(value(Telemetry.parked), ({ value: now }) => now)
      const park = (session?: string) =>
        Effect.gen(function* () {
          const rest = session === undefined ? {} : { binding: { session } }
          const fiber = yield* Effect.forkChild(call("asks", rest), { startImmediately: true })
          yield* TestClock.adjust("1 second")
          return Processes.asked(yield* Fiber.join(fiber)).state
        })
      const [answered] = [yield* park(), yield* park("s"), yield* park(), yield* park()]
      assert.strictEqual(yield* parked, 4)
      yield* Effect.forkChild(calls.resume(Processes.reply("asks", answered, yes), Processes.silent), {
        startImmediately: true
      })
      assert.strictEqual(yield* parked, 3)
      yield* calls.drain({ session: "s" }, "SessionEnded", 0)
      assert.strictEqual(yield* parked, 2)
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* parked, 0)
      yield* park()
      assert.strictEqual(yield* parked, 1)
      yield* close
      assert.strictEqual(yield* parked, 0)
    })
  )

  it.live("M45: sessions of 2025 clients are counted while they are open", () =>
    Effect.gen(function* () {
      const { around, value } = observed()
      const sessions = Effect.map(value(Telemetry.sessions), ({ value: now }) => now)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* listen({ registrations: McpServer.tools(...tools), around })
          const [first] = [yield* open(url), yield* open(url)]
          assert.strictEqual(yield* sessions, 2)
          yield* ask(url, { method: "DELETE", headers: inSession(first) })
          assert.strictEqual(yield* sessions, 1)
        })
      )
      assert.strictEqual(yield* sessions, 0)
    })
  )
})

describe("log lines of a tool", () => {
  it.effect("M27: say tool, call, session and principal, in every round", () =>
    Effect.gen(function* () {
      const { call, calls, log } = yield* start()
      yield* call("good", { binding: { principal: "alice" } })
      const first = yield* Effect.forkChild(call("asks"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      const { state } = Processes.asked(yield* Fiber.join(first))
      yield* Effect.forkChild(calls.resume(Processes.reply("asks", state, yes), Processes.silent), {
        startImmediately: true
      })
      yield* TestClock.adjust("2 seconds")
      const lineWith = (words: string) =>
        log()
          .split("\n")
          .find((line) => line.includes(words)) ?? ""
      for (const annotation of ["tool=good", "call=mcp_1", "principal=alice"])
        assert.include(lineWith("at work"), annotation)
      for (const annotation of ["tool=asks", "call=mcp_2"]) assert.include(lineWith("between"), annotation)
      assert.notInclude(lineWith("between"), "principal")
      yield* call("dies")
      const defect = lineWith("failed unexpectedly")
      for (const annotation of ["tool=dies", "call=mcp_3", "level=ERROR"]) assert.include(defect, annotation)
    })
  )

  it.live("M44: and over HTTP the id of the session", () =>
    Effect.gen(function* () {
      const { log, url } = yield* listen({ registrations: McpServer.tools(...tools) })
      const session = yield* open(url)
      yield* ask(url, legacyAsk(session, legacyCall(1, "good")))
      assert.include(
        log()
          .split("\n")
          .find((line) => line.includes("at work")) ?? "",
        `session=${session}`
      )
    })
  )
})

const trace = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }
const traceparent = `00-${trace.traceId}-${trace.spanId}-01`
const other = { traceId: "1af7651916cd43dd8448eb211c80319c", spanId: "c7ad6b7169203331" }

describe("the parent of a call's span", () => {
  it.live("P17: is the span that the request names in its _meta, however it is served", () =>
    Effect.gen(function* () {
      const { around, callSpans } = observed()
      const { url } = yield* listen({ registrations: McpServer.tools(...tools), around })
      const session = yield* open(url)
      const inLegacy = legacyCall(1, "good")
      const requests = [
        modernAsk("good", { meta: { traceparent } }),
        // With a token it is not the fast lane's.
        modernAsk("good", { meta: { traceparent, progressToken: 1 } }),
        modernAsk("good", { meta: { traceparent, tracestate: "a=b", baggage: "c=d" } }),
        legacyAsk(session, { ...inLegacy, params: { ...inLegacy.params, _meta: { traceparent } } })
      ]
      for (const request of requests) assert.strictEqual(textOf(yield* ask(url, request)), "good")
      for (const span of callSpans()) {
        assert.strictEqual(span.traceId, trace.traceId)
        assert.include(Option.getOrThrow(span.parent), { _tag: "ExternalSpan", ...trace })
      }
      assert.lengthOf(callSpans(), requests.length)
    })
  )

  it.live("P17: a parent that is none is ignored, never refused", () =>
    Effect.gen(function* () {
      const { around, callSpans } = observed()
      const { url } = yield* listen({ registrations: McpServer.tools(...tools), around })
      for (const meta of [{ traceparent: "nonsense" }, { traceparent: "00-0-0-01" }, { tracestate: "a=b" }]) {
        assert.strictEqual(textOf(yield* ask(url, modernAsk("good", { meta }))), "good")
      }
      for (const span of callSpans()) assert.notStrictEqual(span.traceId, trace.traceId)
    })
  )

  it.live("P17: is the span of the HTTP server otherwise, and with it the trace of the HTTP request", () =>
    Effect.gen(function* () {
      const { around, callSpans, spans } = observed()
      const { url } = yield* listen({ registrations: McpServer.tools(...tools), around })
      const headers = { traceparent: `00-${other.traceId}-${other.spanId}-01` }
      yield* ask(url, modernAsk("good", { headers }))
      yield* ask(url, modernAsk("good", { headers, meta: { progressToken: 1 } }))
      const http = spans.filter(({ name }) => name === "POST")
      assert.lengthOf(http, 2)
      for (const [index, span] of callSpans().entries()) {
        assert.strictEqual(span.traceId, other.traceId)
        assert.strictEqual(Option.getOrThrow(span.parent).spanId, http[index]?.spanId)
      }
      // What the request says of itself comes first.
      yield* ask(url, modernAsk("good", { headers, meta: { traceparent } }))
      assert.strictEqual(callSpans().at(-1)?.traceId, trace.traceId)
    })
  )
})

describe("an exporter", () => {
  /** A collector that keeps what is posted to it. */
  const collector = Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly posted: Map<string, string>; readonly close: () => void }>(
      (resume) => {
        const posted = new Map<string, string>()
        const server = createServer((request, response) => {
          let text = posted.get(request.url ?? "") ?? ""
          request.on("data", (data) => {
            text += String(data)
          })
          request.on("end", () => {
            posted.set(request.url ?? "", text)
            response.setHeader("content-type", "application/json").end("{}")
          })
        })
        server.listen(0, "127.0.0.1", () => {
          const { port } = server.address() as AddressInfo // of a TCP socket
          resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, posted, close: () => void server.close() }))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

  it.live("M28: for OTLP around the server gets spans, metrics and log lines, the last ones when it ends", () =>
    Effect.gen(function* () {
      const { posted, url: baseUrl } = yield* collector
      const otlp = Otlp.layer({ baseUrl, resource: { serviceName: "suite", serviceVersion: "1.0.0" } }).pipe(
        Layer.provide(OtlpSerialization.layerJson),
        Layer.provide(FetchHttpClient.layer)
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const exporting = yield* Layer.build(Layer.fresh(otlp))
          const { url } = yield* listen({
            registrations: McpServer.tools(...tools),
            around: Layer.succeedContext(Context.makeUnsafe(exporting.mapUnsafe))
          })
          yield* ask(url, modernAsk("good", { meta: { traceparent } }))
        })
      )
      assert.include(posted.get("/v1/traces"), '"tools/call good"')
      assert.include(posted.get("/v1/traces"), trace.traceId)
      assert.include(posted.get("/v1/metrics"), "mcp_server_tool_calls")
    })
  )
})
