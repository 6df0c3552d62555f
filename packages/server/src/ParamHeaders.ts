/**
 * Holds the headers that repeat arguments (`Mcp-Param-*`, 2026-07-28) against the arguments themselves, so that whoever
 * routes by a header and the tool that reads the body cannot be told two different things (P25, P27).
 *
 * Where a schema may ask for such a header, `internal/headers` says. The SDK compares them for its own high-level server
 * only; see docs/sdk-notes.md. The other headers of a request are the SDK's.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { keyword } from "./internal/headers.ts"

/** An argument that clients repeat: the name of its header, without the prefix, and the properties that lead to it. */
export interface Declared {
  readonly header: string
  readonly path: ReadonlyArray<string>
  readonly type: "integer" | "string" | "boolean"
}

/** The code of a request whose headers and body disagree; its HTTP status is 400. */
export const code = -32020

const prefix = "Mcp-Param-"

/** The arguments that a schema wants repeated, in the order of its properties. The schema has passed registration. */
export const declared = (schema: Schema.JsonObject): ReadonlyArray<Declared> => Array.from(walk(schema, []))

function* walk(schema: Schema.JsonObject, path: ReadonlyArray<string>): Generator<Declared> {
  if (!isNode(schema.properties)) return
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!isNode(property)) continue
    const here = [...path, name]
    const { [keyword]: header, type } = property
    if (typeof header === "string" && (type === "integer" || type === "string" || type === "boolean")) {
      yield { header, path: here, type }
    }
    yield* walk(property, here)
  }
}

/**
 * What is wrong with the headers of a call, in one line; `undefined` if nothing is.
 *
 * - A value may be wrapped as `=?base64?…?=`, and is decoded before it is compared.
 * - An argument that is absent or `null` needs no header, nor does one that no header can carry (an object, a number
 *   outside of the exact integers): the check of the arguments refuses it, in words for the model.
 * - Integers compare as numbers: `42.0` is `42`.
 */
export const mismatch = (
  params: ReadonlyArray<Declared>,
  args: unknown,
  headers: Pick<Headers, "get">
): string | undefined => {
  for (const param of params) {
    const name = `${prefix}${param.header}`
    const sent = headers.get(name)
    const decoded = sent === null ? undefined : decode(sent)
    if (sent !== null && decoded === undefined) return `the ${name} header is not validly encoded`
    const value = at(args, param.path)
    if (value === undefined || value === null) continue
    const where = param.path.join(".")
    if (decoded === undefined) {
      if (isCarried(value)) return `the ${name} header is missing, but the arguments have ${where}`
    } else if (!isSame(param, decoded, value)) {
      return `the ${name} header is not what the arguments have at ${where}`
    }
  }
  return undefined
}

/** The answer to a call whose headers are wrong: status 400, with the id of the request. */
export const refusal = (params: ReadonlyArray<Declared>, request: unknown, headers: Headers): Response | undefined => {
  if (params.length === 0 || !Predicate.hasProperty(request, "id")) return undefined
  const { id } = request
  if (typeof id !== "string" && typeof id !== "number") return undefined
  const fault = mismatch(params, at(request, ["params", "arguments"]), headers)
  return fault === undefined
    ? undefined
    : Response.json({ jsonrpc: "2.0", id, error: { code, message: `Header mismatch: ${fault}` } }, { status: 400 })
}

// ----- values

const isNode = (value: unknown): value is Schema.JsonObject => Predicate.isObject(value) && !Array.isArray(value)

const at = (root: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (node, key) => (Predicate.isObject(node) && Object.hasOwn(node, key) ? Reflect.get(node, key) : undefined),
    root
  )

const isCarried = (value: unknown): boolean =>
  typeof value === "string" ||
  typeof value === "boolean" ||
  (typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value)))

const decimal = /^(-?\d+)(?:\.0+)?$/

const isSame = ({ type }: Declared, sent: string, value: unknown): boolean => {
  const whole = type === "integer" && typeof value === "number" ? decimal.exec(sent)?.[1] : undefined
  if (whole !== undefined) return Number(whole) === value
  return (
    (typeof value === "string" || typeof value === "boolean" || typeof value === "number") && sent === String(value)
  )
}

// ----- encoding

const plain = /^[\t\u0020-\u007e]*$/
const wrapped = /^=\?base64\?(.*)\?=$/
const padded = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** The value that a header stands for; none where it holds what no header may, or is wrapped wrongly. */
const decode = (sent: string): string | undefined => {
  if (!plain.test(sent)) return undefined
  const base64 = wrapped.exec(sent)?.[1]
  if (base64 === undefined) return sent
  if (!padded.test(base64)) return undefined
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  return Result.getOrUndefined(Result.try(() => utf8.decode(Buffer.from(base64, "base64"))))
}
