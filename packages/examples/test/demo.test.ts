import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "./programs.ts"

const eras = ["2026-07-28", "2025-11-25"] as const

describe("the demo", () => {
  it.live(
    "shows both transports in both eras, ends with code 0, and leaves no process behind",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo")
        assert.strictEqual(yield* demo.exit, 0, demo.output())
        const shown = demo.output()
        for (const era of eras) {
          assert.include(shown, `stdio, ${era}`)
          assert.include(shown, `HTTP, ${era}`)
          assert.isAtLeast(shown.split(`speaks ${era}`).length, 3, "once over each transport")
        }
        assert.lengthOf(shown.match(/result │ Deployed build-42 to staging\./g) ?? [], 4)
        // By now: it has waited for the servers that it has started.
        yield* demo.gone
      }),
    { timeout: 90_000 }
  )
})
