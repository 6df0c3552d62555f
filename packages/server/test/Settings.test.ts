/**
 * Settings: defaults, what stands for them, and where they are taken from.
 */
import { Elicitor, Tool } from "@agenttool/core"
import { McpServer, Settings } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { asked, leftOf, request, silent, start } from "./processes.ts"

describe("settings", () => {
  it("M84: without any, each has its default", () => {
    assert.deepStrictEqual(Settings.make({}), Settings.defaults)
    const { abandonAfter, listTtl, removalGrace, sessionIdleTimeout, shutdownGrace, ...rest } = Settings.defaults
    assert.deepStrictEqual(
      [abandonAfter, sessionIdleTimeout, removalGrace, shutdownGrace, listTtl].map((time) => Duration.toSeconds(time)),
      [1_800, 1_800, 5, 5, 0]
    )
    assert.deepInclude(rest, {
      maxRequests: 10,
      maxParked: 10_000,
      maxParkedPerSession: 100,
      maxSessions: 1_000,
      maxBodyBytes: 4 * 2 ** 20,
      maxResultBytes: 16 * 2 ** 20,
      showDefects: false,
      nullAsAbsent: false,
      listScope: "private",
      maxProgressBacklog: 64
    })
  })

  it("M57, M58: zero is the default; a negative time too, a negative number of requests is no limit", () => {
    for (const abandonAfter of [0, -1, "0 seconds", Duration.zero, "-1 minutes"] as ReadonlyArray<Duration.Input>) {
      assert.strictEqual(Settings.make({ abandonAfter }).abandonAfter, "30 minutes")
    }
    assert.strictEqual(Settings.make({ abandonAfter: 1 }).abandonAfter, 1)
    assert.strictEqual(Settings.make({ maxRequests: 0 }).maxRequests, 10)
    assert.strictEqual(Settings.make({ maxRequests: -1 }).maxRequests, -1)
  })

  it("M84: what is left undefined, or is no setting, changes nothing", () => {
    const options = { maxRequests: undefined, abandonAfter: undefined, name: "demo", toString: 7 }
    assert.deepStrictEqual(Settings.make(options as unknown as Partial<Settings.Settings>), Settings.defaults)
    const others = Settings.make({ maxRequests: 3, showDefects: true })
    assert.deepStrictEqual(Settings.make({ showDefects: false }, others), { ...Settings.defaults, maxRequests: 3 })
  })

  it.effect("M84: of a layer win over those around it, and the others around it hold", () =>
    Effect.gen(function* () {
      const seen = Tool.make("seen", {
        execute: () =>
          Effect.map(Effect.service(Settings.Settings), ({ maxParked, maxRequests }) => `${maxRequests} ${maxParked}`)
      })
      const context = yield* McpServer.layerTest({ maxRequests: 5, registrations: McpServer.tools(seen) }).pipe(
        Layer.provide(Layer.succeed(Settings.Settings, Settings.make({ maxRequests: 3, maxParked: 7 }))),
        Layer.build
      )
      const client = Context.get(context, McpServer.TestClient)
      const { content } = yield* Effect.promise(() => client.callTool({ name: "seen", arguments: {} }))
      assert.deepStrictEqual(content, [{ type: "text", text: "5 7" }])
    })
  )

  it.effect("M58: a time without an end is none: nobody is abandoned", () =>
    Effect.gen(function* () {
      const tool = Tool.make("ask", { execute: () => Elicitor.confirm("?") })
      const process = yield* start([tool], { settings: { abandonAfter: Duration.infinity } })
      asked(yield* process.calls.start(request("ask"), silent))
      yield* TestClock.adjust("365 days")
      yield* leftOf(process, { attached: 0, parked: 1, fibers: 1 })
      yield* process.close
    })
  )
})
