/**
 * Which members of a JSON Schema hold schemas, for those who walk through one.
 */

/** Members of a schema whose value is data, not schemas. */
export const data: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"])

/** Members of a schema whose value has schemas under names that the author chose. */
export const named: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "$defs",
  "definitions"
])
