/**
 * Reads a JSON Schema before the validator does: bounds its size, finds its dialect, resolves every `$ref` in it, and
 * refuses one that comes back to itself without ever looking deeper into the value.
 *
 * Gives a private copy, without the keywords that only the validator behind {@link JsonSchemaCheck} knows and JSON Schema
 * does not.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import uriResolver from "ajv/dist/runtime/uri.js"
import { quote } from "../ToolError.ts"

/** Objects and arrays inside each other; a level of `properties` costs two. */
export const maxDepth = 256
/** Members and elements of all objects and arrays. */
export const maxValues = 100_000
/** Schemas inside the schema, itself included. */
export const maxSubschemas = 5_000

export type Dialect = "draft-07" | "2020-12"

/** A schema that is ready for the validator, or one of a dialect that we do not know. */
export type Prepared =
  | {
      readonly _tag: "Known"
      readonly dialect: Dialect
      readonly schema: { readonly [key: string]: unknown }
      /** It refers to the schema of its own dialect, which is then part of it. */
      readonly needsMeta: boolean
    }
  | { readonly _tag: "Unknown"; readonly dialect: string }

export const prepare = (schema: Schema.JsonObject): Result.Result<Prepared, string> => {
  if (!isNode(schema)) return Result.fail("must be an object")
  const oversize = measure(schema)
  if (oversize !== undefined) return Result.fail(oversize)
  const dialect = dialectOf(schema.$schema)
  if (Result.isFailure(dialect)) return Result.fail(dialect.failure)
  const known = dialect.success
  if (known._tag === "Unknown") return Result.succeed(known)
  const root = copy(schema)
  if (!isNode(root)) return Result.fail("must be an object")
  return Result.map(
    resolveAll(root, known.dialect),
    (needsMeta): Prepared => ({ _tag: "Known", dialect: known.dialect, schema: root, needsMeta })
  )
}

/** Walks without recursion, so that a schema of any depth can be measured. */
const measure = (schema: unknown): string | undefined => {
  const open: Array<readonly [value: unknown, depth: number]> = [[schema, 1]]
  let values = 0
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const [value, depth] = entry
    if (typeof value !== "object" || value === null) continue
    if (depth > maxDepth) return `nested more than ${maxDepth} levels deep`
    const members = Object.values(value)
    values += members.length
    if (values > maxValues) return `has more than ${maxValues} values`
    for (const member of members) open.push([member, depth + 1])
  }
  return undefined
}

const draft07 = /^https?:\/\/json-schema\.org\/draft-07\/schema\/?#?$/i
const draft2020 = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema\/?#?$/i

const dialectOf = (
  uri: unknown
): Result.Result<{ _tag: "Known"; dialect: Dialect } | { _tag: "Unknown"; dialect: string }, string> => {
  if (uri === undefined) return Result.succeed({ _tag: "Known", dialect: "2020-12" })
  if (typeof uri !== "string") return Result.fail("$schema: must be a string")
  if (draft07.test(uri)) return Result.succeed({ _tag: "Known", dialect: "draft-07" })
  if (draft2020.test(uri)) return Result.succeed({ _tag: "Known", dialect: "2020-12" })
  return Result.succeed({ _tag: "Unknown", dialect: uri })
}

const copy = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => (member === undefined ? [] : [[key, copy(member)]]))
  )
}

/** An object of our copy, at a place where a schema stands. */
type Node = { [key: string]: unknown }

interface Place {
  readonly node: Node
  readonly path: string
  readonly base: string
  /** The places that this one applies to the very same value. */
  readonly same: Array<Node>
}

const isNode = (value: unknown): value is Node => Predicate.isObject(value)

const singles = [
  "additionalItems",
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties"
]
const lists = ["allOf", "anyOf", "oneOf", "prefixItems", "items"]
const maps = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
const onSameValue = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependencies",
  "dependentSchemas"
])
/** Known to the validator only: `$async` would turn its answer into a promise, `nullable` would widen `type`. */
const foreign = ["$async", "nullable"]

const childrenOf = (node: Node): Array<{ readonly keyword: string; readonly at: string; readonly value: unknown }> => [
  ...singles.map((keyword) => ({ keyword, at: keyword, value: node[keyword] })),
  ...lists.flatMap((keyword) => {
    const value = node[keyword]
    return Array.isArray(value) ? value.map((item, i) => ({ keyword, at: `${keyword}[${i}]`, value: item })) : []
  }),
  ...maps.flatMap((keyword) => {
    const value = node[keyword]
    return isNode(value)
      ? Object.entries(value).map(([key, member]) => ({ keyword, at: `${keyword}.${key}`, value: member }))
      : []
  })
]

const metaUris: { readonly [dialect in Dialect]: RegExp } = { "draft-07": draft07, "2020-12": draft2020 }

