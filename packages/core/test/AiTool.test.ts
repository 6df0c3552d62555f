import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Schema, Stream } from "effect"
import { LanguageModel, Prompt, type Response, Tool as Ai, Toolkit } from "effect/ai"
import * as AiTool from "@agenttool/core/AiTool"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as Executor from "@agenttool/core/Executor"
import * as Part from "@agenttool/core/Part"
import * as Progress from "@agenttool/core/Progress"
import * as Question from "@agenttool/core/Question"
import * as Recorder from "@agenttool/core/Recorder"
import * as RecorderMemory from "@agenttool/core/RecorderMemory"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"

class Weather extends Context.Service<Weather, { readonly at: (city: string) => Effect.Effect<string, NoStation> }>()(
  "test/Weather"
) {}
class NoStation extends Schema.TaggedError<NoStation>()("NoStation", { city: Schema.String }) {
  override get message() {
    return `no station in ${this.city}`
  }
}
const sunny = Layer.succeed(Weather, {
  at: (city) => (city === "Atlantis" ? Effect.fail(new NoStation({ city })) : Effect.succeed("sun"))
})

/** A model that answers each turn with the next of these parts, and keeps what it was shown. */
const scripted = (...turns: ReadonlyArray<ReadonlyArray<Response.PartEncoded>>) => {
  const seen: Array<LanguageModel.ProviderOptions> = []
  const next = (options: LanguageModel.ProviderOptions): Array<Response.PartEncoded> => {
    seen.push(options)
    return [...(turns[seen.length - 1] ?? [])]
  }
  const model = LanguageModel.make({
    generateText: (options) => Effect.sync(() => next(options)),
    streamText: (options) =>
      Stream.suspend(() => Stream.fromIterable(next(options) as Array<Response.StreamPartEncoded>))
  })
  return { seen, layer: Layer.effect(LanguageModel.LanguageModel, model) }
}
const calls = (name: string, params: unknown, id = "call_1"): Response.PartEncoded => ({
  type: "tool-call",
  id,
  name,
  params
})
const says = (text: string): Response.PartEncoded => ({ type: "text", text })

/** What one call of a tool gives, through the toolkit that a model would use. */
const handle = <T extends Tool.Any>(tool: T, parameters: unknown, id?: string) =>
  Effect.gen(function* () {
    const kit = yield* AiTool.toToolkit(tool)
    // A model may send anything, whatever the types say.
    return yield* Stream.runCollect(yield* kit.handle(tool.name, parameters as never, id))
  })
const lastOf = <T extends Tool.Any>(tool: T, parameters: unknown) =>
  Effect.map(handle(tool, parameters), (results) => {
    const last = results.at(-1)
    return { failed: last?.isFailure, encoded: last?.encodedResult, result: last?.result, model: last?.modelOutput }
  })

const weather = Tool.make("weather", {
  description: "Weather for a city",
  parameters: Schema.Struct({ city: Schema.String, days: Schema.optionalKey(Schema.Int) }),
  execute: ({ city, days }) =>
    Effect.map(
      Weather.use((service) => service.at(city)),
      (sky) => `${sky} in ${city} for ${days ?? 1}`
    )
})

