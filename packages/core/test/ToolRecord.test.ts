import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Exit, Option, Schema } from "effect"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as Progress from "@agenttool/core/Progress"

const read = (value: unknown) => ToolRecord.read(value)
const none = Exit.succeed(Option.none())
const recorded = (ns: string, data: string) => Exit.succeed(Option.some({ ns, data }))
const message = (value: unknown): string | undefined =>
  Exit.match(read(value), {
    onSuccess: () => undefined,
    onFailure: (cause) => {
      const first = cause.reasons[0]
      return first !== undefined && first._tag === "Fail" ? first.error.message : `not a failure: ${String(cause)}`
    }
  })

class Container implements ToolRecord.Recordable {
  readonly [ToolRecord.namespace]: string
  readonly container: string
  constructor(ns: string, container: string) {
    this[ToolRecord.namespace] = ns
    this.container = container
  }
}

describe("ToolRecord", () => {
  it("C113: a value that names a namespace is recordable, and its JSON is what JSON.stringify gives", () => {
    assert.isTrue(ToolRecord.isRecordable(new Container("shell:container", "c1")))
    assert.isTrue(ToolRecord.isRecordable(ToolRecord.make("shell:container", { container: "c1" })))
    assert.isFalse(ToolRecord.isRecordable({ namespace: "shell:container" }))
    assert.isFalse(ToolRecord.isRecordable({ [ToolRecord.namespace]: 1 }))
    const shaped = ToolRecord.make("a:b", { secret: 1, toJSON: () => ({ shown: true }) })
    assert.deepStrictEqual(read(shaped), recorded("a:b", '{"shown":true}'))
  })

  it("C113: toJSON of a class shapes the record of its instance", () => {
    class Handle {
      readonly #pid = 7
      readonly name = "h"
      toJSON() {
        return { shown: this.name, pid: this.#pid }
      }
    }
    const made = ToolRecord.make("a:b", new Handle())
    assert.instanceOf(made, Handle)
    assert.deepStrictEqual(read(made), recorded("a:b", '{"shown":"h","pid":7}'))
    assert.deepStrictEqual(read(ToolRecord.make("a:b", new Date(0))), recorded("a:b", '"1970-01-01T00:00:00.000Z"'))
    assert.deepStrictEqual(read(ToolRecord.make("a:b", [1, 2])), recorded("a:b", "[1,2]"))
  })

  it("C114: the namespace is not empty", () => {
    assert.isTrue(Exit.isFailure(read(ToolRecord.make("", { a: 1 }))))
    assert.isTrue(Exit.isFailure(read(ToolRecord.fromJson("", "{}"))))
    assert.isTrue(Exit.isSuccess(read(ToolRecord.make(" ", { a: 1 }))))
  })

  it("C115: absent details, and details that are not recordable, have no record and no error", () => {
    for (const details of [undefined, null, "text", 1, { container: "c1" }, () => {}, [1]]) {
      assert.deepStrictEqual(read(details), none)
    }
    assert.deepStrictEqual(read(Progress.info({ progress: 1, total: 2 })), none)
  })

  it("C115: recordable details are read as their namespace and JSON text", () => {
    assert.deepStrictEqual(
      read(ToolRecord.make("shell:container", { container: "c1" })),
      recorded("shell:container", '{"container":"c1"}')
    )
    assert.deepStrictEqual(
      read(new Container("shell:container", "c1")),
      recorded("shell:container", '{"container":"c1"}')
    )
  })

  it("C115: an empty namespace is an error that names the type", () => {
    assert.strictEqual(message(new Container("", "c1")), "agenttool: record Container: empty namespace")
    assert.strictEqual(message(ToolRecord.make("", { a: 1 })), "agenttool: record Object: empty namespace")
    const bare = Object.assign(Object.create(null), { [ToolRecord.namespace]: "" })
    assert.strictEqual(message(bare), "agenttool: record Object: empty namespace")
  })

  it("C115: recordable details without JSON are an error that names the namespace, in one line", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const throwing = {
      toJSON: () => {
        throw new Error("no\nJSON")
      }
    }
    assert.match(message(ToolRecord.make("a:b", { cycle })) ?? "", /^agenttool: record a:b: .*circular.*$/)
    assert.match(message(ToolRecord.make("a:b", { big: 1n })) ?? "", /^agenttool: record a:b: .*BigInt.*$/)
    assert.strictEqual(message(ToolRecord.make("a:b", throwing)), "agenttool: record a:b: no JSON")
    assert.match(message(ToolRecord.make("a:b", { toJSON: () => undefined })) ?? "", /^agenttool: record a:b: .+$/)
  })

  it("C115: a text that is not JSON is no record", () => {
    assert.strictEqual(message(ToolRecord.fromJson("a:b", "{")), "agenttool: record a:b: its text is not JSON")
  })

  it.prop(
    "C115: a JSON text is kept byte for byte",
    [Arbitrary.schema(Schema.Struct({ a: Schema.Int, b: Schema.Array(Schema.String) }))],
    ([value]) => {
      const spaced = JSON.stringify(value, undefined, 2).replace('"a": ', '"a": 1e0, "a": 12345678901234567890, "a" : ')
      assert.deepStrictEqual(read(ToolRecord.fromJson("a:b", spaced)), recorded("a:b", spaced))
    }
  )

  it("C113: a value is copied, not changed, when it is made recordable", () => {
    const value = Object.freeze({ container: "c1" })
    const made = ToolRecord.make("shell:container", value)
    assert.strictEqual(made.container, "c1")
    assert.isFalse(ToolRecord.isRecordable(value))
  })
})
