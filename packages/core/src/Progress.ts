/**
 * Progress of a running call (C108–C112).
 *
 * A reference: a tool reports without knowing whether anybody listens. The default drops what is reported.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as ToolResult from "./ToolResult.ts"

const InfoTypeId = "~@agenttool/core/ProgressInfo"

/**
 * The numbers of an update: how far, of how much (`0` or absent: not known), and a text for people.
 */
export interface ProgressInfo {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** Where updates go. An update has the form of a result; numbers travel in its details. */
export interface ProgressService {
  readonly update: (update: ToolResult.ToolResult) => Effect.Effect<void>
}

/** Nobody listens: the default. */
export const none: ProgressService = { update: () => Effect.void }

/** The reference that holds the listener. */
export const Progress: Context.Reference<ProgressService> = Context.Reference<ProgressService>(
  "@agenttool/core/Progress",
  { defaultValue: () => none }
)

/**
 * Reports progress: a text, numbers with an optional text, or a result. A batch, and a server, pass updates on in order,
 * before the result, and drop what is reported after it (C110).
 *
 * @example
 * ```ts
 * import { Progress } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const work = Effect.gen(function* () {
 *   yield* Progress.report("looking around")
 *   yield* Progress.report({ message: "uploading", progress: 1, total: 3 })
 * })
 * ```
 */
export const report = (update: string | ProgressInfo | ToolResult.ToolResult): Effect.Effect<void> =>
  Effect.flatMap(Effect.service(Progress), (progress) =>
    progress === none ? Effect.void : progress.update(toUpdate(update))
  )

/** The update that {@link report} sends. */
export const toUpdate = (update: string | ProgressInfo | ToolResult.ToolResult): ToolResult.ToolResult => {
  if (typeof update === "string") return ToolResult.text(update)
  if (ToolResult.isToolResult(update)) return update
  return ToolResult.text(update.message ?? "", { details: info(update) })
}

/** Numbers as the details of an update. */
export const info = (numbers: ProgressInfo): ProgressInfo & { readonly [InfoTypeId]: true } => ({
  ...numbers,
  [InfoTypeId]: true
})

/** The numbers of an update, if it has any. */
export const infoOf = (update: ToolResult.ToolResult): ProgressInfo | undefined =>
  isInfo(update.details) ? update.details : undefined

const isInfo = (details: unknown): details is ProgressInfo => Predicate.hasProperty(details, InfoTypeId)
