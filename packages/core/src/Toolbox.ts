/**
 * A checked set of tools: what is offered on one request, and closed together (C12–C15).
 *
 * Names are distinct and not empty. It does not run anything: `Executor` does.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Pipeable from "effect/Pipeable"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Tool from "./Tool.ts"
import * as ToolError from "./ToolError.ts"

const TypeId = "~@agenttool/core/Toolbox"

/** A set of tools with distinct names, in the order in which they are offered. */
export interface Toolbox<out T extends Tool.Any = Tool.Any> extends Pipeable.Pipeable {
  readonly [TypeId]: typeof TypeId
  readonly tools: ReadonlyArray<T>
  readonly byName: ReadonlyMap<string, T>
}

/** A set of tools, checked or not. */
export type Tools<T extends Tool.Any> = Toolbox<T> | ReadonlyArray<T>

/** Tools that cannot be offered together: the first fault of the set (C12). */
export class ToolboxError extends Schema.TaggedError<ToolboxError>()("ToolboxError", {
  fault: Schema.Literals(["empty name", "duplicate name"]),
  index: Schema.Int,
  name: Schema.String
}) {
  override get message(): string {
    return this.fault === "empty name"
      ? `tool[${this.index}]: empty name`
      : `tool ${ToolError.quote(this.name)}: duplicate name`
  }
}

/** What went wrong in closing one tool. `cause` is for logs. */
export const CloseFailure = Schema.Struct({ tool: Schema.String, message: Schema.String, cause: Schema.Unknown })
export interface CloseFailure extends Schema.Schema.Type<typeof CloseFailure> {}

/** Tools that could not be closed, one line for each: `agenttool: close "NAME": MESSAGE` (C15). */
export class CloseError extends Schema.TaggedError<CloseError>()("CloseError", {
  failures: Schema.NonEmptyArray(CloseFailure)
}) {
  override get message(): string {
    return this.failures.map(({ message, tool }) => `agenttool: close ${ToolError.quote(tool)}: ${message}`).join("\n")
  }
}

/** Whether a value is a checked set of tools. */
export const isToolbox = (value: unknown): value is Toolbox => Predicate.hasProperty(value, TypeId)

/**
 * The first fault of a set: an empty name, or a name that was there before (C12).
 *
 * @example
 * ```ts
 * import { Tool, Toolbox } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const plain = Tool.raw("plain", { execute: () => Effect.succeed("") })
 *
 * Toolbox.check([plain, plain]) // Result.fail: tool "plain": duplicate name
 * ```
 */
export const check = (tools: ReadonlyArray<Tool.Any>): Result.Result<void, ToolboxError> => {
  const seen = new Set<string>()
  for (const [index, { name }] of tools.entries()) {
    if (name === "") return Result.fail(new ToolboxError({ fault: "empty name", index, name }))
    if (seen.has(name)) return Result.fail(new ToolboxError({ fault: "duplicate name", index, name }))
    seen.add(name)
  }
  return Result.void
}

/**
 * A set of tools, if they can be offered together.
 *
 * @example
 * ```ts
 * import { Tool, Toolbox } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const read = Tool.raw("read", { execute: () => Effect.succeed("") })
 * const write = Tool.raw("write", { execute: () => Effect.succeed("") })
 *
 * const program = Effect.map(Toolbox.make(read, write), Toolbox.definitions)
 * ```
 */
export const make = <const T extends ReadonlyArray<Tool.Any>>(
  ...tools: T
): Effect.Effect<Toolbox<T[number]>, ToolboxError> =>
  Effect.suspend(() => Effect.fromResult(Result.map(check(tools), () => fromChecked<T[number]>(tools))))

const Prototype = { [TypeId]: TypeId, ...Pipeable.Prototype }

const fromChecked = <T extends Tool.Any>(tools: ReadonlyArray<T>): Toolbox<T> =>
  Object.freeze(
    Object.assign(Object.create(Prototype), { tools, byName: new Map(tools.map((tool) => [tool.name, tool])) })
  )

/**
 * A set of tools that is closed when the scope is (C71, C72). What could not be closed is a defect of the scope's closing:
 * the `CloseError` with all failures.
 *
 * @example
 * ```ts
 * import { Tool, Toolbox } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const shell = Tool.raw("shell", { execute: () => Effect.succeed("") }).pipe(
 *   Tool.closer(Effect.logInfo("the shell is gone"))
 * )
 *
 * const program = Effect.scoped(Effect.flatMap(Toolbox.scoped(shell), (tools) => Effect.log(tools.tools.length)))
 * ```
 */
export const scoped = <const T extends ReadonlyArray<Tool.Any>>(
  ...tools: T
): Effect.Effect<Toolbox<T[number]>, ToolboxError, Scope.Scope> =>
  Effect.acquireRelease(make(...tools), (toolbox) => Effect.orDie(close(toolbox)))

/** The first tool of that name, or none (C13). */
export const get: {
  (name: string): <T extends Tool.Any>(self: Tools<T>) => Option.Option<T>
  <T extends Tool.Any>(self: Tools<T>, name: string): Option.Option<T>
} = dual(2, <T extends Tool.Any>(self: Tools<T>, name: string) => Option.fromUndefinedOr(lookup(self, name)))

/** As {@link get}, for those who look up once per call: `undefined` is none. */
export const lookup = <T extends Tool.Any>(self: Tools<T>, name: string): T | undefined =>
  isSet(self) ? self.byName.get(name) : self.find((tool) => tool.name === name)

/** What a model reads of the set, in its order (C14). */
export const definitions = (self: Tools<Tool.Any>): ReadonlyArray<Tool.Definition> => toolsOf(self).map(Tool.definition)

/**
 * Closes each tool that is a closer, in the set's order, whatever becomes of the others (C15). The host does it, once: a
 * wrapper closes what it wraps, so a set with both closes that tool twice (C67, C68).
 */
export const close = (self: Tools<Tool.Any>): Effect.Effect<void, CloseError> =>
  Effect.flatMap(Effect.forEach(toolsOf(self), closeOne), (outcomes) => {
    const [first, ...rest] = outcomes.filter((outcome) => outcome !== undefined)
    return first === undefined ? Effect.void : Effect.fail(new CloseError({ failures: [first, ...rest] }))
  })

const closeOne = (tool: Tool.Any): Effect.Effect<CloseFailure | undefined> =>
  Option.match(Tool.closerOf(tool), {
    onNone: () => Effect.succeed(undefined),
    onSome: (closer) =>
      Effect.map(Effect.exit(closer), (exit) =>
        Exit.isSuccess(exit) ? undefined : { tool: tool.name, message: messageOf(exit.cause), cause: exit.cause }
      )
  })

const messageOf = (cause: Cause.Cause<unknown>): string => {
  const failure = Cause.findErrorOption(cause)
  if (Option.isSome(failure)) return ToolError.messageOf(failure.value)
  const died = cause.reasons.find(Cause.isDieReason)
  return died === undefined ? "interrupted" : ToolError.defectValue(died.defect)
}

const isSet = <T extends Tool.Any>(self: Tools<T>): self is Toolbox<T> => isToolbox(self)

const toolsOf = <T extends Tool.Any>(self: Tools<T>): ReadonlyArray<T> => (isSet(self) ? self.tools : self)
