/**
 * Whether a JSON Schema is a form as MCP allows one (P40): an object whose members are texts, numbers, booleans, choices
 * and lists of choices, and nothing nested. Clients refuse the whole question otherwise.
 */
import * as Predicate from "effect/Predicate"

/** Where a schema leaves the form, as a path into the schema, and why. */
export interface Fault {
  readonly path: string
  readonly reason: string
}

/** The first fault of a schema that is no form; `undefined` for a form. */
export const faultOf = (schema: unknown): Fault | undefined => {
  if (!isNode(schema)) return { path: "", reason: "must be an object" }
  if (schema.type !== "object") return { path: "type", reason: 'must be "object"' }
  const { additionalProperties, properties, required } = schema
  return (
    nestingOf(schema, "", ["properties"]) ??
    (isNode(additionalProperties) ? refused("additionalProperties") : undefined) ??
    (isNode(properties) ? undefined : { path: "properties", reason: "must be an object" }) ??
    (required === undefined || isTexts(required)
      ? undefined
      : { path: "required", reason: "must be a list of names" }) ??
    first(Object.entries(isNode(properties) ? properties : {}), ([name, member]) =>
      memberFault(member, `properties.${name}`)
    )
  )
}

type Node = { readonly [key: string]: unknown }

const isNode = (value: unknown): value is Node => Predicate.isObject(value)
const isText = Predicate.isString
const isTexts = (value: unknown): value is ReadonlyArray<string> => Array.isArray(value) && value.every(isText)

const first = <A>(items: ReadonlyArray<A>, faultOfItem: (item: A, index: number) => Fault | undefined) => {
  for (const [index, item] of items.entries()) {
    const fault = faultOfItem(item, index)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Keywords that put a schema inside a schema, or point to one. A flat form has a few of them in fixed places. */
const nesting = [
  "$defs",
  "$dynamicRef",
  "$ref",
  "additionalItems",
  "allOf",
  "anyOf",
  "contains",
  "contentSchema",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "patternProperties",
  "prefixItems",
  "properties",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties"
]

const refused = (path: string): Fault => ({ path, reason: "is not allowed in a form" })

const nestingOf = (node: Node, path: string, allowed: ReadonlyArray<string>): Fault | undefined => {
  const found = nesting.find((keyword) => node[keyword] !== undefined && !allowed.includes(keyword))
  return found === undefined ? undefined : refused(path === "" ? found : `${path}.${found}`)
}

const formats = ["email", "uri", "date", "date-time"]

const memberFault = (member: unknown, path: string): Fault | undefined => {
  if (!isNode(member)) return { path, reason: "must be an object" }
  const label = labelFault(member, path)
  if (label !== undefined) return label
  switch (member.type) {
    case "string":
      return textFault(member, path)
    case "number":
    case "integer":
    case "boolean":
      return nestingOf(member, path, []) ?? defaultFault(member, path, member.type === "boolean" ? "boolean" : "number")
    case "array":
      return listFault(member, path)
    case "object":
      return { path, reason: "an object inside a form is not allowed" }
    default:
      return { path: `${path}.type`, reason: "must be one of string, number, integer, boolean, array" }
  }
}

const labelFault = (member: Node, path: string): Fault | undefined => {
  const wrong = ["title", "description"].find((keyword) => member[keyword] !== undefined && !isText(member[keyword]))
  return wrong === undefined ? undefined : { path: `${path}.${wrong}`, reason: "must be a text" }
}

const defaultFault = (member: Node, path: string, type: "string" | "number" | "boolean"): Fault | undefined =>
  member.default === undefined || typeof member.default === type
    ? undefined
    : { path: `${path}.default`, reason: `must be a ${type}` }

const textFault = (member: Node, path: string): Fault | undefined => {
  const { enum: values, enumNames, format, oneOf } = member
  return (
    nestingOf(member, path, ["oneOf"]) ??
    (format === undefined || formats.some((known) => known === format)
      ? undefined
      : { path: `${path}.format`, reason: `must be one of ${formats.join(", ")}` }) ??
    (values === undefined || isTexts(values)
      ? undefined
      : { path: `${path}.enum`, reason: "must be a list of texts" }) ??
    // The 2025 revisions put titles beside an enum in this way.
    (enumNames === undefined || isTexts(enumNames)
      ? undefined
      : { path: `${path}.enumNames`, reason: "must be a list of texts" }) ??
    (oneOf === undefined ? undefined : choicesFault(oneOf, `${path}.oneOf`)) ??
    defaultFault(member, path, "string")
  )
}

const listFault = (member: Node, path: string): Fault | undefined => {
  const { items } = member
  if (!isNode(items)) return { path: `${path}.items`, reason: "must say what may be chosen" }
  const at = `${path}.items`
  return (
    nestingOf(member, path, ["items"]) ??
    nestingOf(items, at, ["anyOf"]) ??
    (items.anyOf === undefined
      ? items.type !== "string"
        ? { path: `${at}.type`, reason: 'must be "string"' }
        : isTexts(items.enum)
          ? undefined
          : { path: `${at}.enum`, reason: "must be a list of texts" }
      : choicesFault(items.anyOf, `${at}.anyOf`)) ??
    (member.default === undefined || isTexts(member.default)
      ? undefined
      : { path: `${path}.default`, reason: "must be a list of texts" })
  )
}

/** Choices with titles: each a constant text and what people read of it. */
const choicesFault = (choices: unknown, path: string): Fault | undefined => {
  if (!Array.isArray(choices)) return { path, reason: "must be a list of choices" }
  return first(choices, (choice: unknown, index) => {
    const at = `${path}[${index}]`
    if (!isNode(choice)) return { path: at, reason: "must be an object" }
    if (!isText(choice.const)) return { path: `${at}.const`, reason: "must be a text" }
    return isText(choice.title) ? nestingOf(choice, at, []) : { path: `${at}.title`, reason: "must be a text" }
  })
}