describe("AiTool.toToolkit", () => {
  it.effect("a tool of ours runs in the loop of a language model", () =>
    Effect.gen(function* () {
      const { layer, seen } = scripted([calls("weather", { city: "Oslo", days: 2 })], [says("Sun, for two days.")])
      const program = Effect.gen(function* () {
        const toolkit = AiTool.toToolkit(weather)
        const first = yield* LanguageModel.generateText({ prompt: "Weather in Oslo?", toolkit })
        const prompt = Prompt.concat(Prompt.make("Weather in Oslo?"), Prompt.fromResponseParts(first.content))
        const second = yield* LanguageModel.generateText({ prompt, toolkit })
        return { results: first.toolResults, text: second.text }
      })
      // @ts-expect-error what the tool needs, the loop needs
      const untyped: Effect.Effect<unknown, unknown, LanguageModel.LanguageModel> = program
      assert.isDefined(untyped)
      const { results, text } = yield* program.pipe(Effect.provide(layer), Effect.provide(sunny))
      assert.deepStrictEqual(
        results.map((part) => [part.name, part.isFailure, part.encodedResult]),
        [["weather", false, "sun in Oslo for 2"]]
      )
      assert.strictEqual(text, "Sun, for two days.")
      // What the provider is given: the tool as we define it, and then its result.
      const shown = seen[0]?.tools[0]
      assert.isDefined(shown)
      assert.deepStrictEqual(Ai.getJsonSchema(shown), Tool.inputSchema(weather) as object)
      assert.strictEqual(Ai.getDescription(shown), "Weather for a city")
      const message = seen[1]?.prompt.content.at(-1)
      assert.include(JSON.stringify(message), "sun in Oslo for 2")
    })
  )

  it.effect("the loop streams progress as preliminary results, before the result", () =>
    Effect.gen(function* () {
      const steps = Tool.make("steps", {
        execute: () =>
          Effect.gen(function* () {
            yield* Progress.report({ message: "half way", progress: 1, total: 2 })
            yield* Progress.report("nearly")
            return "done"
          })
      })
      const { layer } = scripted([calls("steps", {}), { type: "finish", reason: "tool-calls", usage } as never])
      const parts = yield* LanguageModel.streamText({ prompt: "go", toolkit: AiTool.toToolkit(steps) }).pipe(
        Stream.runCollect,
        Effect.provide(layer)
      )
      assert.deepStrictEqual(
        parts.flatMap((part) => (part.type === "tool-result" ? [[part.preliminary, part.encodedResult]] : [])),
        [
          [true, "half way"],
          [true, "nearly"],
          [false, "done"]
        ]
      )
    })
  )

  it.effect("numbers of progress are in the details of the preliminary result", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", { execute: () => Progress.report({ progress: 1, total: 2 }) })
      const [first] = yield* handle(tool, {})
      assert.isTrue(ToolResult.isToolResult(first?.result))
      const info = Progress.infoOf(first?.result as ToolResult.ToolResult)
      assert.deepStrictEqual([info?.progress, info?.total], [1, 2])
    })
  )

  it.effect("arguments are checked by the tool itself, with its own words", () =>
    Effect.gen(function* () {
      const { encoded, failed, result } = yield* Effect.provide(lastOf(weather, { city: 3 }), sunny)
      assert.deepStrictEqual([failed, encoded], [true, "Error: invalid arguments: city: expected string, got 3"])
      assert.instanceOf((result as AiTool.CallFailed).failure, ToolError.InvalidArguments)
    })
  )

  it.effect("arguments of a supplied schema are held against it", () =>
    Effect.gen(function* () {
      const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
      const echo = Tool.raw("echo", { parameters, execute: (call) => Effect.succeed(call.arguments) })
      assert.strictEqual((yield* lastOf(echo, { n: 1 })).encoded, '{"n":1}')
      const refused = yield* lastOf(echo, { n: "x" })
      assert.isTrue(refused.failed)
      assert.match(String(refused.encoded), /^Error: invalid arguments: /)
    })
  )

  it.effect("C81: a call without arguments has an empty object", () =>
    Effect.gen(function* () {
      const echo = Tool.raw("echo", { execute: (call) => Effect.succeed(call.arguments) })
      assert.strictEqual((yield* lastOf(echo, undefined)).encoded, "{}")
    })
  )

  it.effect("a failure is a result that the model reads, and holds the tool's own failure", () =>
    Effect.gen(function* () {
      const { encoded, failed, result } = yield* Effect.provide(lastOf(weather, { city: "Atlantis" }), sunny)
      assert.deepStrictEqual([failed, encoded], [true, "Error: no station in Atlantis"])
      const failure = (result as AiTool.CallFailed).failure
      assert.instanceOf(failure, NoStation)
    })
  )

  it.effect("C105: a defect is a result too, with the contract's text", () =>
    Effect.gen(function* () {
      const panics = Tool.make("panics", { execute: () => Effect.die("oh no") })
      const { encoded, failed } = yield* lastOf(panics, {})
      assert.deepStrictEqual([failed, encoded], [true, 'Error: tool "panics" panicked: oh no'])
    })
  )

  it.effect("a failure that effect/ai has a meaning for is still the tool's own", () =>
    Effect.gen(function* () {
      const reads = Tool.make("reads", { execute: () => Schema.decodeUnknownEffect(Schema.Int)("x") })
      const { failed, result } = yield* lastOf(reads, {})
      assert.isTrue(failed)
      assert.isTrue(Schema.isSchemaError((result as AiTool.CallFailed).failure))
    })
  )

  it.effect("a structured value is JSON; its type and details stay beside it", () =>
    Effect.gen(function* () {
      const add = Tool.make("add", {
        parameters: Schema.Struct({ a: Schema.Int, b: Schema.Int }),
        success: Schema.Struct({ sum: Schema.Int }),
        execute: ({ a, b }) => Effect.succeed({ sum: a + b })
      })
      const kit = yield* AiTool.toToolkit(add)
      const results = yield* Stream.runCollect(yield* kit.handle("add", { a: 1, b: 2 }))
      assert.deepStrictEqual(results[0]?.encodedResult, { sum: 3 })
      const detailed = Tool.make("d", {
        execute: () => Effect.succeed(ToolResult.text("t", { details: 1, terminate: true }))
      })
      const { result } = yield* lastOf(detailed, {})
      assert.deepStrictEqual(result, ToolResult.text("t", { details: 1, terminate: true }))
    })
  )

  it.effect("parts reach the model as parts", () =>
    Effect.gen(function* () {
      const shows = Tool.make("shows", {
        execute: () =>
          Effect.succeed(
            ToolResult.parts([
              Part.text("a cat"),
              Part.imageData("image/png", "aGk="),
              Part.image("https://example.com/cat.png"),
              Part.file({ filename: "a.bin", data: "aGk=" }),
              Part.audio("audio/wav", "aGk="),
              Part.refusal("no"),
              { type: "novel", x: 1 }
            ])
          )
      })
      const { encoded, model } = yield* lastOf(shows, {})
      assert.strictEqual(encoded, "a cat")
      assert.deepStrictEqual(
        model?.map((part) =>
          part.type === "text" ? part.text : [part.mediaType, String(part.data), part.fileName ?? ""]
        ),
        [
          "a cat",
          ["image/png", "aGk=", ""],
          ["image/*", "https://example.com/cat.png", ""],
          ["application/octet-stream", "aGk=", "a.bin"],
          ["audio/wav", "aGk=", ""],
          "no",
          '{"type":"novel","x":1}'
        ]
      )
    })
  )

  it.effect("what a tool uses is taken from the context of the loop: a reference, a recorder, the call", () =>
    Effect.gen(function* () {
      const Tenant = Context.Reference<string>("test/Tenant", { defaultValue: () => "nobody" })
      const tool = Tool.make("t", {
        execute: () =>
          Effect.gen(function* () {
            yield* Recorder.write(ToolRecord.make("a:b", {}))
            const call = yield* ToolCall.current
            return `${yield* Tenant} ${call.id} ${call.tool}`
          })
      })
      const { layer } = scripted([calls("t", {}, "toolu_7")])
      const kit = yield* AiTool.toToolkit(tool).pipe(Effect.provideService(Tenant, "who built it"))
      const response = yield* LanguageModel.generateText({ prompt: "go", toolkit: kit }).pipe(
        Effect.provideService(Tenant, "acme"),
        Effect.provide(layer)
      )
      assert.strictEqual(response.toolResults[0]?.encodedResult, "acme toolu_7 t")
      assert.deepStrictEqual(
        (yield* RecorderMemory.entries).map((entry) => entry.call),
        ["toolu_7"]
      )
    }).pipe(Effect.provide(RecorderMemory.layer))
  )

  it.effect("a tool that asks still asks, and the loop waits for the answer", () =>
    Effect.gen(function* () {
      const deletes = Tool.make("deletes", {
        parameters: Schema.Struct({ path: Schema.String }),
        execute: ({ path }) =>
          Effect.map(Elicitor.confirm(`Delete ${path}?`), (yes) => (yes ? `${path} is gone` : `${path} was kept`))
      })
      const { layer } = scripted([calls("deletes", { path: "/tmp/x" })])
      const asked = yield* Deferred.make<string>()
      const answer = yield* Deferred.make<Question.Answer>()
      const waiting = Elicitor.layer({
        ask: ({ message }) => Effect.andThen(Deferred.succeed(asked, message), Deferred.await(answer))
      })
      const fiber = yield* LanguageModel.generateText({
        prompt: "tidy up",
        toolkit: AiTool.toToolkit(deletes)
      }).pipe(Effect.provide([layer, waiting]), Effect.forkChild)
      assert.strictEqual(yield* Deferred.await(asked), "Delete /tmp/x?")
      assert.isUndefined(fiber.pollUnsafe())
      yield* Deferred.succeed(answer, Question.accept({ confirm: true }))
      const response = yield* Fiber.join(fiber)
      assert.strictEqual(response.toolResults[0]?.encodedResult, "/tmp/x is gone")
      assert.strictEqual((yield* lastOf(deletes, { path: "/tmp/x" })).encoded, "/tmp/x was kept")
    })
  )

  it.effect("C87: calls without an id get one each", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", { execute: () => Effect.map(ToolCall.current, (call) => call.id) })
      const kit = yield* AiTool.toToolkit(tool)
      const id = Effect.flatMap(kit.handle("t", {}), Stream.runCollect)
      const [one, two] = [yield* id, yield* id]
      assert.notStrictEqual(one[0]?.encodedResult, two[0]?.encodedResult)
    })
  )

  it.effect("interrupting the loop interrupts the tool", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const released = yield* Deferred.make<void>()
      const tool = Tool.make("t", {
        execute: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.ensuring(Deferred.succeed(released, undefined))
          )
      })
      const fiber = yield* Effect.forkChild(handle(tool, {}))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* Deferred.isDone(released))
    })
  )

  it.effect("annotations that are stated are kept, and no other is made up", () =>
    Effect.gen(function* () {
      const plain = AiTool.toTool(Tool.make("t", { execute: () => Effect.void }))
      const hints = [Ai.Readonly, Ai.Destructive, Ai.Idempotent, Ai.OpenWorld]
      for (const hint of hints) assert.isUndefined(Context.getOrUndefined(plain.annotations, hint))
      assert.isUndefined(Context.getOrUndefined(plain.annotations, Ai.Title))
      assert.strictEqual(Ai.getStrictMode(plain), false)
      const Icon = Context.Reference<string>("test/Icon", { defaultValue: () => "none" })
      const stated = AiTool.toTool(
        weather.pipe(
          Tool.annotate({ title: "Weather", readOnly: true, destructive: false, idempotent: true, openWorld: false }),
          Tool.setting(Icon, "sun"),
          Tool.strict
        )
      )
      assert.deepStrictEqual(
        hints.map((hint) => Context.getOrUndefined(stated.annotations, hint)),
        [true, false, true, false]
      )
      assert.strictEqual(Context.getOrUndefined(stated.annotations, Ai.Title), "Weather")
      assert.strictEqual(Ai.getStrictMode(stated), true)
      assert.strictEqual(Context.get(stated.annotations, Icon), "sun")
    })
  )

  it.effect("C5: a tool without arguments shows the no-arguments schema", () =>
    Effect.sync(() => {
      const plain = AiTool.toTool(Tool.make("t", { execute: () => Effect.void }))
      assert.deepStrictEqual(Ai.getJsonSchema(plain), { type: "object", properties: {}, required: [] })
    })
  )

  it.effect("C12: two tools of one name are refused", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(AiTool.toToolkit(weather, weather))
      assert.isTrue(Exit.hasDies(exit))
      assert.include(String(exit), 'tool "weather": duplicate name')
    })
  )

  it.effect("results and failures survive being stored and read again", () =>
    Effect.gen(function* () {
      const tool = AiTool.toTool(weather)
      const success = Schema.toCodecJson(tool.successSchema)
      const again = (result: ToolResult.ToolResult<never>) =>
        Effect.flatMap(Schema.encodeEffect(success)(result), Schema.decodeEffect(success))
      assert.deepStrictEqual(yield* again(ToolResult.text("sun")), ToolResult.text("sun"))
      const failure = Schema.toCodecJson(tool.failureSchema)
      const failed = new AiTool.CallFailed({ message: "no station", failure: 1 })
      const text = yield* Schema.encodeEffect(failure)(failed)
      assert.strictEqual(text, "Error: no station")
      assert.strictEqual((yield* Schema.decodeEffect(failure)(text)).message, "no station")
    })
  )
})

