/**
 * How a tool is represented: one constructor for every way to build or derive one, so that nothing is forgotten.
 */
import * as Effect from "effect/Effect"
import * as Pipeable from "effect/Pipeable"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as JsonSchemaCheck from "../JsonSchemaCheck.ts"
import * as Properties from "../Properties.ts"
import type * as Shape from "../Shape.ts"
import type { Any, Execute, Tool } from "../Tool.ts"
import type * as ToolError from "../ToolError.ts"
import { noArguments } from "./noArguments.ts"

export const TypeId = "~@agenttool/core/Tool"

/** Who checks the arguments: the tool itself, against what it generated; its harness, against what the author gave; nobody. */
export type Check = "own" | "supplied" | "none"

/** What a tool knows of itself beside its public members. */
export interface Inner {
  readonly check: Check
  /** The shape behind a generated schema. */
  readonly shape: Shape.ObjectShape | undefined
  /** Builds the same tool again from its shape, where there is one. */
  readonly rebuild: ((options: Build) => Any) | undefined
  readonly build: Build
  /** What this wraps, and how to wrap another. */
  readonly wrapped: Any | undefined
  readonly rewrap: ((inner: Any) => Any) | undefined
  /** The text of a failure of the declared `failure` schema. */
  readonly failureText: (failure: unknown) => string
  /** The harness's check, compiled at its first use and kept. */
  readonly prepared: () => Result.Result<JsonSchemaCheck.JsonSchemaCheck, JsonSchemaCheck.JsonSchemaError>
}

export interface Build {
  readonly strict: boolean
  readonly nullAsAbsent: boolean
}

export const plainly: Build = { strict: false, nullAsAbsent: false }

export interface Fields<E, R, A> {
  readonly name: string
  readonly description: string
  readonly parameters: Schema.JsonObject | undefined
  readonly success: Schema.JsonObject | undefined
  readonly properties: Properties.Properties<R>
  readonly execute: Execute<A, E | ToolError.ToolError, R>
  readonly inner: Inner
}

const Prototype = { [TypeId]: TypeId, ...Pipeable.Prototype }

export const fromFields = <E, R, Args, A>(fields: Fields<E, R, A>): Tool<E, R, Args, A> =>
  Object.freeze(Object.assign(Object.create(Prototype), fields))

/** The same tool with other members. */
export const derive = <E, R, Args, A>(
  self: Tool<E, R, Args, A>,
  changes: Partial<Fields<E, R, A>>
): Tool<E, R, Args, A> =>
  fromFields({
    name: self.name,
    description: self.description,
    parameters: self.parameters,
    success: self.success,
    properties: self.properties,
    execute: self.execute,
    inner: self.inner,
    ...changes
  })

/** The same tool with some properties set. */
export const withProperties = <T extends Any>(self: T, changes: Partial<Properties.Properties<unknown>>): T =>
  // The requirements of a changed property are added by the combinators' own signatures.
  derive<unknown, unknown, never, unknown>(self, { properties: { ...self.properties, ...changes } }) as Any as T

/** Compiles at the first call and keeps the outcome: a schema that nobody serves is never compiled. */
export const lazily = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

export const preparedFor = (check: Check, parameters: Schema.JsonObject | undefined): Inner["prepared"] =>
  check === "supplied"
    ? lazily(() => JsonSchemaCheck.compile(parameters ?? noArguments))
    : () => Result.succeed(unchecked)

const unchecked: JsonSchemaCheck.JsonSchemaCheck = { _tag: "Checked", check: () => undefined }

/** A wrapper: the tool with another way to run, and the means to be made again around another tool. */
export const wrap = <E, R, Args, A, E2, R2, A2>(
  self: Tool<E, R, Args, A>,
  exec: (execute: Execute<A, E | ToolError.ToolError, R>, tool: Tool<E, R, Args, A>) => Execute<A2, E2, R2>
): Tool<Exclude<E2, ToolError.ToolError>, R | R2, Args, A2> =>
  fromFields({
    name: self.name,
    description: self.description,
    parameters: self.parameters,
    success: self.success,
    properties: self.properties,
    // The failures of every tool are part of `execute`, whatever a wrapper adds.
    execute: exec(self.execute, self) as Execute<A2, Exclude<E2, ToolError.ToolError> | ToolError.ToolError, R | R2>,
    inner: {
      ...self.inner,
      wrapped: self,
      // Only ever called with the same tool, built another way: its types are the same.
      rewrap: (inner) => wrap(inner as Tool<E, R, Args, A>, exec)
    }
  })

/** The tool with every effect of it run through one function. */
export const mapEffects = <E, R, Args, A, E2, R2>(
  self: Tool<E, R, Args, A>,
  f: <B, E1>(effect: Effect.Effect<B, E1, R>) => Effect.Effect<B, E1 | E2, R2>
): Tool<E | E2, R2, Args, A> => {
  const { confined, facts, replay } = self.properties
  return fromFields({
    name: self.name,
    description: self.description,
    parameters: self.parameters,
    success: self.success,
    properties: {
      ...self.properties,
      confined: confined && ((args, raw) => Effect.orElseSucceed(f(confined(args, raw)), () => Properties.notConfined)),
      replay: replay && ((args, raw) => Effect.orElseSucceed(f(replay(args, raw)), () => "unknown")),
      facts: facts && ((args, raw) => f(facts(args, raw)))
    },
    execute: (call) => f(self.execute(call)),
    inner: {
      ...self.inner,
      wrapped: self,
      rewrap: (inner) => mapEffects(inner as Tool<E, R, Args, A>, f)
    }
  })
}
