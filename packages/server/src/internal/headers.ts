/**
 * Where an input schema asks for an argument to be repeated as an HTTP header (`x-mcp-header`), and whether it may (P26).
 * A client drops a tool that breaks these rules, so it is better not registered. `ParamHeaders` reads the headers themselves.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { data, named } from "./schemaMembers.ts"

/** The member of a property's schema that names the header. */
export const keyword = "x-mcp-header"
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const types: ReadonlySet<unknown> = new Set(["integer", "string", "boolean"])

interface Declared {
  readonly path: string
  readonly header: unknown
  readonly type: unknown
  /** Whether the way from the root is properties all along, and at least one. */
  readonly reachable: boolean
}

/** The first rule that the schema breaks, in one line; none if it breaks none. */
export const faultOf = (schema: Schema.JsonObject): string | undefined => {
  const seen = new Map<string, string>()
  for (const { header, path, reachable, type } of declarations(schema, "", true)) {
    const where = `${keyword} at ${path === "" ? "the root" : path}`
    if (!reachable || path === "") return `${where}: only a property that properties alone lead to may have it`
    if (typeof header !== "string" || !token.test(header))
      return `${where}: ${JSON.stringify(header)} is not a header name`
    if (!types.has(type)) return `${where}: only an integer, a string or a boolean may have it`
    const earlier = seen.get(header.toLowerCase())
    if (earlier !== undefined) return `${where}: ${JSON.stringify(header)} is taken by ${earlier}`
    seen.set(header.toLowerCase(), path)
  }
  return undefined
}

function* declarations(schema: Schema.JsonObject, path: string, reachable: boolean): Generator<Declared> {
  if (Object.hasOwn(schema, keyword)) yield { path, header: schema[keyword], type: schema.type, reachable }
  for (const [member, value] of Object.entries(schema)) {
    if (data.has(member)) continue
    if (named.has(member)) {
      for (const [name, child] of isSchema(value) ? Object.entries(value) : []) {
        const next = member === "properties" ? name : `${member}.${name}`
        if (isSchema(child)) yield* declarations(child, join(path, next), reachable && member === "properties")
      }
    } else {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (isSchema(child)) yield* declarations(child, join(path, member), false)
      }
    }
  }
}

const join = (path: string, next: string): string => (path === "" ? next : `${path}.${next}`)

const isSchema = (value: unknown): value is Schema.JsonObject => Predicate.isObject(value) && !Array.isArray(value)
