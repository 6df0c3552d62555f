/**
 * The optional facts about a tool that a harness reads and a model does not (C28–C72): one record, every member with a
 * default, so that a wrapper that hands on the record cannot forget one.
 *
 * Nothing here enforces anything: these are claims by the tool's author (C31).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Facts from "./Facts.ts"

/**
 * MCP's hints (C44). They can be wrong: a policy may become stricter because of one, never more lenient. Unstated is not
 * "harmless": a hint that is left out reads as `undefined`.
 */
export interface Annotations {
  readonly title?: string | undefined
  readonly readOnly?: boolean | undefined
  readonly destructive?: boolean | undefined
  readonly idempotent?: boolean | undefined
  readonly openWorld?: boolean | undefined
}

/** What flows through a tool (C43): whether it returns text from outside, whether it sends data out. */
export interface Flow {
  readonly untrusted?: boolean | undefined
  readonly sends?: boolean | undefined
}

/** Whether a call runs in a sandbox, and in which (C48). */
export interface Confinement {
  readonly confined: boolean
  readonly by: string
}

/**
 * May a call that may already have run, run again (C50)? `safe`: a second run adds no effect. `keyed`: with the same
 * idempotency key. `unknown`: nothing is said.
 */
export type Replay = "unknown" | "safe" | "keyed"

/** Asks about one call: its arguments parsed (`undefined` if they are no JSON), and their raw text. */
export type PerCall<A, E, R> = (args: unknown, raw: string) => Effect.Effect<A, E, R>

/** All properties of a tool, as declared. Read them with the readers of `Tool`, which apply the rules. */
export interface Properties<out R = never> {
  readonly strict: boolean
  readonly sequential: boolean
  readonly barrier: boolean
  readonly resource: string
  readonly flow: Flow
  readonly annotations: Annotations | undefined
  readonly confined: PerCall<Confinement, never, R> | undefined
  readonly replay: PerCall<Replay, never, R> | undefined
  readonly facts: PerCall<Facts.Facts, unknown, R> | undefined
  readonly closer: Effect.Effect<void, unknown> | undefined
  readonly settings: Context.Context<never>
}

/** Nothing stated: every default. */
export const defaults: Properties = {
  strict: false,
  sequential: false,
  barrier: false,
  resource: "",
  flow: {},
  annotations: undefined,
  confined: undefined,
  replay: undefined,
  facts: undefined,
  closer: undefined,
  settings: Context.empty()
}

/** Not confined, as far as anybody said (C49). */
export const notConfined: Confinement = { confined: false, by: "" }

/** A flow without its false members; one with nothing stated is `undefined` (C43). */
export const statedFlow = (flow: Flow): Flow | undefined =>
  flow.untrusted !== true && flow.sends !== true
    ? undefined
    : {
        ...(flow.untrusted === true ? { untrusted: true } : {}),
        ...(flow.sends === true ? { sends: true } : {})
      }

/** Annotations without what is unstated; none stated is `undefined` (C46). */
export const statedAnnotations = (annotations: Annotations | undefined): Annotations | undefined => {
  if (annotations === undefined) return undefined
  const stated = Object.entries(annotations).filter(([, value]) => value !== undefined && value !== "")
  return stated.length === 0 ? undefined : Object.fromEntries(stated)
}
