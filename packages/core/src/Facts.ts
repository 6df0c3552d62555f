/**
 * What a call states about itself before it runs: the calls it stands for, and what to run instead (C57–C65).
 *
 * Stating facts does nothing else: it never runs the tool.
 */
import type * as Schema from "effect/Schema"

/** A call that this call stands for. `tool` is a tool's name, `""` for the claiming tool itself. */
export interface FactCall {
  readonly tool: string
  readonly args?: Schema.JsonObject | undefined
  readonly text?: string | undefined
}

/**
 * - `calls` absent: judge the call as itself. `[]`: the tool looked and cannot say, which is another answer. Entries:
 *   judge these in its place.
 * - `rewrite`: arguments to run instead of the model's, once a policy has let the call go ahead.
 */
export interface Facts {
  readonly calls?: ReadonlyArray<FactCall> | undefined
  readonly rewrite?: Schema.JsonObject | undefined
}

/** What the reader of the claim gives (C63): whether the tool claims, and its answer or its failure. */
export type Claim =
  | { readonly claims: false }
  | { readonly claims: true; readonly facts: Facts }
  | { readonly claims: true; readonly error: unknown }

/** The tool makes no claim. */
export const noClaim: Claim = { claims: false }
