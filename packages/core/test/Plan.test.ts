import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import * as Plan from "@agenttool/core/Plan"
import * as Tool from "@agenttool/core/Tool"

const plain = Tool.raw("plain", { execute: () => Effect.succeed("") })
const sequential = plain.pipe(Tool.sequential)
const barrier = plain.pipe(Tool.barrier)
const shell = plain.pipe(Tool.resource("shell:session"))
const restart = Tool.raw("restart", { execute: () => Effect.succeed("") }).pipe(Tool.resource("shell:session"))
const container = plain.pipe(Tool.resource("container:47"))
const missing = undefined

describe("Plan", () => {
  it("C131: the bound is 8 unless it is set, and zero or less means 8", () => {
    assert.strictEqual(Plan.boundOf(undefined), 8)
    for (const [setting, bound] of [
      [0, 8],
      [-3, 8],
      [Number.NaN, 8],
      [1, 1],
      [2.9, 2],
      [20, 20],
      [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    ] as const) {
      assert.strictEqual(Plan.boundOf(setting), bound, String(setting))
    }
  })

  it("C34, C132: a batch with a sequential tool, a sequential executor or a bound of 1 is one chain in the model's order", () => {
    assert.deepStrictEqual(Plan.chains([plain, sequential, plain], { maxParallel: 8 }), [[0, 1, 2]])
    assert.deepStrictEqual(Plan.chains([plain, plain, missing], { sequential: true }), [[0, 1, 2]])
    assert.deepStrictEqual(Plan.chains([plain, plain, missing], { maxParallel: 1 }), [[0, 1, 2]])
    assert.deepStrictEqual(Plan.chains([plain, plain], { sequential: false }), [[0], [1]])
  })

  it("C41, C132: resources and barriers add nothing to a serial batch, and a sequential barrier is sequential", () => {
    assert.deepStrictEqual(Plan.segments([shell, barrier, plain, shell], { sequential: true }), [[[0, 1, 2, 3]]])
    assert.deepStrictEqual(Plan.segments([plain, barrier.pipe(Tool.sequential), plain]), [[[0, 1, 2]]])
    assert.deepStrictEqual(Plan.segments([plain, Tool.barrier(sequential), plain]), [[[0, 1, 2]]])
  })

  it.each([
    { tools: [plain, plain, plain], chains: [[0], [1], [2]] },
    { tools: [shell, plain, shell], chains: [[0, 2], [1]] },
    { tools: [shell, restart, container], chains: [[0, 1], [2]] },
    { tools: [missing, shell], chains: [[0], [1]] },
    { tools: [missing, missing], chains: [[0], [1]] },
    { tools: [], chains: [] }
  ])("C36, C133: jobs that name one resource form a chain where its first job is: $chains", ({ chains, tools }) => {
    assert.deepStrictEqual(Plan.chains(tools), chains)
  })

  it("C35: a resource is free text, compared as it is", () => {
    const named = (name: string) => plain.pipe(Tool.resource(name))
    const tools = [named("shell"), named("Shell"), named("shell "), named("any text: at all"), named("shell")]
    assert.deepStrictEqual(Plan.chains(tools), [[0, 4], [1], [2], [3]])
  })

  it("C133: shell, plain, shell with the bound 1 is one chain", () => {
    assert.deepStrictEqual(Plan.chains([shell, plain, shell], { maxParallel: 1 }), [[0, 1, 2]])
  })

  it("C37: the declared resource of a sequential tool makes no chain of its own", () => {
    assert.deepStrictEqual(Plan.chains([shell.pipe(Tool.sequential), plain, shell]), [[0, 1, 2]])
  })

  it("C40, C134: a barrier is a segment of its own, and each side keeps its own chains", () => {
    assert.deepStrictEqual(Plan.segments([plain, plain, barrier, plain, plain]), [[[0], [1]], [[2]], [[3], [4]]])
    assert.deepStrictEqual(Plan.segments([shell, shell, barrier, shell, plain, shell]), [
      [[0, 1]],
      [[2]],
      [[3, 5], [4]]
    ])
    assert.deepStrictEqual(Plan.segments([barrier, barrier, plain]), [[[0]], [[1]], [[2]]])
    assert.deepStrictEqual(Plan.segments([plain, barrier]), [[[0]], [[1]]])
  })

  it("C41: the resource of a barrier changes nothing", () => {
    const both = barrier.pipe(Tool.resource("shell:session"))
    assert.deepStrictEqual(Plan.segments([shell, both, shell]), [[[0]], [[1]], [[2]]])
  })

  const kinds = [plain, sequential, barrier, shell, restart, container, missing]
  const batch = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 6 }))), {
    maxLength: 12
  })
  const bound = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })))

  it.prop("C134: the chains cover every job exactly once, in order within a chain", { batch, bound }, (given) => {
    const tools = given.batch.map((kind) => kinds[kind])
    const chains = Plan.chains(tools, { maxParallel: given.bound })
    assert.deepStrictEqual(
      chains.flat().toSorted((a, b) => a - b),
      tools.map((_, index) => index)
    )
    for (const chain of chains)
      assert.deepStrictEqual(
        chain,
        [...chain].toSorted((a, b) => a - b)
      )
  })
})
