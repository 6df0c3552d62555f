/**
 * Every setting from Effect's `Config`: from environment variables, unless the app installs another `ConfigProvider`.
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Settings from "./Settings.ts"

type Configs = { readonly [Name in keyof Settings.Settings]: Config.Config<Settings.Settings[Name]> }

/** The variable of each setting. */
export const names: { readonly [Name in keyof Settings.Settings]: string } = {
  abandonAfter: "MCP_ABANDON_AFTER",
  maxRequests: "MCP_MAX_REQUESTS",
  maxParked: "MCP_MAX_PARKED",
  maxParkedPerSession: "MCP_MAX_PARKED_PER_SESSION",
  removalGrace: "MCP_REMOVAL_GRACE",
  shutdownGrace: "MCP_SHUTDOWN_GRACE",
  sessionIdleTimeout: "MCP_SESSION_IDLE_TIMEOUT",
  maxSessions: "MCP_MAX_SESSIONS",
  sessionPerPrincipal: "MCP_SESSION_PER_PRINCIPAL",
  maxRunning: "MCP_MAX_RUNNING",
  maxRunningPerSession: "MCP_MAX_RUNNING_PER_SESSION",
  maxQueued: "MCP_MAX_QUEUED",
  maxQuestions: "MCP_MAX_QUESTIONS",
  maxJsonDepth: "MCP_MAX_JSON_DEPTH",
  receiveTimeout: "MCP_RECEIVE_TIMEOUT",
  maxBodyBytes: "MCP_MAX_BODY_BYTES",
  maxResultBytes: "MCP_MAX_RESULT_BYTES",
  showDefects: "MCP_SHOW_DEFECTS",
  nullAsAbsent: "MCP_NULL_AS_ABSENT",
  toolsPerPage: "MCP_TOOLS_PER_PAGE",
  listTtl: "MCP_LIST_TTL",
  listScope: "MCP_LIST_SCOPE",
  maxProgressBacklog: "MCP_MAX_PROGRESS_BACKLOG"
}

// What parses may be nonsense all the same: a server that may run no calls, say.
const atLeast = (minimum: number, name: string): Config.Config<number> =>
  Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum)), name)

const notNegative = (name: string): Config.Config<Duration.Duration> =>
  Config.schema(
    Schema.DurationFromString.check(
      Schema.makeFilter((duration) => Duration.toMillis(duration) >= 0 || "Expected a duration that is not negative")
    ),
    name
  )

const positive = (name: string): Config.Config<Duration.Duration> =>
  Config.schema(
    Schema.DurationFromString.check(
      Schema.makeFilter((duration) => Duration.toMillis(duration) > 0 || "Expected a duration longer than nothing")
    ),
    name
  )

// An ordinary request of 2026-07-28 is six levels deep.
const leastDepth = 8

const configs: Configs = {
  // Zero and less stand for the default.
  abandonAfter: Config.Duration(names.abandonAfter),
  maxRequests: Config.Int(names.maxRequests),
  maxParked: atLeast(1, names.maxParked),
  maxParkedPerSession: atLeast(1, names.maxParkedPerSession),
  removalGrace: notNegative(names.removalGrace),
  shutdownGrace: notNegative(names.shutdownGrace),
  sessionIdleTimeout: positive(names.sessionIdleTimeout),
  maxSessions: atLeast(1, names.maxSessions),
  sessionPerPrincipal: Config.Boolean(names.sessionPerPrincipal),
  maxRunning: atLeast(1, names.maxRunning),
  maxRunningPerSession: atLeast(1, names.maxRunningPerSession),
  maxQueued: atLeast(0, names.maxQueued),
  maxQuestions: atLeast(1, names.maxQuestions),
  maxJsonDepth: atLeast(leastDepth, names.maxJsonDepth),
  receiveTimeout: positive(names.receiveTimeout),
  maxBodyBytes: atLeast(1, names.maxBodyBytes),
  maxResultBytes: atLeast(1, names.maxResultBytes),
  showDefects: Config.Boolean(names.showDefects),
  nullAsAbsent: Config.Boolean(names.nullAsAbsent),
  toolsPerPage: atLeast(1, names.toolsPerPage),
  listTtl: notNegative(names.listTtl),
  listScope: Config.Literals(["private", "public"], names.listScope),
  maxProgressBacklog: atLeast(1, names.maxProgressBacklog)
}

/**
 * Reads the variables that are set; the others keep what is set around, or the default. A value that is none fails with
 * one error that names its variable. Members that a transport layer is given win.
 */
export const layer: Layer.Layer<never, Config.ConfigError> = Layer.effect(
  Settings.Settings,
  Effect.gen(function* () {
    const around = yield* Settings.Settings
    const set: Partial<Record<keyof Settings.Settings, unknown>> = {}
    for (const [name, config] of Object.entries(configs)) {
      const value = yield* Config.option<unknown>(config)
      if (Option.isSome(value)) set[name as keyof Settings.Settings] = value.value // the names are those of the table
    }
    // Each member was read by the config of its own type.
    return Settings.make(set as Partial<Settings.Settings>, around)
  })
)
