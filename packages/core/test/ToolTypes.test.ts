/**
 * What the compiler knows of a tool. The laws that a program breaks by not compiling are in functions that nobody calls;
 * a law that no longer holds is an error of the type check.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { expectTypeOf } from "vitest"
import * as Executor from "@agenttool/core/Executor"
import type * as ExecutorError from "@agenttool/core/ExecutorError"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import type * as ToolError from "@agenttool/core/ToolError"
import type * as ToolResult from "@agenttool/core/ToolResult"

class Db extends Context.Service<Db, { readonly size: number }>()("test/Db") {}
class Http extends Context.Service<Http, string>()("test/Http") {}
class NoSuchCity extends Schema.TaggedError<NoSuchCity>()("NoSuchCity", { city: Schema.String }) {}
class NoDb extends Schema.TaggedError<NoDb>()("NoDb", {}) {}

/** Needs a database, its call and a scope, and may fail. */
const find = Tool.make("find", {
  parameters: Schema.Struct({ city: Schema.String, at: Schema.optionalKey(Schema.DateFromString) }),
  success: Schema.Struct({ found: Schema.DateFromString }),
  execute: Effect.fnUntraced(function* ({ at, city }) {
    const { size } = yield* Db
    const { id } = yield* ToolCall.current
    yield* Effect.acquireRelease(Progress.report(id), () => Effect.void)
    if (city.length > size) return yield* new NoSuchCity({ city })
    return { found: at ?? new Date(0) }
  })
})
type Args = { readonly city: string; readonly at?: string }
type Found = { readonly found: Date }

const database = Layer.succeed(Db, { size: 4 })

