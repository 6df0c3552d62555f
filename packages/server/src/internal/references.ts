/**
 * A schema that is moved into another one: its references to itself have to follow.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import { data, named } from "./schemaMembers.ts"

/**
 * The schema as it is to stand at `place`, a JSON pointer: pointers into it are written anew. A schema with an `$id` brings
 * its own root with it. The same object where nothing points into it.
 */
export const moved = (schema: Schema.JsonObject, place: string): Schema.JsonObject =>
  Object.hasOwn(schema, "$id")
    ? schema
    : mapped(schema, (member, value) => {
        if (data.has(member)) return value
        if (member === "$ref" || member === "$dynamicRef") return reference(value, place)
        return named.has(member) && isObject(value)
          ? mapped(value, (_name, child) => inValue(child, place))
          : inValue(value, place)
      })

const inValue = (value: Schema.Json, place: string): Schema.Json => {
  if (isArray(value)) {
    const elements = value.map((element) => inValue(element, place))
    return elements.every((element, at) => element === value[at]) ? value : elements
  }
  return isObject(value) ? moved(value, place) : value
}

const mapped = (
  object: Schema.JsonObject,
  f: (member: string, value: Schema.Json) => Schema.Json
): Schema.JsonObject => {
  const entries = Object.entries(object).map(([member, value]) => [member, f(member, value)] as const)
  return entries.every(([member, value]) => object[member] === value) ? object : Object.fromEntries(entries)
}

// An anchor (`#name`) is found wherever it stands.
const reference = (ref: Schema.Json, place: string): Schema.Json =>
  ref === "#" || (typeof ref === "string" && ref.startsWith("#/")) ? `#${place}${ref.slice(1)}` : ref

const isArray = (value: Schema.Json): value is ReadonlyArray<Schema.Json> => Array.isArray(value)

const isObject = (value: Schema.Json): value is Schema.JsonObject => Predicate.isObject(value) && !Array.isArray(value)
