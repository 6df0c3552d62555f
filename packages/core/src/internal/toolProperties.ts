/**
 * The properties of a tool: one combinator and one reader for each (C28). A harness uses readers only.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as ArgumentsCheck from "../ArgumentsCheck.ts"
import * as Facts from "../Facts.ts"
import * as Properties from "../Properties.ts"
import type { Any, Tool } from "../Tool.ts"
import * as internal from "./tool.ts"

// ----- strict

/**
 * Declares that the schema keeps the strict rules. A generated schema is generated anew, so that it does: every member is
 * required, unknown ones are refused, `null` stands for an optional nullable member that is left out. Make optional
 * members nullable under strict, or the model always has to send a value (C170). A map has no strict form: that throws.
 */
export const strict = <T extends Any>(self: T): T => rebuilt(self, { strict: true })

/**
 * Reads `null` of an optional member as absent, before the check. For models that write `null` for what they leave out
 * (C168). It changes nothing under strict, where no member may be left out, nor of a tool with a supplied schema.
 */
export const nullAsAbsent = <T extends Any>(self: T): T => rebuilt(self, { nullAsAbsent: true })

const rebuilt = <T extends Any>(self: T, how: Partial<internal.Build>): T => {
  const { build, rebuild, rewrap, wrapped } = self.inner
  const again =
    wrapped !== undefined && rewrap !== undefined
      ? rewrap(rebuilt(wrapped, how))
      : rebuild === undefined
        ? self
        : rebuild({ ...build, ...how })
  const strict = how.strict === true || self.properties.strict
  // The same tool, built another way: its types do not change. A wrapper may look at what it wraps: that has its properties too.
  return internal.withProperties(again as T, { ...self.properties, strict })
}

/** Whether the tool declares strict. */
export const isStrict = (self: Any): boolean => self.properties.strict

// ----- sequential, barrier, resource

/** No other call of the batch runs beside this tool: it makes its whole batch serial (C34). */
export const sequential = <T extends Any>(self: T): T => internal.withProperties(self, { sequential: true })

/** Whether the tool is sequential. */
export const isSequential = (self: Any): boolean => self.properties.sequential

/**
 * A call of this tool runs alone: after the calls before it in the model's order, before the calls after it (C40).
 */
export const barrier = <T extends Any>(self: T): T => internal.withProperties(self, { barrier: true })

/** Whether the tool is a barrier. One that is sequential as well is sequential (C41). */
export const isBarrier = (self: Any): boolean => self.properties.barrier && !self.properties.sequential

/**
 * Names the shared state that a call touches, `<kind>:<id>` by custom: calls of one batch that name the same run one after
 * another (C35). The empty name is none.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const bash = Tool.raw("bash", { execute: () => Effect.succeed("") }).pipe(Tool.resource("shell:session"))
 * ```
 */
export const resource: {
  (name: string): <T extends Any>(self: T) => T
  <T extends Any>(self: T, name: string): T
} = dual(2, <T extends Any>(self: T, name: string): T => internal.withProperties(self, { resource: name }))

/** The resource that a harness goes by: that of a sequential tool is none (C37). */
export const resourceOf = (self: Any): string => (self.properties.sequential ? "" : self.properties.resource)

// ----- flow, annotations

/** States what flows through the tool: text from outside (`untrusted`), data out (`sends`) (C43). */
export const flow: {
  (value: Properties.Flow): <T extends Any>(self: T) => T
  <T extends Any>(self: T, value: Properties.Flow): T
} = dual(2, <T extends Any>(self: T, value: Properties.Flow): T => internal.withProperties(self, { flow: value }))

/** The stated flow, without false members; none if nothing is stated. */
export const flowOf = (self: Any): Option.Option<Properties.Flow> =>
  Option.fromUndefinedOr(Properties.statedFlow(self.properties.flow))

/**
 * Sets hints (C44), adding to those that are set already.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const drop = Tool.raw("drop", { execute: () => Effect.succeed("") }).pipe(Tool.annotate({ destructive: true }))
 * ```
 */
export const annotate: {
  (hints: Properties.Annotations): <T extends Any>(self: T) => T
  <T extends Any>(self: T, hints: Properties.Annotations): T
} = dual(
  2,
  <T extends Any>(self: T, hints: Properties.Annotations): T =>
    internal.withProperties(self, { annotations: { ...self.properties.annotations, ...hints } })
)

/** The stated hints; none if nothing is stated, which is not "harmless" (C46). */
export const annotationsOf = (self: Any): Option.Option<Properties.Annotations> =>
  Option.fromUndefinedOr(Properties.statedAnnotations(self.properties.annotations))

