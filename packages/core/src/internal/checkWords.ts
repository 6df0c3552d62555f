/**
 * One line about why a value does not fit, out of the validator's errors: where, and what was expected there.
 *
 * Bounded, because names and paths in it come from the value.
 */
import type { ErrorObject } from "ajv"
import { oneLine, quote } from "../ToolError.ts"

const maxName = 80
const maxPath = 160
const maxBranches = 4
/** Longest text of a fault, in UTF-16 units. */
export const maxText = 500

/** At most `length` characters, with a mark where something was left out. */
export const bounded = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

const named = (name: unknown): string => quote(bounded(typeof name === "string" ? name : JSON.stringify(name), maxName))

/** The line for a list of errors; the last one is that of the outermost keyword. */
export const words = (value: unknown, errors: ReadonlyArray<ErrorObject>): string => {
  const error = errors.at(-1)
  if (error === undefined) return "does not fit"
  const path = pathOf(value, error.instancePath)
  const text = `${messageOf(error)}${branches(value, error, errors.slice(0, -1))}`
  return bounded(oneLine(path === "" ? text : `${path}: ${text}`), maxText)
}

/** What each alternative wanted, where none fitted. */
const branches = (value: unknown, error: ErrorObject, inner: ReadonlyArray<ErrorObject>): string => {
  const noneFitted = error.keyword === "anyOf" || (error.keyword === "oneOf" && error.params.passingSchemas === null)
  const explains = error.keyword === "propertyNames" || error.keyword === "contains"
  if (!noneFitted && !explains) return ""
  const here = pathOf(value, error.instancePath)
  const texts = inner.map((one) => {
    const path = pathOf(value, one.instancePath)
    return path === here ? messageOf(one) : `${path}: ${messageOf(one)}`
  })
  const distinct = [...new Set(texts)]
  if (distinct.length === 0) return ""
  const left = distinct.length > maxBranches ? "; …" : ""
  return ` (${distinct.slice(0, maxBranches).join("; ")}${left})`
}

const messageOf = (error: ErrorObject): string => {
  const { keyword, params } = error
  const message = error.message ?? "does not fit"
  switch (keyword) {
    case "required":
      return `must have required property '${bounded(String(params.missingProperty), maxName)}'`
    case "additionalProperties":
      return `must NOT have additional properties: ${named(params.additionalProperty)}`
    case "unevaluatedProperties":
      return `must NOT have unevaluated (additional) properties: ${named(params.unevaluatedProperty)}`
    case "propertyNames":
      return `property name ${named(params.propertyName)} must be valid`
    case "const":
      return `must be equal to ${shown(params.allowedValue)}`
    case "enum":
      return `must be equal to one of the allowed values: ${listed(params.allowedValues)}`
    default:
      return bounded(message, maxText)
  }
}

const shown = (value: unknown): string => bounded(JSON.stringify(value) ?? "undefined", maxName)

const listed = (values: unknown): string => {
  if (!Array.isArray(values)) return shown(values)
  const left = values.length > 20 ? ", …" : ""
  return `${values.slice(0, 20).map(shown).join(", ")}${left}`
}

/** A JSON pointer as the contract writes paths (C188): names joined by `.`, elements as `[i]`. */
const pathOf = (value: unknown, pointer: string): string => {
  let path = ""
  let at = value
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~")
    path += Array.isArray(at) ? `[${key}]` : path === "" ? key : `.${key}`
    if (path.length > maxPath) return bounded(path, maxPath)
    // Only ever walks where the validator has been.
    at = typeof at === "object" && at !== null ? (at as { readonly [name: string]: unknown })[key] : undefined
  }
  return path
}
