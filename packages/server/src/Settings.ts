/**
 * The bounds and times of a server: one reference with defaults. A layer option of the same name sets a member.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"

/**
 * - `abandonAfter`: how long a question waits for its answer before its call is interrupted. Default 30 minutes; zero or
 *   less is the default.
 * - `maxRequests`: how many requests a client makes of one call at most, the first one counted; what would need one more
 *   fails to be asked. Default 10; 0 is the default, negative is no limit.
 * - `maxParked`, `maxParkedPerSession`: how many calls may be parked in all (10,000) and per session, or per principal on
 *   per-request HTTP (100). At the bound, asking fails.
 * - `removalGrace`: how long running calls of a removed registration may go on. Default 5 seconds.
 * - `shutdownGrace`: how long running calls may go on when the server stops. Default 5 seconds. The end of standard input
 *   gives none: there is nobody left to answer.
 * - `sessionIdleTimeout`: when a 2025 HTTP session without a request, a running call or an open question ends. Default 30
 *   minutes.
 * - `maxSessions`: how many 2025 HTTP sessions there may be. Default 1,000; one more gets 503.
 * - `sessionPerPrincipal`: whether per-request HTTP has one session for all requests of an authenticated principal, so
 *   that session-scoped layers work there; it ends after `sessionIdleTimeout`. Default false: one per request.
 * - `maxRunning`, `maxRunningPerSession`: how many calls may run at once, in all (1,000) and per session or principal (100);
 *   parked ones do not count. `maxQueued`: how many more wait for their turn (1,000); the next one is told at once that the
 *   server is busy.
 * - `maxQuestions`: how many questions may be open in one call. Default 100.
 * - `maxJsonDepth`, `receiveTimeout`: how deep a request body may be nested (128), and how long it may take to arrive
 *   (30 seconds), over HTTP.
 * - `maxBodyBytes`: the largest request body over HTTP. Default 4 MiB.
 * - `maxResultBytes`: the largest result, as JSON. Default 16 MiB; a larger one becomes an error result.
 * - `showDefects`: whether a client sees the value of a defect. Default false: it sees a reference into the log.
 * - `nullAsAbsent`: whether `null` of an optional member reads as absent, for all typed tools. Default false.
 * - `toolsPerPage`: how many tools one page of a listing has. Default 1,000: many clients read one page only. Less than one
 *   is the default.
 * - `listTtl`, `listScope`: how long, and by whom, a listing may be cached at 2026-07-28. Default not at all, private.
 * - `maxProgressBacklog`: behind how many unsent progress notifications of one request the latest replaces the others.
 *   Default 64.
 */
export interface Settings {
  readonly abandonAfter: Duration.Input
  readonly maxRequests: number
  readonly maxParked: number
  readonly maxParkedPerSession: number
  readonly removalGrace: Duration.Input
  readonly shutdownGrace: Duration.Input
  readonly sessionIdleTimeout: Duration.Input
  readonly maxSessions: number
  readonly sessionPerPrincipal: boolean
  readonly maxRunning: number
  readonly maxRunningPerSession: number
  readonly maxQueued: number
  readonly maxQuestions: number
  readonly maxJsonDepth: number
  readonly receiveTimeout: Duration.Input
  readonly maxBodyBytes: number
  readonly maxResultBytes: number
  readonly showDefects: boolean
  readonly nullAsAbsent: boolean
  readonly toolsPerPage: number
  readonly listTtl: Duration.Input
  readonly listScope: "private" | "public"
  readonly maxProgressBacklog: number
}

/** The defaults (`DefaultAbandonAfter` and `DefaultMaxRequests` of the Go package are members). */
export const defaults: Settings = {
  abandonAfter: "30 minutes",
  maxRequests: 10,
  maxParked: 10_000,
  maxParkedPerSession: 100,
  removalGrace: "5 seconds",
  shutdownGrace: "5 seconds",
  sessionIdleTimeout: "30 minutes",
  maxSessions: 1_000,
  sessionPerPrincipal: false,
  maxRunning: 1_000,
  maxRunningPerSession: 100,
  maxQueued: 1_000,
  maxQuestions: 100,
  maxJsonDepth: 128,
  receiveTimeout: "30 seconds",
  maxBodyBytes: 4 * 1024 * 1024,
  maxResultBytes: 16 * 1024 * 1024,
  showDefects: false,
  nullAsAbsent: false,
  toolsPerPage: 1_000,
  listTtl: 0,
  listScope: "private",
  maxProgressBacklog: 64
}

/** The reference that holds the settings. */
export const Settings: Context.Reference<Settings> = Context.Reference<Settings>("@agenttool/server/Settings", {
  defaultValue: () => defaults
})

/**
 * Settings with the members that are given over others, and the defaults where a value stands for its default.
 *
 * @example
 * ```ts
 * import { Settings } from "@agenttool/server"
 *
 * Settings.make({ abandonAfter: "5 minutes" })
 * ```
 */
export const make = (options: Partial<Settings>, others: Settings = defaults): Settings => {
  const given = Object.fromEntries(
    Object.entries(options).filter(([key, value]) => value !== undefined && Object.hasOwn(defaults, key))
  )
  const settings: Settings = { ...others, ...given }
  return {
    ...settings,
    abandonAfter: Duration.toMillis(settings.abandonAfter) > 0 ? settings.abandonAfter : defaults.abandonAfter,
    maxRequests: settings.maxRequests === 0 ? defaults.maxRequests : settings.maxRequests,
    toolsPerPage: settings.toolsPerPage >= 1 ? Math.floor(settings.toolsPerPage) : defaults.toolsPerPage
  }
}