const usage = {
  inputTokens: { total: 1, uncached: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

class Missing extends Schema.TaggedError<Missing>()("Missing", { key: Schema.String }) {}

const Lookup = Ai.make("lookup", {
  description: "Looks a key up",
  parameters: Schema.Struct({
    key: Schema.String,
    limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(7))),
    nested: Schema.optionalKey(Schema.Struct({ list: Schema.Array(Schema.Int) }))
  }),
  success: Schema.Struct({ at: Schema.DateFromString, limit: Schema.Int }),
  failure: Missing
})
const Ping = Ai.make("ping", { success: Schema.String })
const Remote = Ai.dynamic("remote", {
  description: "from elsewhere",
  parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"] },
  success: Schema.Unknown
})

const lookup = Effect.fnUntraced(function* ({ key, limit }: { readonly key: string; readonly limit: number }) {
  if (key === "gone") return yield* new Missing({ key })
  return { at: new Date(0), limit }
})

describe("AiTool.fromToolkit", () => {
  const Kit = Toolkit.make(Lookup, Ping, Remote)
  const layer = Kit.toLayer({ lookup, ping: () => Effect.succeed("pong"), remote: (q) => Effect.succeed({ echo: q }) })
  const tools = Effect.provide(Effect.map(Kit, AiTool.fromToolkit), layer)

  it.effect("a tool of effect/ai runs as one of ours, its value typed, its output JSON", () =>
    Effect.gen(function* () {
      const { lookup } = yield* tools
      const result = yield* Tool.run(lookup, { key: "a" })
      assert.strictEqual(result.output, '{"at":"1970-01-01T00:00:00.000Z","limit":7}')
      assert.deepStrictEqual(result.structured, { at: "1970-01-01T00:00:00.000Z", limit: 7 })
      const at: Date | undefined = result.value?.at
      assert.strictEqual(at?.getTime(), 0)
    })
  )

  it.effect("tools of effect/ai run as a batch, beside tools of ours", () =>
    Effect.gen(function* () {
      const { lookup, ping, remote } = yield* tools
      const outcome = yield* Executor.run(
        [lookup, ping, remote, weather],
        [
          { id: "c1", name: "ping" },
          { id: "c2", name: "lookup", arguments: '{"key":"gone"}' },
          { id: "c3", name: "remote", arguments: '{"q":"x"}' },
          { id: "c4", name: "weather", arguments: '{"city":"Oslo"}' },
          { id: "c5", name: "lookup", arguments: '{"key":1}' }
        ]
      )
      const texts = outcome.results.map((final) => ToolResult.textOf(Executor.rendered(final).output))
      assert.deepStrictEqual(texts.slice(0, 4), [
        "pong",
        'Error: {"_tag":"Missing","key":"gone"}',
        '{"echo":{"q":"x"}}',
        "sun in Oslo for 1"
      ])
      assert.match(texts[4] ?? "", /^Error: invalid arguments: key: /)
    }).pipe(Effect.provide(sunny))
  )

  it.effect("a text is the output as it is", () =>
    Effect.gen(function* () {
      const { ping } = yield* tools
      const result = yield* Tool.run(ping, {})
      assert.deepStrictEqual([result.output, result.value, result.structured], ["pong", "pong", "pong"])
    })
  )

  it.effect("nothing is the empty text", () =>
    Effect.gen(function* () {
      const kit = Toolkit.make(Ai.make("quiet"))
      const { quiet } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ quiet: () => Effect.void }))
      )
      assert.strictEqual((yield* Tool.run(quiet, {})).output, "")
      assert.isUndefined(quiet.success)
    })
  )

  it.effect("schema and description are kept, a raw schema byte for byte", () =>
    Effect.gen(function* () {
      const { lookup, ping, remote } = yield* tools
      assert.deepStrictEqual(lookup.parameters as object, Ai.getJsonSchema(Lookup))
      assert.strictEqual(lookup.description, "Looks a key up")
      assert.strictEqual(
        JSON.stringify(Tool.inputSchema(remote)),
        '{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}'
      )
      assert.deepStrictEqual(Tool.inputSchema(ping), { type: "object", properties: {}, required: [] })
      assert.deepStrictEqual(lookup.success?.required, ["at", "limit"])
    })
  )

  it.effect("every schema has an object at its root", () =>
    Effect.gen(function* () {
      class Person extends Schema.Class<Person>("Person")({ name: Schema.String }) {}
      const kit = Toolkit.make(
        Ai.make("class", { parameters: Person }),
        Ai.make("empty", { parameters: Schema.Struct({}) }),
        Ai.make("either", {
          parameters: Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ b: Schema.String })])
        }),
        Ai.make("pair", { parameters: Schema.Struct({ one: Person, two: Person }) }),
        Ai.dynamic("anything")
      )
      const quiet = () => Effect.void
      const made = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ class: quiet, empty: quiet, either: quiet, pair: quiet, anything: quiet }))
      )
      for (const tool of Object.values(made)) assert.strictEqual(Tool.inputSchema(tool).type, "object")
      assert.deepStrictEqual(made.class.parameters, {
        type: "object",
        properties: { name: { type: "string" } },
        required: ["name"],
        additionalProperties: true
      })
      assert.isUndefined(made.empty.parameters)
      assert.isDefined(made.pair.parameters?.$defs)
    })
  )

  it.effect("annotations that are set are kept, and defaults are not taken for statements", () =>
    Effect.gen(function* () {
      const Icon = Context.Reference<string>("test/Icon2", { defaultValue: () => "none" })
      const kit = Toolkit.make(
        Ping,
        Ai.make("marked")
          .annotate(Ai.Title, "Marked")
          .annotate(Ai.Readonly, false)
          .annotate(Ai.Idempotent, true)
          .annotate(Ai.Strict, true)
          .annotate(Icon, "star")
      )
      const { marked, ping } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ ping: () => Effect.succeed(""), marked: () => Effect.void }))
      )
      assert.deepStrictEqual(Tool.annotationsOf(ping), Option.none())
      assert.deepStrictEqual(
        Tool.annotationsOf(marked),
        Option.some({ title: "Marked", readOnly: false, idempotent: true })
      )
      assert.isTrue(Tool.isStrict(marked))
      assert.isFalse(Tool.isStrict(ping))
      assert.strictEqual(Tool.settingOf(marked, Icon), "star")
    })
  )

  it.effect("arguments that do not decode are invalid arguments, with their path", () =>
    Effect.gen(function* () {
      const { lookup } = yield* tools
      const run = (args: unknown) =>
        Effect.flip(Tool.runCall(lookup, ToolCall.fromValue({ id: "c", tool: "lookup", value: args })))
      const error = yield* run({ key: "a", nested: { list: [1, "x"] } })
      assert.instanceOf(error, ToolError.InvalidArguments)
      assert.match(Tool.failureText(lookup, error), /^invalid arguments: nested\.list\[1\]: \S.*$/)
      assert.match(Tool.failureText(lookup, yield* run({})), /^invalid arguments: key: \S.*$/)
      assert.strictEqual(Tool.failureText(lookup, yield* run([1])), "invalid arguments: expected a JSON object")
    })
  )

  it.effect("arguments of a raw schema are checked against it, which effect/ai does not do", () =>
    Effect.gen(function* () {
      const { remote } = yield* tools
      assert.strictEqual((yield* Tool.run(remote, { q: "x" })).output, '{"echo":{"q":"x"}}')
      const error = yield* Effect.flip(Tool.run(remote, { q: 1 }))
      assert.match(Tool.failureText(remote, error), /^invalid arguments: /)
    })
  )

  it.effect("C80: the text of the arguments is parsed once they are asked for", () =>
    Effect.gen(function* () {
      const { lookup } = yield* tools
      const run = (text: string) => Tool.runCall(lookup, ToolCall.make({ id: "c", tool: "lookup", arguments: text }))
      assert.include((yield* run('{"key":"a","limit":1}')).output as string, '"limit":1')
      assert.match(Tool.failureText(lookup, yield* Effect.flip(run("{"))), /^invalid arguments: not valid JSON: /)
    })
  )

  it.effect("a failure is the tool's own, in either failure mode", () =>
    Effect.gen(function* () {
      const { lookup } = yield* tools
      const thrown = yield* Effect.flip(Tool.run(lookup, { key: "gone" }))
      assert.deepStrictEqual(thrown, new Missing({ key: "gone" }))
      assert.strictEqual(Tool.failureText(lookup, thrown), '{"_tag":"Missing","key":"gone"}')
      const Returning = Ai.make("returning", { failure: Missing, failureMode: "return" })
      const kit = Toolkit.make(Returning)
      const { returning } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ returning: () => Effect.fail(new Missing({ key: "k" })) }))
      )
      assert.deepStrictEqual(yield* Effect.flip(Tool.run(returning, {})), new Missing({ key: "k" }))
      // `as never`: the type forbids the argument on purpose.
      const refused = yield* Effect.flip(Tool.run(returning, { extra: 1 } as never))
      assert.match(Tool.failureText(returning, refused), /^invalid arguments: extra: /)
    })
  )

  it.effect("a result that does not fit its schema is an encoding failure", () =>
    Effect.gen(function* () {
      for (const failureMode of ["error", "return"] as const) {
        const Wrong = Ai.make("wrong", { success: Schema.Int, failureMode })
        const kit = Toolkit.make(Wrong)
        const { wrong } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
          Effect.provide(kit.toLayer({ wrong: () => Effect.succeed(1.5) }))
        )
        const error = yield* Effect.flip(Tool.run(wrong, {}))
        assert.instanceOf(error, ToolError.ResultNotEncodable)
        assert.match(Tool.failureText(wrong, error), /^encode result: .+$/)
      }
    })
  )

  it.effect("C105: a defect is the tool's", () =>
    Effect.gen(function* () {
      const kit = Toolkit.make(Ping)
      const { ping } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ ping: () => Effect.die("oh no") }))
      )
      const defect = yield* Effect.catchDefect(Tool.run(ping, {}), Effect.succeed)
      assert.instanceOf(defect, ToolError.ToolDefect)
      assert.strictEqual(defect.message, 'tool "ping" panicked: oh no')
    })
  )

  it.effect("preliminary results are progress, parts for the model are the output", () =>
    Effect.gen(function* () {
      const Draw = Ai.make("draw", {
        success: Schema.Struct({ n: Schema.Int }),
        toModelOutput: ({ n }: { readonly n: number }) => [
          Prompt.textPart({ text: `drawing ${n}` }),
          Prompt.filePart({ mediaType: "image/png", data: "aGk=" }),
          Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([104, 105]) }),
          Prompt.filePart({ mediaType: "image/png", data: new URL("https://example.com/a.png") }),
          Prompt.filePart({ mediaType: "application/pdf", fileName: "a.pdf", data: "aGk=" }),
          Prompt.filePart({ mediaType: "application/pdf", data: new URL("https://example.com/a.pdf") })
        ]
      })
      const kit = Toolkit.make(Draw)
      const { draw } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ draw: (_, context) => Effect.as(context.preliminary({ n: 1 }), { n: 2 }) }))
      )
      const updates: Array<ToolResult.Output> = []
      const result = yield* Tool.run(draw, {}).pipe(
        Effect.provideService(Progress.Progress, {
          update: (update) => Effect.sync(() => void updates.push(update.output))
        })
      )
      assert.deepStrictEqual(updates, ['{"n":1}'])
      assert.deepStrictEqual(result.output, [
        Part.text("drawing 2"),
        Part.imageData("image/png", "aGk="),
        Part.imageData("image/png", "aGk="),
        Part.image("https://example.com/a.png"),
        Part.file({ filename: "a.pdf", data: "data:application/pdf;base64,aGk=" }),
        Part.file({ url: "https://example.com/a.pdf" })
      ])
      assert.deepStrictEqual([result.value, result.structured], [{ n: 2 }, { n: 2 }])
    })
  )

  describe("a tool that needs approval", () => {
    const ran: Array<string> = []
    const Wipe = Ai.make("wipe", {
      parameters: Schema.Struct({ disk: Schema.String }),
      success: Schema.String,
      needsApproval: true
    })
    const Careful = Ai.make("careful", {
      parameters: Schema.Struct({ disk: Schema.String }),
      success: Schema.String,
      needsApproval: ({ disk }) => Effect.succeed(disk === "sda")
    })
    const kit = Toolkit.make(Wipe, Careful)
    const wipe = ({ disk }: { readonly disk: string }) =>
      Effect.sync(() => {
        ran.push(disk)
        return "wiped"
      })
    const tools = Effect.map(kit, AiTool.fromToolkit).pipe(
      Effect.provide(kit.toLayer({ wipe, careful: wipe })),
      Effect.tap(() => Effect.sync(() => void ran.splice(0)))
    )

    it.effect("runs after a yes, and shows what it is asked to do", () =>
      Effect.gen(function* () {
        const { wipe } = yield* tools
        assert.strictEqual((yield* Tool.run(wipe, { disk: "sda" })).output, "wiped")
        const { questions } = yield* Elicitor.Transcript
        assert.deepStrictEqual(yield* questions, [{ message: 'Run wipe with {"disk":"sda"}?' }])
      }).pipe(Effect.provide(Elicitor.layerScripted([Question.accept(undefined)])))
    )

    it.effect("does not run after a no, or where nobody can be asked", () =>
      Effect.gen(function* () {
        const { careful, wipe } = yield* tools
        const refused = <T extends typeof wipe | typeof careful>(tool: T) =>
          Effect.map(Effect.flip(Tool.run(tool, { disk: "sda" })), (failure) => Tool.failureText(tool, failure))
        assert.strictEqual(yield* refused(wipe), "nobody approved the call")
        assert.strictEqual(yield* refused(careful), "nobody approved the call")
        const declining = Elicitor.layerScripted([Question.decline])
        assert.strictEqual(yield* Effect.provide(refused(wipe), declining), "the user declined the call")
        const broken = Elicitor.layerScripted([])
        assert.match(yield* Effect.provide(refused(wipe), broken), /^approval could not be asked for: /)
        assert.deepStrictEqual(ran, [])
      })
    )

    it.effect("is asked about only when it says so", () =>
      Effect.gen(function* () {
        const { careful } = yield* tools
        assert.strictEqual((yield* Tool.run(careful, { disk: "sdb" })).output, "wiped")
        const invalid = yield* Effect.flip(
          Tool.runCall(careful, ToolCall.fromValue({ id: "c", tool: "careful", value: { disk: 1 } }))
        )
        assert.match(Tool.failureText(careful, invalid), /^invalid arguments: disk: /)
        assert.deepStrictEqual(ran, ["sdb"])
      })
    )
  })

  it.effect("what a tool needs of its caller stays in its requirements", () =>
    Effect.gen(function* () {
      const Sky = Ai.make("sky", { parameters: Schema.Struct({ city: Schema.String }), success: Schema.String })
        .addDependency(Weather)
        .setFailure(NoStation)
      const kit = Toolkit.make(Sky)
      const { sky } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ sky: ({ city }) => Weather.use((service) => service.at(city)) }))
      )
      const run = Tool.run(sky, { city: "Oslo" })
      const typed: Effect.Effect<unknown, unknown, Weather> = run
      // @ts-expect-error the requirement is not satisfied yet
      const untyped: Effect.Effect<unknown, unknown> = run
      assert.isDefined(untyped)
      assert.isDefined(typed)
      assert.strictEqual((yield* Effect.provide(run, sunny)).output, "sun")
    })
  )

  it.effect("a tool that only its provider runs is left out", () =>
    Effect.gen(function* () {
      const Search = Ai.providerDefined({ id: "acme.search", customName: "Search", providerName: "search" })
      const kit = Toolkit.make(Ping, Search())
      const made = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(kit.toLayer({ ping: () => Effect.succeed("") }))
      )
      assert.deepStrictEqual(Object.keys(made), ["ping"])
    })
  )

  it.effect("there and back: a tool of ours is the same to run, and fails with the same words", () =>
    Effect.gen(function* () {
      const again = AiTool.fromToolkit(yield* AiTool.toToolkit(weather))
      const back = again.weather
      assert.isDefined(back)
      assert.deepStrictEqual(Tool.inputSchema(back), Tool.inputSchema(weather))
      const text = (city: string) =>
        Effect.match(
          Tool.runCall(back, ToolCall.make({ id: "c", tool: "weather", arguments: JSON.stringify({ city }) })),
          {
            onSuccess: (result) => ToolResult.textOf(result.output),
            onFailure: (failure) => `failed: ${Tool.failureText(back, failure)}`
          }
        )
      assert.strictEqual(yield* text("Oslo"), "sun in Oslo for 1")
      assert.strictEqual(yield* text("Atlantis"), "failed: no station in Atlantis")
    }).pipe(Effect.provide(sunny))
  )

  it.effect("interrupting a call interrupts the handler", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const released = yield* Deferred.make<void>()
      const kit = Toolkit.make(Ping)
      const { ping } = yield* Effect.map(kit, AiTool.fromToolkit).pipe(
        Effect.provide(
          kit.toLayer({
            ping: () =>
              Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
                Effect.ensuring(Deferred.succeed(released, undefined))
              )
          })
        )
      )
      const fiber = yield* Effect.forkChild(Tool.run(ping, {}))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* Deferred.isDone(released))
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    })
  )
})