/** Resolves every reference. Gives whether the dialect's own schema is among them. */
const resolveAll = (root: Node, dialect: Dialect): Result.Result<boolean, string> => {
  const places = new Map<Node, Place>()
  const resources = new Map<string, Node>()
  const anchors = new Map<string, Node>()
  const references: Array<{ readonly from: Place; readonly keyword: string; readonly target: string }> = []

  let malformed: string | undefined

  const visit = (node: Node, path: string, outerBase: string): void => {
    if (places.has(node) || places.size > maxSubschemas) return
    const id = typeof node.$id === "string" ? node.$id : ""
    // In draft-07 an $id with nothing but a fragment is an anchor.
    const ownId = id !== "" && !id.startsWith("#")
    const base = ownId ? resolveUri(outerBase, id) : outerBase
    if (base === undefined) {
      malformed ??= `${path === "" ? "" : `${path}.`}$id: ${quote(id)} is no address`
      return
    }
    const place: Place = { node, path, base, same: [] }
    places.set(node, place)
    if (ownId || node === root) resources.set(base, node)
    for (const name of [node.$anchor, node.$dynamicAnchor, id.startsWith("#") ? id.slice(1) : undefined]) {
      if (typeof name === "string") anchors.set(`${base}#${name}`, node)
    }
    for (const keyword of foreign) delete node[keyword]
    for (const keyword of ["$ref", "$dynamicRef"]) {
      const target = node[keyword]
      if (typeof target === "string") references.push({ from: place, keyword, target })
    }
    for (const { at, keyword, value } of childrenOf(node)) {
      if (!isNode(value)) continue
      if (onSameValue.has(keyword)) place.same.push(value)
      visit(value, path === "" ? at : `${path}.${at}`, base)
    }
  }

  visit(root, "", "")
  if (malformed !== undefined) return Result.fail(malformed)
  let needsMeta = false
  // A reference may lead to a place that no keyword leads to, which has references of its own.
  for (const { from, keyword, target } of references) {
    const where = from.path === "" ? keyword : `${from.path}.${keyword}`
    const uri = target.startsWith("#") ? from.base : resolveUri(from.base, target)
    if (uri === undefined) return Result.fail(`${where}: ${quote(target)} is no address`)
    const fragment = target.includes("#") ? target.slice(target.indexOf("#") + 1) : ""
    const resource = resources.get(uri)
    if (resource === undefined) {
      if (!metaUris[dialect].test(uri)) {
        return Result.fail(`${where}: ${quote(target)} is not in this schema, and other documents are not fetched`)
      }
      needsMeta = true
      continue
    }
    const found = find(resource, uri, fragment, anchors)
    if (found === undefined) return Result.fail(`${where}: ${quote(target)} leads to nothing`)
    if (!isNode(found)) continue
    visit(found, places.get(found)?.path ?? target, uri)
    if (malformed !== undefined) return Result.fail(malformed)
    from.same.push(found)
  }
  if (places.size > maxSubschemas) return Result.fail(`has more than ${maxSubschemas} subschemas`)
  const looping = findLoop(places)
  return looping === undefined
    ? Result.succeed(needsMeta)
    : Result.fail(`${looping === "" ? "" : `${looping}: `}refers to itself without end`)
}

/** An address without its fragment; `undefined` where it is none. */
// The validator's own resolver: both must read an address in the same way.
const resolveUri = (base: string, uri: string): string | undefined =>
  Result.match(
    Result.try(() => uriResolver.default.resolve(base, uri)),
    { onFailure: () => undefined, onSuccess: (resolved) => resolved.split("#", 1)[0] }
  )

/** What a fragment names inside a resource; `undefined` for nothing. Only an object or a boolean is a schema. */
const find = (resource: Node, uri: string, fragment: string, anchors: ReadonlyMap<string, Node>): unknown => {
  if (fragment === "") return resource
  if (!fragment.startsWith("/")) return anchors.get(`${uri}#${fragment}`)
  const decoded = Result.try(() => decodeURIComponent(fragment))
  if (Result.isFailure(decoded)) return undefined
  let found: unknown = resource
  for (const token of decoded.success.slice(1).split("/")) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~")
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined
    // Own members only, by the line above; an array's are its elements.
    found = (found as { readonly [key: string]: unknown })[key]
  }
  return isNode(found) || typeof found === "boolean" ? found : undefined
}

/** The path of a place that leads back to itself on the same value. Without recursion: chains of `$ref` can be long. */
const findLoop = (places: ReadonlyMap<Node, Place>): string | undefined => {
  const finished = new Set<Node>()
  const entered = new Set<Node>()
  for (const start of places.keys()) {
    const open: Array<Node> = [start]
    for (let node = open.at(-1); node !== undefined; node = open.at(-1)) {
      if (finished.has(node) || entered.has(node)) {
        finished.add(node)
        open.pop()
        continue
      }
      entered.add(node)
      for (const next of places.get(node)?.same ?? []) {
        if (finished.has(next)) continue
        if (entered.has(next)) return places.get(next)?.path ?? ""
        open.push(next)
      }
    }
  }
  return undefined
}
