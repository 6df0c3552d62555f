/**
 * Settings from the environment: every variable is read, a wrong value says which one it is, and options win.
 */
import { Tool } from "@agenttool/core"
import { McpServer, Settings } from "@agenttool/server"
import * as SettingsConfig from "@agenttool/server/SettingsConfig"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Context, Duration, Effect, Layer, type Scope } from "effect"
import { readFileSync } from "node:fs"

type Name = keyof Settings.Settings

const withEnv = (env: Readonly<Record<string, string>>) => ConfigProvider.layer(ConfigProvider.fromEnvRecord(env))

const read = (
  env: Readonly<Record<string, string>>,
  around: Layer.Layer<never> = Layer.empty
): Effect.Effect<Settings.Settings, Config.ConfigError, Scope.Scope> =>
  Effect.map(Layer.build(SettingsConfig.layer.pipe(Layer.provide(Layer.merge(withEnv(env), around)))), (context) =>
    Context.get(context, Settings.Settings)
  )

const messageOf = (env: Readonly<Record<string, string>>) =>
  Effect.matchEffect(read(env), {
    onSuccess: () => Effect.die(new Error(`accepted: ${JSON.stringify(env)}`)),
    onFailure: (error) => Effect.succeed(String(error))
  })

/** For each setting a value that is not its default, and what it reads as. */
const samples: { readonly [Key in Name]: readonly [text: string, value: Settings.Settings[Key]] } = {
  abandonAfter: ["5 minutes", Duration.minutes(5)],
  maxRequests: ["-1", -1],
  maxParked: ["11", 11],
  maxParkedPerSession: ["12", 12],
  removalGrace: ["0 seconds", Duration.zero],
  shutdownGrace: ["250 millis", Duration.millis(250)],
  sessionIdleTimeout: ["1 hour", Duration.hours(1)],
  maxSessions: ["13", 13],
  sessionPerPrincipal: ["true", true],
  maxRunning: ["14", 14],
  maxRunningPerSession: ["15", 15],
  maxQueued: ["0", 0],
  maxQuestions: ["16", 16],
  maxJsonDepth: ["17", 17],
  receiveTimeout: ["18 seconds", Duration.seconds(18)],
  maxBodyBytes: ["1048576", 1_048_576],
  maxResultBytes: ["19", 19],
  showDefects: ["yes", true],
  nullAsAbsent: ["1", true],
  toolsPerPage: ["20", 20],
  listTtl: ["1 minute", Duration.minutes(1)],
  listScope: ["public", "public"],
  maxProgressBacklog: ["21", 21]
}

const settingNames = Object.keys(Settings.defaults) as ReadonlyArray<Name>

/** What parses, and is nonsense all the same. */
const nonsense: { readonly [Key in Name]?: ReadonlyArray<string> } = {
  maxParked: ["0", "-1"],
  maxParkedPerSession: ["0", "-1"],
  removalGrace: ["-1 seconds"],
  shutdownGrace: ["-1 seconds"],
  sessionIdleTimeout: ["0 seconds", "-1 seconds"],
  maxSessions: ["0", "-1"],
  maxRunning: ["0", "-1"],
  maxRunningPerSession: ["0", "-1"],
  maxQueued: ["-1"],
  maxQuestions: ["0", "-1"],
  // An ordinary request of 2026-07-28 is six levels deep.
  maxJsonDepth: ["0", "-1", "7"],
  receiveTimeout: ["0 seconds", "-1 seconds"],
  maxBodyBytes: ["0", "-1"],
  maxResultBytes: ["0", "-1"],
  toolsPerPage: ["0", "-1"],
  listTtl: ["-1 seconds"],
  maxProgressBacklog: ["0", "-1"]
}

