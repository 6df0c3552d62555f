/** The schema of a tool without arguments, wherever it is shown (C5). */
import type * as Schema from "effect/Schema"

export const noArguments: Schema.JsonObject = Object.freeze({
  type: "object",
  properties: Object.freeze({}),
  required: Object.freeze([])
})
