import * as Part from "@agenttool/core/Part"
import * as Progress from "@agenttool/core/Progress"
import * as Tool from "@agenttool/core/Tool"
import * as ToolError from "@agenttool/core/ToolError"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as ToolResult from "@agenttool/core/ToolResult"
import * as CallResult from "@agenttool/server/CallResult"
import { assert, describe, it } from "@effect/vitest"
import { isCallToolResult } from "@modelcontextprotocol/server"
import { Effect, Exit, Option, Schema } from "effect"

const greet = Tool.raw("greet", { execute: () => Effect.succeed("hi") })

/** What an error result with this text is, as JSON. */
const errorJson = (text: string): string => JSON.stringify({ content: [{ type: "text", text }], isError: true })

const entryOf = (result: CallResult.CallResult) => result._meta?.["io.github.christopherdavenport.agenttool/record"]

// A compile-time law: a result is JSON, as far as the compiler can tell.
const asJson = (result: CallResult.CallResult): Schema.Json => result

describe("CallResult.success", () => {
  it("M30: content and nothing else; the wish to stop does not cross", () => {
    const result = CallResult.success(greet, ToolResult.text("hi", { terminate: true }))
    assert.strictEqual(JSON.stringify(asJson(result)), '{"content":[{"type":"text","text":"hi"}]}')
    assert.deepStrictEqual(CallResult.success(greet, ToolResult.parts([])), { content: [] })
    assert.deepStrictEqual(CallResult.success(greet, ToolResult.parts([Part.text("a"), Part.text("b")])).content, [
      { type: "text", text: "a" },
      { type: "text", text: "b" }
    ])
  })

  it.effect("M30: a tool with a success schema has its JSON beside the text, no other tool has", () =>
    Effect.gen(function* () {
      const When = Schema.Struct({ at: Schema.DateTimeUtcFromString, n: Schema.NullOr(Schema.Finite) })
      const now = Tool.make("now", {
        success: When,
        execute: () => Schema.decodeUnknownEffect(When)({ at: "2026-07-28T00:00:00.000Z", n: null }).pipe(Effect.orDie)
      })
      const result = CallResult.success(now, yield* now.pipe(Tool.run({})))
      assert.strictEqual(
        JSON.stringify(result),
        '{"content":[{"type":"text","text":"{\\"at\\":\\"2026-07-28T00:00:00.000Z\\",\\"n\\":null}"}],' +
          '"structuredContent":{"at":"2026-07-28T00:00:00.000Z","n":null}}'
      )
      assert.isFalse("structuredContent" in CallResult.success(greet, ToolResult.structured(1, 1)))
    })
  )

  it.effect("M30: a result of a wrapper without the value that the output schema promises is an error result", () =>
    Effect.gen(function* () {
      const add = Tool.make("add", {
        success: Schema.Struct({ sum: Schema.Int }),
        execute: () => Effect.succeed({ sum: 5 })
      })
      const record = ToolRecord.make("a:b", { n: 1 })
      const text = 'mcpserver: tool "add": the result lacks the value that its output schema promises'
      const bare = add.pipe(Tool.wrap(() => () => Effect.succeed(ToolResult.text("5"))))
      assert.strictEqual(JSON.stringify(CallResult.success(bare, yield* bare.pipe(Tool.run({})))), errorJson(text))
      const recorded = add.pipe(Tool.wrap(() => () => Effect.succeed(ToolResult.text("5", { details: record }))))
      assert.deepStrictEqual(CallResult.success(recorded, yield* recorded.pipe(Tool.run({}))), {
        content: [{ type: "text", text }],
        isError: true,
        _meta: { "io.github.christopherdavenport.agenttool/record": { ns: "a:b", data: '{"n":1}' } }
      })
      // A wrapper that hands on the value keeps it, whatever it does to the rest.
      const kept = add.pipe(Tool.wrap((execute) => (call) => Effect.map(execute(call), ToolResult.withDetails(record))))
      assert.deepStrictEqual(CallResult.success(kept, yield* kept.pipe(Tool.run({}))).structuredContent, { sum: 5 })
    })
  )

  it.each([null, 0, false, "", []])("M30: %j is a structured value like any other", (json) => {
    const tool = Tool.make("any", { success: Schema.String, execute: () => Effect.succeed("") })
    const result = CallResult.success(tool, ToolResult.structured(json, json))
    assert.deepStrictEqual(result.structuredContent, json)
    assert.deepStrictEqual(result.content, [{ type: "text", text: JSON.stringify(json) }])
  })
})