describe("settings from variables", () => {
  it("M84: every setting has a variable of its own", () => {
    assert.sameMembers(Object.keys(SettingsConfig.names), [...settingNames])
    const variables = Object.values(SettingsConfig.names)
    assert.lengthOf(new Set(variables), variables.length)
    for (const variable of variables) assert.match(variable, /^MCP_[A-Z]+(_[A-Z]+)*$/)
  })

  it.effect("M84: each is read, alone and with all the others", () =>
    Effect.gen(function* () {
      const all: Record<string, string> = {}
      for (const name of settingNames) {
        const [text, value] = samples[name]
        const env = { [SettingsConfig.names[name]]: text }
        assert.deepStrictEqual(yield* read(env), { ...Settings.defaults, [name]: value })
        assert.notDeepEqual(value, Settings.defaults[name])
        Object.assign(all, env)
      }
      const expected = Object.fromEntries(settingNames.map((name) => [name, samples[name][1]]))
      assert.deepStrictEqual<unknown>(yield* read(all), expected)
    })
  )

  it.effect("M84: those that are not set, or empty, keep what is set around, or the default", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read({}), Settings.defaults)
      const empty = Object.fromEntries(Object.values(SettingsConfig.names).map((variable) => [variable, ""]))
      assert.deepStrictEqual(yield* read(empty), Settings.defaults)
      const around = Layer.succeed(Settings.Settings, Settings.make({ maxRunning: 3, maxQueued: 4 }))
      assert.deepStrictEqual(
        yield* read({ MCP_MAX_RUNNING: "5" }, around),
        Settings.make({ maxRunning: 5, maxQueued: 4 })
      )
    })
  )

  it.effect("M58, M57: zero stands for the default where the contract says so", () =>
    Effect.gen(function* () {
      const zero = yield* read({ MCP_ABANDON_AFTER: "0 seconds", MCP_MAX_REQUESTS: "0" })
      assert.deepStrictEqual([zero.abandonAfter, zero.maxRequests], ["30 minutes", 10])
    })
  )

  it.effect("M84: a value that is none is one error that names the variable", () =>
    Effect.gen(function* () {
      for (const name of settingNames) {
        const variable = SettingsConfig.names[name]
        for (const text of ["nonsense", "1.5.2", "{}"]) {
          const message = yield* messageOf({ [variable]: text })
          assert.include(message, variable)
          for (const other of Object.values(SettingsConfig.names)) {
            if (!variable.startsWith(other)) assert.notInclude(message, other)
          }
        }
      }
    })
  )

  it.effect("M84: so is one that parses and is nonsense", () =>
    Effect.gen(function* () {
      for (const [name, texts] of Object.entries(nonsense)) {
        const variable = SettingsConfig.names[name as Name]
        for (const text of texts) assert.include(yield* messageOf({ [variable]: text }), variable, text)
      }
    })
  )
})

describe("a server with settings from variables", () => {
  const registrations = McpServer.tools(
    ...["a", "b", "c"].map((name) => Tool.make(name, { execute: () => Effect.succeed(name) }))
  )
  const pageSize = (options: Partial<Settings.Settings>, env: Readonly<Record<string, string>>) =>
    Effect.gen(function* () {
      const client = yield* McpServer.TestClient
      const { nextCursor, tools } = yield* Effect.promise(() => client.request({ method: "tools/list" }))
      return [tools.length, nextCursor === undefined]
    }).pipe(
      Effect.provide(
        McpServer.layerTest({ registrations, ...options }).pipe(
          Layer.provide(McpServer.layerConfig),
          Layer.provide(withEnv(env))
        )
      )
    )

  it.effect("M84: has them, and its own options win", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* pageSize({}, {}), [3, true])
      assert.deepStrictEqual(yield* pageSize({}, { MCP_TOOLS_PER_PAGE: "1" }), [1, false])
      assert.deepStrictEqual(yield* pageSize({ toolsPerPage: 2 }, { MCP_TOOLS_PER_PAGE: "1" }), [2, false])
    })
  )

  it.effect("M84: does not start with a wrong one", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(pageSize({}, { MCP_TOOLS_PER_PAGE: "0" }))
      assert.instanceOf(error, Config.ConfigError)
      assert.include(String(error), "MCP_TOOLS_PER_PAGE")
    })
  )
})

describe("docs/operations.md", () => {
  const page = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8")

  it("M84: has a row for every setting, with its variable and its default", () => {
    const inWords = (value: unknown): string =>
      typeof value === "number"
        ? value === 4 * 1024 * 1024
          ? "4 MiB"
          : value === 16 * 1024 * 1024
            ? "16 MiB"
            : value.toLocaleString("en")
        : value === false
          ? "no"
          : String(value)
    const rows = page.split("\n").filter((line) => line.startsWith("| `MCP_"))
    for (const name of settingNames) {
      const start = `| \`${SettingsConfig.names[name]}\` | \`${name}\` | `
      const [row, ...more] = rows.filter((line) => line.startsWith(start))
      assert.isDefined(row, start)
      assert.lengthOf(more, 0)
      assert.strictEqual(
        row.slice(start.length).split(" |")[0],
        name === "listTtl" ? "none" : inWords(Settings.defaults[name])
      )
    }
    assert.lengthOf(rows, settingNames.length + 1) // and the key of states, which is no setting
  })
})
