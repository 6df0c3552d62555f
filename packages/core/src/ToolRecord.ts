/**
 * Records: small durable JSON values under a namespace that a tool leaves beside a call (C113–C115).
 *
 * A value is *recordable* when it names its namespace. A recorder that does not know its type can still write it, and a
 * result whose `details` are recordable carries its record over MCP.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { encode } from "./ToolResult.ts"

/** The member by which a value names its namespace, `<owner>:<kind>` by custom, never empty. */
export const namespace: unique symbol = Symbol.for("@agenttool/core/ToolRecord/namespace")

/** The member by which a value hands over its JSON as text, byte for byte, instead of having it made. */
export const json: unique symbol = Symbol.for("@agenttool/core/ToolRecord/json")

/** A value that can be recorded: its JSON is what `JSON.stringify` gives, or its own text. */
export interface Recordable {
  readonly [namespace]: string
  readonly [json]?: string
}

/** A record: its namespace and its JSON as text, so that key order and large integers survive. */
export const ToolRecord = Schema.Struct({ ns: Schema.String, data: Schema.String })
export interface ToolRecord extends Schema.Schema.Type<typeof ToolRecord> {}

/** A recordable value that cannot be recorded. */
export class RecordError extends Schema.TaggedError<RecordError>()("RecordError", {
  record: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `agenttool: record ${this.record}: ${this.reason}`
  }
}

/**
 * Makes a value recordable: a copy of the same class with the namespace beside its members. Its JSON is the value's.
 *
 * @example
 * ```ts
 * import { ToolRecord, ToolResult } from "@agenttool/core"
 *
 * ToolResult.text("started", { details: ToolRecord.make("shell:container", { container: "c1" }) })
 * ```
 */
export const make = <A extends object>(ns: string, value: A): A & Recordable => {
  const blank: object = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value))
  const copy = Object.assign(blank, value, { [namespace]: ns })
  // A method of a class may need what only the original has (a private member, the time of a Date).
  return hasInheritedToJson(value)
    ? Object.defineProperty(copy, "toJSON", { value: (key: string): unknown => value.toJSON(key) })
    : copy
}

const hasInheritedToJson = (value: object): value is { readonly toJSON: (key: string) => unknown } =>
  !Object.hasOwn(value, "toJSON") && Predicate.hasProperty(value, "toJSON") && typeof value.toJSON === "function"

/** A recordable whose JSON is this text, byte for byte. */
export const fromJson = (ns: string, text: string): Recordable => ({ [namespace]: ns, [json]: text })

/** Whether a value is recordable. */
export const isRecordable = (value: unknown): value is Recordable =>
  Predicate.hasProperty(value, namespace) && typeof value[namespace] === "string"

/**
 * The record of a value: none when it is not recordable, an error when it says that it is and cannot be.
 */
export const read = (value: unknown): Exit.Exit<Option.Option<ToolRecord>, RecordError> => {
  if (!isRecordable(value)) return Exit.succeed(Option.none())
  const ns = value[namespace]
  if (ns === "") return Exit.fail(new RecordError({ record: typeName(value), reason: "empty namespace" }))
  const data = value[json]
  if (data !== undefined) {
    return isJson(data)
      ? Exit.succeed(Option.some({ ns, data }))
      : Exit.fail(new RecordError({ record: ns, reason: "its text is not JSON" }))
  }
  return Exit.mapBoth(encode(value), {
    onSuccess: (text) => Option.some({ ns, data: text }),
    onFailure: (error) => new RecordError({ record: ns, reason: error.reason })
  })
}

const isJson = (text: string): boolean =>
  Option.isSome(Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))(text))

const typeName = (value: object): string => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return Predicate.hasProperty(prototype, "constructor") && typeof prototype.constructor === "function"
    ? prototype.constructor.name
    : "Object"
}