describe("CallResult: errors", () => {
  it("M26: a failure is its message as it is, in one text block, without a prefix", () => {
    const messages: ReadonlyArray<readonly [unknown, string]> = [
      [new Error("no such user"), "no such user"],
      ["plain", "plain"],
      [new ToolError.ToolFailure({ message: "two\nlines" }), "two\nlines"],
      [{ message: "own", _tag: "Own" }, "own"],
      [{ code: 7 }, '{"code":7}'],
      [new ToolError.InvalidArguments({ path: "a", detail: "required" }), "invalid arguments: a: required"]
    ]
    for (const [error, text] of messages) {
      assert.strictEqual(JSON.stringify(CallResult.failure(greet, error)), errorJson(text))
    }
  })

  it("M26: a failure of a declared schema without a message is that schema's JSON", () => {
    const Quota = Schema.Struct({ until: Schema.DateTimeUtcFromString })
    const tool = Tool.make("limited", { failure: Quota, execute: () => Effect.succeed("") })
    const failure = Schema.decodeUnknownSync(Quota)({ until: "2026-07-28T00:00:00.000Z" })
    assert.strictEqual(
      JSON.stringify(CallResult.failure(tool, failure)),
      errorJson('{"until":"2026-07-28T00:00:00.000Z"}')
    )
  })

  it("M27: a defect is one line with the tool and the reference, and nothing else", () => {
    assert.strictEqual(
      JSON.stringify(CallResult.defect('a "quoted"\nname', "9f0c12ab")),
      errorJson('tool "a \\"quoted\\"\\nname" failed unexpectedly (9f0c12ab)')
    )
  })

  it.effect("M27: shown with its value, a defect reads as in process", () =>
    Effect.gen(function* () {
      const dying = Tool.raw("dying", { execute: () => Effect.die(new Error("oh\nno")) })
      const exit = yield* Effect.exit(dying.pipe(Tool.run({})))
      const failure = Exit.isFailure(exit) ? ToolError.failureOf("dying", exit.cause) : Option.none()
      assert.strictEqual(
        JSON.stringify(CallResult.failure(dying, Option.getOrUndefined(failure))),
        errorJson('tool "dying" panicked: oh no')
      )
    })
  )

  it("M28, M55: the texts that tell a model to call the tool again", () => {
    assert.strictEqual(
      JSON.stringify(CallResult.stopped("deploy", "its session ended")),
      errorJson('mcpserver: tool "deploy": the call was stopped: its session ended; call the tool again')
    )
    assert.strictEqual(
      JSON.stringify(CallResult.notWaiting("deploy")),
      errorJson(
        'mcpserver: tool "deploy": the call these answers belong to is no longer waiting for them; call the tool again'
      )
    )
  })
})