// ----- confined, replay, facts

/** States, per call, whether it runs in a sandbox and in which (C48). */
export const confined =
  <R2 = never>(ask: Properties.PerCall<Properties.Confinement, never, R2> | undefined) =>
  <E, R, Args, A>(self: Tool<E, R, Args, A>): Tool<E, R | R2, Args, A> =>
    ask === undefined
      ? self
      : internal.derive<E, R | R2, Args, A>(self, { properties: { ...self.properties, confined: ask } })

/** Whether a call is confined; not, when nothing is said (C49). `raw` is the arguments' text. */
export const confinedOf = <E, R, Args, A>(
  self: Tool<E, R, Args, A>,
  raw: string
): Effect.Effect<Properties.Confinement, never, R> =>
  self.properties.confined === undefined
    ? Effect.succeed(Properties.notConfined)
    : Effect.suspend(() => self.properties.confined?.(parsed(raw), raw) ?? Effect.succeed(Properties.notConfined))

/**
 * States whether a call may run again (C50): always the same answer, or one per call.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const read = Tool.raw("read", { execute: () => Effect.succeed("") }).pipe(Tool.replay("safe"))
 * ```
 */
export const replay =
  <R2 = never>(answer: Properties.Replay | Properties.PerCall<Properties.Replay, never, R2> | undefined) =>
  <E, R, Args, A>(self: Tool<E, R, Args, A>): Tool<E, R | R2, Args, A> =>
    answer === undefined
      ? self
      : internal.derive<E, R | R2, Args, A>(self, {
          properties: {
            ...self.properties,
            replay: typeof answer === "function" ? answer : () => Effect.succeed(answer)
          }
        })

/** Whether a call may run again; `unknown` when nothing, or nothing known, is said (C51). */
export const replayOf = <E, R, Args, A>(
  self: Tool<E, R, Args, A>,
  raw: string
): Effect.Effect<Properties.Replay, never, R> => {
  const ask = self.properties.replay
  return ask === undefined
    ? Effect.succeed("unknown")
    : Effect.map(
        Effect.suspend(() => ask(parsed(raw), raw)),
        (answer) => (answer === "safe" || answer === "keyed" ? answer : "unknown")
      )
}

/** Claims what a call touches, before it runs (C57). Answering must not do anything. */
export const facts =
  <E2 = never, R2 = never>(claim: Properties.PerCall<Facts.Facts, E2, R2> | undefined) =>
  <E, R, Args, A>(self: Tool<E, R, Args, A>): Tool<E, R | R2, Args, A> =>
    claim === undefined
      ? self
      : internal.derive<E, R | R2, Args, A>(self, { properties: { ...self.properties, facts: claim } })

/** Whether the tool claims facts at all: known without asking about a call (C62). */
export const claimsFacts = (self: Any): boolean => self.properties.facts !== undefined

/** The claim about one call: no claim, its facts, or its failure, passed on unchanged (C63). */
export const factsOf = <E, R, Args, A>(
  self: Tool<E, R, Args, A>,
  raw: string
): Effect.Effect<Facts.Claim, never, R> => {
  const claim = self.properties.facts
  return claim === undefined
    ? Effect.succeed(Facts.noClaim)
    : Effect.match(
        Effect.suspend(() => claim(parsed(raw), raw)),
        {
          onSuccess: (stated): Facts.Claim => ({ claims: true, facts: stated }),
          onFailure: (error): Facts.Claim => ({ claims: true, error })
        }
      )
}

const parsed = (raw: string): unknown => Result.getOrUndefined(ArgumentsCheck.parse(raw))

// ----- closer

/** Says how to free what the tool keeps between calls. The host does it, by closing the set of tools (C66, C68). */
export const closer =
  (close: Effect.Effect<void, unknown> | undefined) =>
  <T extends Any>(self: T): T =>
    close === undefined ? self : internal.withProperties(self, { closer: close })

/** The action that frees what the tool keeps; none: the tool is no closer (C67). */
export const closerOf = (self: Any): Option.Option<Effect.Effect<void, unknown>> =>
  Option.fromUndefinedOr(self.properties.closer)

// ----- settings of edges

/** Sets what only one edge reads (an icon, a cache hint): a reference that the edge defines. */
export const setting =
  <S>(key: Context.Reference<S>, value: S) =>
  <T extends Any>(self: T): T =>
    internal.withProperties(self, { settings: Context.add(self.properties.settings, key, value) })

/** What {@link setting} set, or the reference's default. */
export const settingOf = <S>(self: Any, key: Context.Reference<S>): S => Context.get(self.properties.settings, key)
