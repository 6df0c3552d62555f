/**
 * Which tools a session sees: a reference by which a host hides tools from some of its clients. A tool that is not visible
 * is not listed, and a call of it is one of an unknown tool.
 *
 * It decides by the session, with its principal, never by earlier requests (P70).
 */
import type * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as McpSession from "./McpSession.ts"

/** Decides. Every tool of a listing is asked about, so it is to be quick. */
export interface ToolVisibilityService {
  readonly isVisible: (tool: Tool.Any, session: McpSession.Session) => Effect.Effect<boolean>
}

/** Every tool is visible to everybody: the default. */
export const all: ToolVisibilityService = { isVisible: () => Effect.succeed(true) }

/** The reference that holds the decision. */
export const ToolVisibility: Context.Reference<ToolVisibilityService> = Context.Reference<ToolVisibilityService>(
  "@agenttool/server/ToolVisibility",
  { defaultValue: () => all }
)

/**
 * Installs a decision around a server layer.
 *
 * @example
 * ```ts
 * import { ToolVisibility } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const layer = ToolVisibility.layer({
 *   isVisible: (tool, session) => Effect.succeed(!tool.name.startsWith("admin_") || session.principal === "root")
 * })
 * ```
 */
export const layer = (visibility: ToolVisibilityService): Layer.Layer<never> =>
  Layer.succeed(ToolVisibility, visibility)
