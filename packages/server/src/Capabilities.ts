/**
 * What a client offers, read from its capabilities, and which of MCP's input requests that allows.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type * as Calls from "./Calls.ts"

const member = (value: unknown, name: string): unknown =>
  Predicate.isObject(value) && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined

/** Whether the client offers elicitation at all: it has the member, whatever is in it (M46). */
export const offersElicitation = (capabilities: unknown): boolean =>
  Predicate.isObject(member(capabilities, "elicitation"))

/** Whether it takes a form: it names `form`, or names neither form nor url (M50). */
export const offersForm = (capabilities: unknown): boolean => {
  const elicitation = member(capabilities, "elicitation")
  return Predicate.isObject(elicitation) && (Object.hasOwn(elicitation, "form") || !Object.hasOwn(elicitation, "url"))
}

/** Whether it takes a url question: only if it names `url` (M50). */
export const offersUrl = (capabilities: unknown): boolean => {
  const elicitation = member(capabilities, "elicitation")
  return Predicate.isObject(elicitation) && Object.hasOwn(elicitation, "url")
}

/** Whether the client offers what this input request needs. */
export const carries = (capabilities: Schema.Json, request: Calls.InputRequest): boolean => {
  switch (request.method) {
    case "elicitation/create":
      return member(request.params, "mode") === "url" ? offersUrl(capabilities) : offersForm(capabilities)
    case "sampling/createMessage":
      return Predicate.isObject(member(capabilities, "sampling"))
    case "roots/list":
      return Predicate.isObject(member(capabilities, "roots"))
  }
}

/** Whether a capability is offered, with everything that is wanted of it: `has(c, "sampling", { tools: {} })`. */
export const has = (capabilities: unknown, name: string, wanted: unknown): boolean => {
  const offered = member(capabilities, name)
  if (!Predicate.isObject(offered)) return false
  return Predicate.isObject(wanted)
    ? Object.entries(wanted).every(([inner, value]) => has(offered, inner, value))
    : true
}