describe("CallResult: records", () => {
  const details = (value: unknown) => CallResult.success(greet, ToolResult.text("started", { details: value }))

  it("M36: recordable details travel as text, byte for byte", () => {
    const text = '{"z":1, "a":9007199254740993}'
    assert.strictEqual(
      JSON.stringify(details(ToolRecord.fromJson("shell:container", text))),
      JSON.stringify({
        content: [{ type: "text", text: "started" }],
        _meta: { "io.github.christopherdavenport.agenttool/record": { ns: "shell:container", data: text } }
      })
    )
    assert.deepStrictEqual(entryOf(details(ToolRecord.make("shell:container", { container: "c1", a: 1 }))), {
      ns: "shell:container",
      data: '{"container":"c1","a":1}'
    })
  })

  it("M37: a failed call carries the record of its details", () => {
    const error = new ToolError.ToolFailure({
      message: "disk on fire",
      details: ToolRecord.make("shell:process-group", { pgid: 4242 })
    })
    assert.strictEqual(
      JSON.stringify(CallResult.failure(greet, error)),
      JSON.stringify({
        content: [{ type: "text", text: "disk on fire" }],
        isError: true,
        _meta: {
          "io.github.christopherdavenport.agenttool/record": { ns: "shell:process-group", data: '{"pgid":4242}' }
        }
      })
    )
  })

  it("M38: details that cannot be recorded do not fail the call, the entry says why", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const served = details(ToolRecord.make("", { a: 1 }))
    assert.deepStrictEqual(served.content, [{ type: "text", text: "started" }])
    assert.isFalse("isError" in served)
    assert.deepStrictEqual(entryOf(served), { error: "agenttool: record Object: empty namespace" })
    const broken = entryOf(details(ToolRecord.make("a:b", { n: 10n })))
    assert.match(broken !== undefined && "error" in broken ? broken.error : "", /^agenttool: record a:b: .+$/)
    assert.match(JSON.stringify(entryOf(details(ToolRecord.make("a:b", cycle)))), /^\{"error":"agenttool: record a:b: /)
    assert.deepStrictEqual(entryOf(details(ToolRecord.fromJson("a:b", "{"))), {
      error: "agenttool: record a:b: its text is not JSON"
    })
    const failed = new ToolError.ToolFailure({ message: "no", details: ToolRecord.make("", {}) })
    assert.deepStrictEqual(entryOf(CallResult.failure(greet, failed)), {
      error: "agenttool: record Object: empty namespace"
    })
  })

  it("M39: details that are not recordable leave no entry and no _meta", () => {
    for (const value of [undefined, null, "text", 7, { progress: 1 }, Progress.info({ progress: 1 }), () => 1]) {
      assert.deepStrictEqual(Object.keys(details(value)), ["content"])
      assert.deepStrictEqual(Object.keys(CallResult.failure(greet, { message: "no", details: value })), [
        "content",
        "isError"
      ])
    }
  })
})

describe("CallResult.bounded", () => {
  const ofBytes = (text: string) => {
    const result = CallResult.success(greet, ToolResult.text(text))
    return { result, bytes: Buffer.byteLength(JSON.stringify(result)) }
  }

  it("M30: the bytes of the JSON count, to the byte", () => {
    for (const text of ["plain", '"quoted"\n', "\u0000\u0001", "é", "日本", "🙂", "\ud800"]) {
      const { bytes, result } = ofBytes(text)
      assert.strictEqual(CallResult.bounded("greet", result, bytes), result)
      assert.strictEqual(CallResult.bounded("greet", result, Number.POSITIVE_INFINITY), result)
      assert.strictEqual(
        JSON.stringify(CallResult.bounded("greet", result, bytes - 1)),
        errorJson(`mcpserver: tool "greet": the result is too large: ${bytes} bytes, at most ${bytes - 1} are allowed`)
      )
    }
  })

  it("M30: a structured value counts as well", () => {
    const tool = Tool.make("big", { success: Schema.String, execute: () => Effect.succeed("") })
    const json = { list: Array.from({ length: 100 }, (_, i) => ({ key: [i, -1.5e300, true, null] })) }
    const result = CallResult.success(tool, { ...ToolResult.text("small"), structured: json })
    const bytes = Buffer.byteLength(JSON.stringify(result))
    assert.strictEqual(CallResult.bounded("big", result, bytes), result)
    assert.isTrue(CallResult.bounded("big", result, bytes - 1).isError)
  })

  it("M30, M37: the record stays beside the text where it fits", () => {
    const small = CallResult.success(
      greet,
      ToolResult.text("x".repeat(1000), { details: ToolRecord.make("a:b", { n: 1 }) })
    )
    assert.deepStrictEqual(entryOf(CallResult.bounded("greet", small, 500)), { ns: "a:b", data: '{"n":1}' })
    const large = CallResult.success(
      greet,
      ToolResult.text("x", { details: ToolRecord.make("a:b", { text: "x".repeat(1000) }) })
    )
    assert.deepStrictEqual(Object.keys(CallResult.bounded("greet", large, 500)), ["content", "isError"])
  })
})

describe("CallResult.forLegacy", () => {
  it("P131: clients before 2026-07-28 get a value that is no object as the member of one", () => {
    const list = Tool.make("list", { success: Schema.Array(Schema.String), execute: () => Effect.succeed(["a"]) })
    const result = CallResult.success(list, ToolResult.structured(["a"], ["a"]))
    assert.deepStrictEqual(CallResult.forLegacy(list, result), { ...result, structuredContent: { result: ["a"] } })

    const object = Tool.make("object", {
      success: Schema.Struct({ a: Schema.String }),
      execute: () => Effect.succeed({ a: "" })
    })
    const plain = CallResult.success(object, ToolResult.structured({ a: "" }, { a: "" }))
    assert.strictEqual(CallResult.forLegacy(object, plain), plain)
    const failed = CallResult.failure(list, "no")
    assert.strictEqual(CallResult.forLegacy(list, failed), failed)
  })
})

describe("CallResult: all kinds", () => {
  it("every result is one as the SDK knows it, and survives JSON", () => {
    const record = ToolRecord.make("a:b", { n: 1 })
    const list = Tool.make("list", { success: Schema.Array(Schema.String), execute: () => Effect.succeed(["a"]) })
    for (const result of [
      CallResult.success(greet, ToolResult.parts([Part.imageData("image/png", "AQID"), Part.refusal("no")])),
      CallResult.success(list, ToolResult.withDetails(ToolResult.structured(["a"], ["a"]), record)),
      CallResult.success(greet, ToolResult.text("", { details: ToolRecord.make("", {}) })),
      CallResult.failure(greet, { message: "no", details: record }),
      CallResult.defect("greet", "ref"),
      CallResult.stopped("greet", "why"),
      CallResult.notWaiting("greet"),
      CallResult.noValue("greet"),
      CallResult.tooLarge("greet", 2, 1)
    ]) {
      assert.isTrue(isCallToolResult(result), JSON.stringify(result))
      assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), result)
      const order = ["content", "structuredContent", "isError", "_meta"].filter((member) => member in result)
      assert.deepStrictEqual(Object.keys(result), order)
    }
  })
})

