/**
 * What the state of a parked call looks like: a name, unguessable, that says nothing of the call (M63).
 *
 * The default is 32 random hex digits and a tag keyed by a secret of the process, so that a state that was issued here
 * and is spent is told from one that never was ours, without a memory that grows (M55). Nothing else parses a state.
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** What a state of ours says to whoever issued it: nothing by default. */
export interface StateName {
  readonly runId?: string
  readonly round?: number
  readonly owner?: string
}

/** Issues states, and recognises its own: none for a state that was never issued here. */
export interface StateNamesService {
  readonly issue: (runId: string, round: number) => string
  readonly read: (state: string) => Option.Option<StateName>
}

const digits = 32

const tagOf = (key: string | Uint8Array, name: string): string =>
  createHmac("sha256", key).update(name).digest("hex").slice(0, digits)

// A character of a stranger's text may be more than one byte.
const sameText = (left: string, right: string): boolean => {
  const [a, b] = [Buffer.from(left), Buffer.from(right)]
  return a.byteLength === b.byteLength && timingSafeEqual(a, b)
}

/** States tagged with a key. With one key in several processes, each recognises the others' as spent. */
export const tagged = (key: string | Uint8Array): StateNamesService => ({
  issue: () => {
    const name = randomBytes(digits / 2).toString("hex")
    return name + tagOf(key, name)
  },
  read: (state) => {
    if (state.length !== 2 * digits) return Option.none()
    const name = state.slice(0, digits)
    return sameText(state.slice(digits), tagOf(key, name)) ? Option.some({}) : Option.none()
  }
})

/** The reference. Its default has a key of this process alone. */
export const StateNames: Context.Reference<StateNamesService> = Context.Reference<StateNamesService>(
  "@agenttool/server/StateNames",
  { defaultValue: () => tagged(randomBytes(32)) }
)

/**
 * Takes the key from a `Config`, so that it outlives a restart: clients that come back to a call that is gone then hear
 * "call the tool again" instead of a protocol error. Without a value the key stays one of this process alone; 32 random
 * bytes or more make a good one.
 *
 * @example
 * ```ts
 * import { StateNames } from "@agenttool/server"
 * import { Config } from "effect"
 *
 * const layer = StateNames.layerConfig(Config.Redacted("MCP_STATE_KEY"))
 * ```
 */
export const layerConfig = (key: Config.Config<Redacted.Redacted<string>>): Layer.Layer<never, Config.ConfigError> =>
  Layer.effect(
    StateNames,
    Effect.map(Config.option(key), (secret) =>
      Option.isSome(secret) && Redacted.value(secret.value) !== ""
        ? tagged(Redacted.value(secret.value))
        : tagged(randomBytes(32))
    )
  )
