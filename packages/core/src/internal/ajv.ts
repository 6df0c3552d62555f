/**
 * The validator itself: ajv, set up so that a hostile schema or value costs a bounded amount of work.
 *
 * Every schema is compiled by an instance of its own, which goes away with the check: an instance keeps all it has ever
 * compiled, and two schemas with one `$id` clash inside it. Such an instance takes about a third of a millisecond, because
 * it knows no meta-schemas. Those are compiled once per dialect, by an instance that only ever validates schemas and
 * keeps none of them.
 */
import { _, Ajv, type CodeKeywordDefinition, type ErrorObject, type KeywordDefinition, type Options } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import { fullFormats } from "ajv-formats/dist/formats.js"
import * as Result from "effect/Result"
import type { Dialect, Prepared } from "./jsonSchemaText.ts"
import * as LinearRegExp from "./linearRegExp.ts"

/** Steps of one check: a subschema applied, sixteen alternatives or members looked at, four states of a pattern. */
export const maxSteps = 10_000_000

/** Why a value does not fit: the validator's errors, or a reason to give up. */
export type Misfit =
  | { readonly _tag: "Errors"; readonly errors: ReadonlyArray<ErrorObject> }
  | { readonly _tag: "GaveUp"; readonly reason: string }

const make = (dialect: Dialect, options: Options): Ajv =>
  // In draft-07 whatever stands beside a `$ref` is ignored.
  dialect === "draft-07" ? new Ajv({ ...options, ignoreKeywordsWithRef: true }) : new Ajv2020(options)

// `1e400` is JSON, and no number that anybody could use.
const quiet: Options = { strict: false, strictNumbers: true, logger: false, ownProperties: true }

/** A value made at its first use. */
const lazy = <A>(create: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: create() }
    return made.value
  }
}

// `validateSchema` looks the meta-schema up and keeps nothing of the schema that it is given.
const metaSchemas: { readonly [dialect in Dialect]: () => Ajv } = {
  "draft-07": lazy(() => make("draft-07", { ...quiet, validateFormats: false })),
  "2020-12": lazy(() => make("2020-12", { ...quiet, validateFormats: false }))
}

/** What is wrong with a schema by the rules of its dialect, if anything is. */
export const schemaErrors = (
  dialect: Dialect,
  schema: { readonly [key: string]: unknown }
): ReadonlyArray<ErrorObject> => {
  const ajv = metaSchemas[dialect]()
  // The dialect is known by now, however its address was spelt.
  const { $schema: _spelling, ...rest } = schema
  ajv.validateSchema(rest)
  return ajv.errors ?? []
}

const tooMuch = "the value takes too long to check against this schema"
const tooDeep = "the value is nested too deeply"

/** Thrown by {@link Budget.spend} through the validator, which knows no other way to stop. */
class GaveUp extends Error {}

interface Budget {
  readonly spend: (steps: number) => void
  readonly refill: () => void
}

const makeBudget = (): Budget => {
  let left = maxSteps
  return {
    spend: (steps) => {
      left -= steps
      if (left < 0) throw new GaveUp(tooMuch)
    },
    refill: () => {
      left = maxSteps
    }
  }
}

// `url` is no format of JSON Schema, and the expression behind it can be made to run for minutes.
const { url: _notAFormat, ...formats } = fullFormats

/** The check behind a schema, or the words of the validator that cannot make one. */
export const compile = (
  prepared: Extract<Prepared, { readonly _tag: "Known" }>
): Result.Result<(value: unknown) => Misfit | undefined, string> => {
  const budget = makeBudget()
  return Result.map(
    Result.try({
      try: () => {
        const ajv = make(prepared.dialect, {
          ...quiet,
          formats,
          meta: prepared.needsMeta,
          validateSchema: false,
          // One function per referenced schema: copies in place can grow without bound.
          inlineRefs: false,
          code: { optimize: 0, regExp: regExpEngine(budget) }
        })
        meter(ajv, budget)
        return ajv.compile(prepared.schema)
      },
      catch: (error) =>
        error instanceof RangeError
          ? "too large to be compiled"
          : error instanceof Error
            ? error.message
            : String(error)
    }),
    (validate) => (value) => {
      budget.refill()
      const fits = Result.try({
        try: () => validate(value),
        catch: (error): Misfit => ({ _tag: "GaveUp", reason: reasonOf(error) })
      })
      if (Result.isFailure(fits)) return fits.failure
      return fits.success ? undefined : { _tag: "Errors", errors: validate.errors ?? [] }
    }
  )
}

const reasonOf = (error: unknown): string => {
  if (error instanceof GaveUp) return error.message
  // The validator recurses with the value: a deep one ends the stack, not the process.
  if (error instanceof RangeError) return tooDeep
  return error instanceof Error ? error.message : String(error)
}

const regExpEngine = (budget: Budget) =>
  Object.assign(
    (pattern: string) => {
      const compiled = LinearRegExp.compile(pattern, (states) => budget.spend(states / 4))
      return Result.getOrThrowWith(
        compiled,
        (reason) => new Error(`${JSON.stringify(pattern.slice(0, 200))} is no usable pattern: ${reason}`)
      )
    },
    // What generated source would call; nothing here is generated as source.
    { code: "linearRegExp" }
  )

/** Makes every keyword that looks at more than one thing say so before it does. */
const meter = (ajv: Ajv, budget: Budget): void => {
  for (const keyword of Object.keys(ajv.RULES.all)) {
    const definition = ajv.getKeyword(keyword)
    if (typeof definition === "object" && isCode(definition)) definition.code = metered(definition.code, budget)
  }
  // `id` is an ordinary unknown keyword in both dialects; the validator would refuse the whole schema for it.
  ajv.removeKeyword("id")
  ajv.removeKeyword("uniqueItems")
  ajv.addKeyword(uniqueItems(budget))
}

const isCode = (definition: KeywordDefinition): definition is CodeKeywordDefinition =>
  "code" in definition && typeof definition.code === "function"

const metered =
  (code: CodeKeywordDefinition["code"], budget: Budget): CodeKeywordDefinition["code"] =>
  (context, ruleType) => {
    const { gen, schema } = context
    const size = typeof schema === "object" && schema !== null ? Object.keys(schema).length : 0
    // A reference is what makes small schemas run long; the other single values are not worth counting.
    if (size > 0 || context.keyword === "$ref" || context.keyword === "$dynamicRef") {
      const spend = gen.scopeValue("func", { ref: budget.spend })
      gen.code(_`${spend}(${1 + Math.floor(size / 16)})`)
    }
    code(context, ruleType)
  }

// The validator's own compares every two items, which 100,000 small objects turn into hours.
const uniqueItems = (budget: Budget): KeywordDefinition => ({
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  error: { message: "must NOT have duplicate items" },
  validate: (wanted: boolean, items: ReadonlyArray<unknown>) => {
    if (!wanted) return true
    budget.spend(items.length)
    return new Set(items.map(identity)).size === items.length
  }
})

/** One text for all values that JSON Schema calls equal. */
const identity = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member
  )
