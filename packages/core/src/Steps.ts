/**
 * Steps of a call that must not be done twice, should the call go on in another process.
 *
 * A reference whose default runs every step as it is: without a journal, {@link once} is the effect itself.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"

/** Runs a step, or gives the value that was recorded when it ran before. */
export interface StepRunner {
  readonly run: <A, E, R>(
    name: string,
    schema: Schema.Codec<A, Schema.Json>,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/** The reference that holds the runner. */
export const Steps: Context.Reference<StepRunner> = Context.Reference<StepRunner>("@agenttool/core/Steps", {
  defaultValue: () => ({ run: (_name, _schema, effect) => effect })
})

/**
 * At most once recorded per call, also when the call goes on elsewhere: there the recorded value is given instead. A name
 * is used once per call. A step that fails is not recorded.
 *
 * @example
 * ```ts
 * import { Steps } from "@agenttool/core"
 * import { Effect, Schema } from "effect"
 *
 * const charged = Effect.succeed("receipt-1").pipe(Steps.once("charge", Schema.String))
 * ```
 */
export const once =
  <A>(name: string, schema: Schema.Codec<A, Schema.Json>) =>
  <E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Effect.service(Steps), (steps) => steps.run(name, schema, effect))
