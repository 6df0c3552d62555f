/**
 * The call that a tool is running for: a service that whatever runs a tool provides (C87–C93).
 *
 * The raw argument text is kept as it was written, since a record or a signature may depend on its bytes (C80).
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"

/**
 * One call.
 *
 * - `id`: unique in its batch; results and records are matched by it.
 * - `tool`: the name of the tool.
 * - `arguments`: the JSON text of the arguments object, as it was written. Absent arguments are `{}`.
 * - `value`: the same, parsed, where whoever made the call had it parsed already.
 * - `idempotencyKey`: names the logical operation, for tools that deduplicate; made by the harness, not the call id.
 */
export interface Call {
  readonly id: string
  readonly tool: string
  readonly arguments: string
  readonly value?: { readonly json: unknown } | undefined
  readonly idempotencyKey?: string | undefined
}

/** The key of the running call. */
export class ToolCall extends Context.Service<ToolCall, Call>()("@agenttool/core/ToolCall") {}

/**
 * The running call. A tool that uses it shows `ToolCall` in its requirements, which every runner of tools satisfies.
 *
 * @example
 * ```ts
 * import { ToolCall } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const log = Effect.gen(function* () {
 *   const call = yield* ToolCall.current
 *   yield* Effect.logInfo(`running ${call.id}`)
 * })
 * ```
 */
export const current: Effect.Effect<Call, never, ToolCall> = Effect.service(ToolCall)

/** The running call, or none outside of one. */
export const option: Effect.Effect<Option.Option<Call>> = Effect.serviceOption(ToolCall)

/** A call whose arguments are text, as a model wrote them. An empty text is `{}` (C81). */
export const make = (options: {
  readonly id: string
  readonly tool: string
  readonly arguments?: string | undefined
  readonly idempotencyKey?: string | undefined
}): Call => ({
  id: options.id,
  tool: options.tool,
  arguments: options.arguments === undefined || options.arguments === "" ? "{}" : options.arguments,
  idempotencyKey: options.idempotencyKey
})

/**
 * A call whose arguments are parsed already. Its text is the JSON of the value, written when somebody reads it.
 */
export const fromValue = (options: {
  readonly id: string
  readonly tool: string
  readonly value: unknown
  readonly idempotencyKey?: string | undefined
}): Call => ({
  id: options.id,
  tool: options.tool,
  value: { json: options.value },
  idempotencyKey: options.idempotencyKey,
  get arguments() {
    return JSON.stringify(options.value) ?? "{}"
  }
})