describe("CallResult.progress", () => {
  it("C112: an update's text and numbers, and the position of one without numbers", () => {
    const halfWay = ToolResult.text("half way", { details: Progress.info({ progress: 1, total: 2 }) })
    assert.deepStrictEqual(CallResult.progress(halfWay, 1), { progress: 1, total: 2, message: "half way" })
    assert.deepStrictEqual(CallResult.progress(ToolResult.text("nearly"), 2), { progress: 2, message: "nearly" })
  })

  it("M70: text alone counts, numbers are taken over, parts are their joined text", () => {
    const numbers = (info: Progress.ProgressInfo, output = "") =>
      ToolResult.text(output, { details: Progress.info(info) })
    const rows: ReadonlyArray<readonly [ToolResult.ToolResult, string]> = [
      [ToolResult.text("half way"), '{"progress":4,"message":"half way"}'],
      [ToolResult.text(""), '{"progress":4}'],
      [
        numbers({ progress: 1, total: 3, message: "uploading" }, "text"),
        '{"progress":1,"total":3,"message":"uploading"}'
      ],
      [numbers({ progress: 0, total: 0, message: "" }, "the text"), '{"progress":0,"message":"the text"}'],
      [numbers({ progress: 0.5 }), '{"progress":0.5}'],
      [numbers({ progress: Number.NaN, total: Number.POSITIVE_INFINITY }), '{"progress":4}'],
      [ToolResult.parts([Part.text("a"), Part.image("x:y"), Part.text("b")]), '{"progress":4,"message":"ab"}'],
      [
        ToolResult.parts([Part.text("a")], { details: Progress.info({ progress: 2, total: 9 }) }),
        '{"progress":2,"total":9,"message":"a"}'
      ]
    ]
    for (const [update, json] of rows) assert.strictEqual(JSON.stringify(CallResult.progress(update, 4)), json)
  })
})
