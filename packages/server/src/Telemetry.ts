/**
 * What an operator sees of calls: a span per call, metrics, and annotations on every log line of a tool. Effect's own
 * tracing, metrics and logging are the only ones; names follow OpenTelemetry's conventions for MCP where there are some.
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"

/**
 * How a call ended, as its span and the metrics have it. A call with wrong arguments is an `error` as well; one that was
 * turned away, since too many ran and waited, is `busy`.
 */
export type Outcome = "success" | "error" | "defect" | "cancelled" | "abandoned" | "stopped" | "busy"

/** Calls by tool and outcome. */
export const calls = Metric.counter("mcp_server_tool_calls", {
  description: "tool calls that have ended",
  incremental: true
})

/** How long calls ran, without the time in which they waited for their user. */
export const duration = Metric.timer("mcp_server_tool_call_duration", {
  description: "time in which tool calls ran, without waiting for answers"
})

/** How long calls waited for their user. */
export const waited = Metric.timer("mcp_server_tool_call_waited", {
  description: "time in which tool calls waited for answers"
})

/** Calls that are parked now. */
export const parked = Metric.gauge("mcp_server_tool_calls_parked", {
  description: "tool calls that wait for answers now"
})

/** Sessions of 2025 HTTP that are open now. */
export const sessions = Metric.gauge("mcp_server_sessions", { description: "sessions that are open now" })

/** What is known of a call when it starts. */
export interface CallInfo {
  readonly tool: string
  readonly id: string
  readonly session: string
  readonly principal: string | undefined
  readonly protocolVersion: string
}

/** What has been counted of a call when it ends. */
export interface CallEnd {
  readonly outcome: Outcome
  readonly rounds: number
  readonly waitedMillis: number
}

/** Runs a call in its span, under its annotations, and counts it. `end` is read when the call has ended. */
export const observe =
  (info: CallInfo, end: () => CallEnd) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (started) =>
      Effect.ensuring(
        effect,
        Effect.flatMap(Clock.currentTimeMillis, (now) => finish(info, end(), now - started))
      )
    ).pipe(
      Effect.withSpan(
        `tools/call ${info.tool}`,
        { kind: "server", attributes: attributesOf(info) },
        { captureStackTrace: false }
      ),
      Effect.annotateLogs(annotationsOf(info))
    ) as Effect.Effect<A, E, R> // the span takes nothing off the requirements but its own parent

const finish = ({ tool }: CallInfo, { outcome, rounds, waitedMillis }: CallEnd, millis: number) =>
  Effect.all(
    [
      Effect.annotateCurrentSpan({
        "mcp.call.outcome": outcome,
        "mcp.call.rounds": rounds,
        "mcp.call.waited_ms": waitedMillis,
        ...(outcome === "success" ? {} : { "error.type": outcome })
      }),
      Metric.update(Metric.withAttributes(calls, { tool, outcome }), 1),
      Metric.update(Metric.withAttributes(duration, { tool }), Duration.millis(Math.max(0, millis - waitedMillis))),
      waitedMillis === 0
        ? Effect.void
        : Metric.update(Metric.withAttributes(waited, { tool }), Duration.millis(waitedMillis))
    ],
    { discard: true }
  )

const attributesOf = ({ id, principal, protocolVersion, session, tool }: CallInfo) => ({
  "mcp.method.name": "tools/call",
  "mcp.protocol.version": protocolVersion,
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": tool,
  "gen_ai.tool.call.id": id,
  ...(session === "" ? {} : { "mcp.session.id": session }),
  ...(principal === undefined ? {} : { "enduser.id": principal })
})

const annotationsOf = ({ id, principal, session, tool }: CallInfo) => ({
  tool,
  call: id,
  ...(session === "" ? {} : { session }),
  ...(principal === undefined ? {} : { principal })
})

/** Counts a gauge up or down, from outside of an effect. */
export const change = (gauge: Metric.Metric<number, unknown>, by: number, context: Context.Context<never>): void =>
  gauge.modifyUnsafe(by, context)

/** The parent that a request names in its `_meta`, in the form of W3C's trace context (P17). */
export const parentOf = (meta: unknown): Option.Option<Tracer.ExternalSpan> => {
  const traceparent = typeof meta === "object" && meta !== null && "traceparent" in meta ? meta.traceparent : undefined
  return typeof traceparent === "string"
    ? HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent }))
    : Option.none()
}
