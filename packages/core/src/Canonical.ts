/**
 * Canonical JSON (RFC 8785), and by it the definition of a tool and its hash (C20–C27). Equal hash, same tool.
 *
 * It is our own because the hash is an identity and must not depend on what a library does with the values that have no
 * canonical form: here an unpaired surrogate, a number that is not finite, an `undefined` in a list, a value that is no
 * plain data, and a cycle are errors with a path, and depth is no limit. The hash is made by Node's `crypto`: that of the
 * Web is asynchronous, and a definition is hashed where a tool is built. Nothing here checks a schema.
 */
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ArgumentsCheck from "./ArgumentsCheck.ts"
import { noArguments } from "./internal/noArguments.ts"

/** A value has no canonical form. `path` names the part at fault (`a[0].b`), empty at the root. */
export class CanonicalError extends Schema.TaggedError<CanonicalError>()("CanonicalError", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return this.path === "" ? `no canonical form: ${this.reason}` : `no canonical form: ${this.path}: ${this.reason}`
  }
}

/**
 * The canonical JSON text of a value: members in the order of their UTF-16 units at every depth, no white space, strings
 * and numbers as ECMAScript writes them. The bytes of the RFC are the UTF-8 of this text.
 *
 * A member that is `undefined` is left out, as JSON does.
 *
 * @example
 * ```ts
 * import { Canonical } from "@agenttool/core"
 *
 * Canonical.stringify({ b: 1.0, a: [] }) // Success {"a":[],"b":1}
 * Canonical.stringify({ a: [NaN] }) // Failure: no canonical form: a[0]: NaN is not finite
 * ```
 */
export const stringify = (value: unknown): Result.Result<string, CanonicalError> => {
  const open: Array<Container> = []
  const around = new Set<unknown>()
  const fail = (reason: string) =>
    Result.fail(new CanonicalError({ path: ArgumentsCheck.formatPath(open.map(position)), reason }))
  let text = ""
  let next = value
  // A loop and a stack of its own instead of recursion: no depth of nesting may overflow.
  for (;;) {
    const opened = containerOf(next)
    if (opened === undefined) {
      const leaf = leafOf(next)
      if (Result.isFailure(leaf)) return fail(leaf.failure)
      text += leaf.success
    } else {
      if (around.has(next)) return fail("it contains itself")
      text += opened.keys === undefined ? "[" : "{"
      open.push(opened)
      around.add(next)
    }
    let container = open.at(-1)
    while (container !== undefined && container.index === container.size) {
      text += container.keys === undefined ? "]" : "}"
      around.delete(container.value)
      open.pop()
      container = open.at(-1)
    }
    if (container === undefined) return Result.succeed(text)
    if (container.index > 0) text += ","
    const index = container.index++
    const key = container.keys?.[index]
    if (key !== undefined) {
      if (isIllFormed(key)) return fail("the name has an unpaired surrogate")
      text += `${JSON.stringify(key)}:`
    }
    next = container.value[key ?? index]
  }
}

interface Container {
  readonly value: Readonly<Record<PropertyKey, unknown>>
  /** The names in canonical order; `undefined` for an array. */
  readonly keys: ReadonlyArray<string> | undefined
  readonly size: number
  /** Of the member that comes next. */
  index: number
}

const position = ({ index, keys }: Container): PropertyKey => keys?.[index - 1] ?? index - 1

const containerOf = (value: unknown): Container | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  // An array has its elements under their indices: it is read as what it is, an object.
  const members = value as Readonly<Record<PropertyKey, unknown>>
  if (Array.isArray(value)) return { value: members, keys: undefined, size: value.length, index: 0 }
  if (!isPlain(value)) return undefined
  // The default order of `sort` is that of the RFC: UTF-16 units.
  const keys = Object.keys(members)
    .filter((key) => members[key] !== undefined)
    .sort()
  return { value: members, keys, size: keys.length, index: 0 }
}

/** An object literal, of this realm or of another. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

const leafOf = (value: unknown): Result.Result<string, string> => {
  switch (typeof value) {
    case "string":
      return isIllFormed(value)
        ? Result.fail("the text has an unpaired surrogate")
        : Result.succeed(JSON.stringify(value))
    case "number":
      return Number.isFinite(value) ? Result.succeed(JSON.stringify(value)) : Result.fail(`${value} is not finite`)
    case "boolean":
      return Result.succeed(String(value))
    case "object":
      return value === null ? Result.succeed("null") : Result.fail("an instance of a class is not plain data")
    default:
      return Result.fail(`${typeof value} has no JSON`)
  }
}

// With the flag `u` a pair is one character, so this finds only surrogates that stand alone.
const isIllFormed = (text: string): boolean => /[\ud800-\udfff]/u.test(text)

/**
 * What a definition is made from: a tool, or anything with these members. Others are not looked at.
 *
 * `properties` is where a tool says that it is strict; a definition says so itself.
 */
export interface DefinitionShaped {
  readonly name: string
  readonly description?: string | null | undefined
  readonly parameters?: Schema.JsonObject | null | undefined
  readonly strict?: boolean | null | undefined
  readonly properties?: { readonly strict: boolean } | undefined
}

/** The canonical definition: these members, `strict` only where it is true (C20). */
export interface Definition {
  readonly type: "function"
  readonly name: string
  readonly description: string
  readonly parameters: Schema.JsonObject
  readonly strict?: true
}

/**
 * The canonical definition of a tool: no description is the empty one, no parameters are those of a tool without
 * arguments, `strict: false` and every other member are dropped (C20, C21). A schema is taken as it is written (C26).
 *
 * @example
 * ```ts
 * import { Canonical } from "@agenttool/core"
 *
 * Canonical.definition({ name: "ping", strict: false })
 * // {"type":"function","name":"ping","description":"","parameters":{"type":"object","properties":{},"required":[]}}
 * ```
 */
export const definition = (self: DefinitionShaped): Definition => ({
  type: "function",
  name: self.name,
  description: self.description ?? "",
  parameters: self.parameters ?? noArguments,
  ...(self.strict === true || self.properties?.strict === true ? { strict: true } : {})
})

/**
 * The identity of a tool: `sha256:` and the SHA-256, in hex, of the UTF-8 of its canonical definition (C22–C24).
 *
 * Fails where the definition has no canonical form (C22).
 *
 * @example
 * ```ts
 * import { Canonical } from "@agenttool/core"
 *
 * Canonical.definitionHash({ name: "ping" }) // Success sha256:2bfb9c64aeae7060...
 * ```
 */
export const definitionHash = (self: DefinitionShaped): Result.Result<string, CanonicalError> =>
  Result.map(stringify(definition(self)), (text) => `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`)
