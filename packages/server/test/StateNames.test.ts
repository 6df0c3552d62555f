/**
 * What states look like, and which of them are known again.
 */
import { StateNames } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Config, ConfigProvider, Effect, Layer, Option, Schema } from "effect"

const hex = /^[0-9a-f]{64}$/

/** The names of a server that is built now. */
const current = Effect.service(StateNames.StateNames)

const withKey = (key: string) =>
  Effect.provide(
    current,
    StateNames.layerConfig(Config.Redacted("MCP_STATE_KEY")).pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ MCP_STATE_KEY: key })))
    )
  )

describe("the default names of states", () => {
  it.effect("M63: are random digits and a tag, say nothing of the call, and are never the same", () =>
    Effect.gen(function* () {
      const { issue, read } = yield* current
      const states = new Set(Array.from({ length: 1_000 }, () => issue("run", 1)))
      assert.strictEqual(states.size, 1_000)
      const randoms = new Set(Array.from(states, (state) => state.slice(0, 32)))
      assert.strictEqual(randoms.size, 1_000)
      for (const state of states) {
        assert.match(state, hex)
        assert.deepStrictEqual(read(state), Option.some({}))
      }
    })
  )

  it.effect("M55: that were not issued here are none, however like one they look", () =>
    Effect.gen(function* () {
      const { issue, read } = yield* current
      const state = issue("run", 1)
      const other = StateNames.tagged("another key").issue("run", 1)
      for (const forged of [
        "",
        "0",
        other,
        state.toUpperCase(),
        ` ${state}`,
        `${state}0`,
        state.slice(0, 63),
        state.slice(0, 32),
        state.slice(0, 32) + other.slice(32),
        other.slice(0, 32) + state.slice(32),
        state.slice(32) + state.slice(0, 32),
        "0".repeat(64),
        "é".repeat(64),
        "\u0000".repeat(64)
      ]) {
        assert.isTrue(Option.isNone(read(forged)), forged)
      }
    })
  )

  it.prop(
    "M55: with any one character changed are none",
    [
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 63 }))),
      Arbitrary.schema(Schema.String)
    ],
    ([at, other]) => {
      const { issue, read } = StateNames.tagged("key")
      const state = issue("run", 1)
      const changed = state.slice(0, at) + other.slice(0, 1) + state.slice(at + 1)
      assert.strictEqual(Option.isSome(read(changed)), changed === state)
    }
  )

  it.effect("M55: with a key from the configuration outlive the process, and only with that key", () =>
    Effect.gen(function* () {
      const [before, after, others] = [yield* withKey("secret"), yield* withKey("secret"), yield* withKey("other")]
      const state = before.issue("run", 1)
      assert.isTrue(Option.isSome(after.read(state)))
      assert.isTrue(Option.isNone(others.read(state)))
      assert.isTrue(Option.isNone((yield* current).read(state)))
    })
  )

  it.effect("M55: have a key of this layer alone where none is configured, or an empty one", () =>
    Effect.gen(function* () {
      const withKey = (env: Record<string, string>) =>
        Effect.provide(
          current,
          StateNames.layerConfig(Config.Redacted("MCP_STATE_KEY")).pipe(
            Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord(env)))
          )
        )
      for (const env of [{}, { MCP_STATE_KEY: "" }]) {
        const [one, other] = [yield* withKey(env), yield* withKey(env)]
        const state = one.issue("run", 1)
        assert.isTrue(Option.isSome(one.read(state)))
        assert.isTrue(Option.isNone(other.read(state)))
      }
    })
  )
})