describe("the types of a tool", () => {
  it.effect("what it fails with, what it needs, its arguments and its value are inferred", () =>
    Effect.gen(function* () {
      expectTypeOf(find).toEqualTypeOf<Tool.Tool<NoSuchCity, Db | ToolCall.ToolCall | Scope.Scope, Args, Found>>()
      expectTypeOf<Tool.Services<typeof find>>().toEqualTypeOf<Db | ToolCall.ToolCall | Scope.Scope>()
      expectTypeOf<Tool.Requirements<typeof find>>().toEqualTypeOf<Db>()

      const plain = Tool.make("plain", { execute: () => Effect.succeed("") })
      expectTypeOf(plain).toEqualTypeOf<Tool.Tool<never, never, {}, never>>()
      const raw = Tool.raw("raw", { execute: () => Effect.as(Effect.service(Db), 1) })
      expectTypeOf(raw).toEqualTypeOf<Tool.Tool<never, Db, Schema.JsonObject, never>>()

      // Running takes off what every runner provides, and nothing else.
      const running = Tool.run(find, { city: "Oslo" })
      expectTypeOf(running).toEqualTypeOf<
        Effect.Effect<ToolResult.ToolResult<Found>, NoSuchCity | ToolError.ToolError, Db>
      >()
      expectTypeOf(find.pipe(Tool.run({ city: "Oslo" }))).toEqualTypeOf(running)
      expectTypeOf(Tool.runCall(find, ToolCall.make({ id: "c", tool: "find" }))).toEqualTypeOf(running)
      const { value } = yield* Effect.provide(running, database)
      assert.strictEqual(value?.found.getTime(), 0)
    })
  )

  it.effect("arguments are those of the JSON", () =>
    Effect.gen(function* () {
      const at = "2026-07-28T00:00:00.000Z"
      const { output } = yield* Effect.provide(Tool.run(find, { city: "Oslo", at }), database)
      assert.strictEqual(output, `{"found":"${at}"}`)

      // @ts-expect-error: a member is missing
      const missing = () => Tool.run(find, {})
      // @ts-expect-error: the JSON of a date is a text
      const decoded = () => Tool.run(find, { city: "Oslo", at: new Date(0) })
      // @ts-expect-error: and so in a pipe
      const piped = () => find.pipe(Tool.run({ city: 1 }))
      assert.lengthOf([missing, decoded, piped], 3)
    })
  )

  it.effect("what is provided is taken off, and what the layer needs and fails with is added", () =>
    Effect.gen(function* () {
      const layer = Layer.effect(
        Db,
        Effect.flatMap(Effect.service(Http), (url) =>
          url === "" ? Effect.fail(new NoDb()) : Effect.succeed({ size: 4 })
        )
      )
      const provided = find.pipe(Tool.provide(layer))
      expectTypeOf(provided).toEqualTypeOf<
        Tool.Tool<NoSuchCity | NoDb, Http | ToolCall.ToolCall | Scope.Scope, Args, Found>
      >()
      expectTypeOf(Tool.provide(find, layer)).toEqualTypeOf(provided)
      const ready = provided.pipe(Tool.provideService(Http, "https://example.com"))
      expectTypeOf<Tool.Requirements<typeof ready>>().toEqualTypeOf<never>()
      expectTypeOf(Tool.provideService(provided, Http, "")).toEqualTypeOf(ready)
      assert.strictEqual((yield* Tool.run(ready, { city: "Oslo" })).value?.found.getTime(), 0)
      const broken = provided.pipe(Tool.provideService(Http, ""))
      assert.strictEqual((yield* Effect.flip(Tool.run(broken, { city: "Oslo" })))._tag, "NoDb")

      // @ts-expect-error: nobody has provided the database
      const unprovided = () => Effect.runPromise(Tool.run(find, { city: "Oslo" }))
      assert.isFunction(unprovided)
    })
  )

  it.effect("a failure schema fixes what a function may fail with", () =>
    Effect.gen(function* () {
      const strict = Tool.make("t", { failure: NoSuchCity, execute: () => new NoSuchCity({ city: "Atlantis" }) })
      expectTypeOf(strict).toEqualTypeOf<Tool.Tool<NoSuchCity, never, {}, never>>()
      assert.strictEqual((yield* Effect.flip(Tool.run(strict, {})))._tag, "NoSuchCity")
      const none = Tool.make("t", { failure: NoSuchCity, execute: () => Effect.succeed("fine") })
      expectTypeOf(none).toEqualTypeOf<Tool.Tool<never, never, {}, never>>()

      // @ts-expect-error: another failure
      const other = () => Tool.make("t", { failure: NoSuchCity, execute: () => Effect.fail("plain words") })
      assert.isFunction(other)
    })
  )

  it.effect("a success schema fixes what a function returns, and types the value of the result", () =>
    Effect.gen(function* () {
      const now = Tool.make("now", { success: Schema.DateFromString, execute: () => Effect.succeed(new Date(7)) })
      expectTypeOf(now).toEqualTypeOf<Tool.Tool<never, never, {}, Date>>()
      const { value } = yield* Tool.run(now, {})
      expectTypeOf(value).toEqualTypeOf<Date | undefined>()
      assert.strictEqual(value?.getTime(), 7)

      // Without one there is no typed value, whatever is returned.
      const untyped = Tool.make("untyped", { execute: () => Effect.succeed({ a: 1 }) })
      const result = yield* Tool.run(untyped, {})
      expectTypeOf(result.value).toEqualTypeOf<undefined>()
      assert.isUndefined(result.value)

      // @ts-expect-error: the encoded side, not the decoded one
      const encoded = () => Tool.make("t", { success: Schema.DateFromString, execute: () => Effect.succeed("1970") })
      const lacking = () =>
        // @ts-expect-error: a member is missing
        Tool.make("t", { success: Schema.Struct({ a: Schema.Int }), execute: () => Effect.succeed({}) })
      assert.lengthOf([encoded, lacking], 2)
    })
  )

  it.effect("a wrapper adds what it fails with and needs, and keeps arguments and value", () =>
    Effect.gen(function* () {
      const limited = find.pipe(
        Tool.wrap(
          (execute) => (call) => Effect.andThen(Effect.service(Http), Effect.timeout(execute(call), "1 second"))
        )
      )
      expectTypeOf<Tool.Requirements<typeof limited>>().toEqualTypeOf<Db | Http>()
      const running = Tool.run(limited, { city: "Oslo" })
      expectTypeOf<Effect.Error<typeof running>["_tag"]>().toEqualTypeOf<
        "NoSuchCity" | "TimeoutError" | "InvalidArguments" | "ResultNotEncodable"
      >()
      const { value } = yield* running.pipe(Effect.provide(database), Effect.provideService(Http, ""))
      expectTypeOf(value).toEqualTypeOf<Found | undefined>()
      assert.strictEqual(value?.found.getTime(), 0)
      // A wrapper may handle failures: they are gone from the type.
      const handled = find.pipe(
        Tool.wrap((execute) => (call) => Effect.catchTag(execute(call), "NoSuchCity", () => Effect.die("no such city")))
      )
      expectTypeOf(Tool.run(handled, { city: "" })).toEqualTypeOf<
        Effect.Effect<ToolResult.ToolResult<Found>, ToolError.ToolError, Db>
      >()
    })
  )

  it.effect("properties keep the type, and a claim adds what it needs", () =>
    Effect.gen(function* () {
      const set = find.pipe(
        Tool.strict,
        Tool.nullAsAbsent,
        Tool.sequential,
        Tool.barrier,
        Tool.resource("r"),
        Tool.flow({ sends: true }),
        Tool.annotate({ readOnly: true }),
        Tool.replay("safe"),
        Tool.confined(undefined),
        Tool.facts(undefined),
        Tool.closer(Effect.void)
      )
      expectTypeOf(set).toEqualTypeOf<typeof find>()
      const claiming = find.pipe(Tool.replay(() => Effect.as(Effect.service(Http), "safe" as const)))
      expectTypeOf<Tool.Requirements<typeof claiming>>().toEqualTypeOf<Db | Http>()
      const answer = Tool.replayOf(claiming, "{}").pipe(
        Effect.provideService(Http, ""),
        Effect.provideService(Db, { size: 1 }),
        Effect.provideService(ToolCall.ToolCall, ToolCall.make({ id: "c", tool: "find" })),
        Effect.scoped
      )
      assert.strictEqual(yield* answer, "safe")

      // @ts-expect-error: there is no such hint
      const hint = () => Tool.annotate(find, { harmless: true })
      // @ts-expect-error: an answer that is none of the three
      const replay = () => Tool.replay("maybe")
      assert.lengthOf([hint, replay], 2)
    })
  )

  it.effect("a batch needs what its tools need, and fails with what they fail with", () =>
    Effect.gen(function* () {
      const other = Tool.make("other", { execute: () => Effect.as(Effect.service(Http), "x") })
      const running = Executor.run([find, other], [{ id: "c", name: "find", arguments: '{"city":"Atlantis"}' }])
      expectTypeOf<Effect.Services<typeof running>>().toEqualTypeOf<Db | Http>()
      expectTypeOf<Effect.Error<typeof running>>().toEqualTypeOf<never>()
      const { results } = yield* running.pipe(Effect.provide(database), Effect.provideService(Http, ""))
      expectTypeOf(results).toEqualTypeOf<
        ReadonlyArray<
          Executor.Final<
            | NoSuchCity
            | ToolError.ToolError
            | ToolError.ToolDefect
            | ToolError.ToolFailure
            | ExecutorError.ExecutorError
          >
        >
      >()
      assert.strictEqual(results[0]?.result._tag, "Failure")
    })
  )
})
