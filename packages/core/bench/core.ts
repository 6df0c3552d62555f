/**
 * What a tool costs in process: building it, and calling one that does nothing. Run from the root of the repository:
 *
 *     npx node packages/core/bench/core.ts
 *
 * Read the ratios, not the times: every round runs all variants one after another, a ratio is taken within a round, and the
 * medians over the rounds are shown. Allocation is how far the heap grows over calls too few for a collection to run in
 * between, per call.
 *
 * "bare" does what cannot be left out: it parses the text, decodes it and runs the function. What a tool adds to it: its own
 * check and the result, and where the function does not end at once, the scope of the call, the call on the context and
 * the name of the tool in a defect.
 */
import { Effect, Result, Schema, Stream } from "effect"
import * as Ai from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { ArgumentsCheck, Shape, Tool, ToolCall, WireSchema } from "../src/index.ts"

const rounds = 100
const callsPerRound = 1_000
const warmUpRounds = 20
const allocationRounds = 11
const buildRounds = 11
const constructed = 1_000
const unconcernedByCollection = 500

const Parameters = Schema.Struct({ a: Schema.Int, b: Schema.String })
const text = '{"a":1,"b":"two"}'
const value = { a: 1, b: "two" }

// ----- what is measured

type Body = () => Effect.Effect<string>
const atHand: Body = () => Effect.succeed("ok")
const running: Body = Effect.fnUntraced(function* () {
  return yield* Effect.sync(() => "ok")
})

const decode = Schema.decodeUnknownEffect(Parameters)
const call = ToolCall.make({ id: "call_1", tool: "noop", arguments: text })

/** The ways to make one call of a function, each an effect to be run many times. */
const waysOf = async (body: Body): Promise<ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]>> => {
  const tool = Tool.make("noop", { parameters: Parameters, execute: body })
  const Kit = Toolkit.make(Ai.make("noop", { parameters: Parameters, success: Schema.String }))
  const kit = await Effect.runPromise(Effect.provide(Kit, Kit.toLayer({ noop: body })))
  return [
    ["bare: JSON.parse, decode, run", Effect.suspend(() => Effect.flatMap(decode(JSON.parse(text)), body))],
    ["Tool.runCall, arguments as text", Tool.runCall(tool, call)],
    ["Tool.run, arguments as a value", Effect.suspend(() => Tool.run(tool, value))],
    ["tool.execute, without a harness", Effect.suspend(() => tool.execute(call))],
    [
      "effect/ai: kit.handle, drained",
      Effect.suspend(() => Effect.flatMap(kit.handle("noop", JSON.parse(text)), Stream.runDrain))
    ]
  ]
}

const shape = Result.getOrThrow(WireSchema.fromSchema(Parameters))
const check = ArgumentsCheck.make(shape)
const steps: ReadonlyArray<readonly [string, () => unknown]> = [
  ["JSON.parse", () => JSON.parse(text)],
  ["the tool's own check", () => check(value)],
  ["decode, as it is called", () => decode(value)],
  ["ToolCall.make", () => ToolCall.make({ id: "call_1", tool: "noop", arguments: text })]
]

const construct = (): void => {
  for (let n = 0; n < constructed; n++) {
    Tool.make(`tool_${n}`, {
      description: "Does nothing",
      parameters: Schema.Struct({ a: Schema.Int, b: Schema.String }),
      execute: () => Effect.succeed("ok")
    })
  }
}

const shapes = (): void => {
  for (let n = 0; n < constructed; n++) {
    const made = WireSchema.fromSchema(Schema.Struct({ a: Schema.Int, b: Schema.String }))
    Shape.toJsonSchema(Result.getOrThrow(made))
  }
}

// ----- how it is measured

const repeat = (effect: Effect.Effect<unknown, unknown>, times: number): Promise<void> => {
  let done = 0
  return Effect.runPromise(Effect.whileLoop({ while: () => done < times, body: () => effect, step: () => void done++ }))
}

const microseconds = async (work: () => Promise<void> | void | undefined, times: number): Promise<number> => {
  const start = performance.now()
  await work()
  return ((performance.now() - start) * 1000) / times
}

setFlagsFromString("--expose-gc")
const collect: (options?: { readonly type: "minor" }) => void = runInNewContext("gc")

const bytes = async (work: (times: number) => Promise<void> | void): Promise<number> => {
  await work(unconcernedByCollection)
  collect()
  const before = process.memoryUsage().heapUsed
  await work(unconcernedByCollection)
  return (process.memoryUsage().heapUsed - before) / unconcernedByCollection
}

const times = (work: () => unknown) => (count: number) => {
  for (let n = 0; n < count; n++) work()
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN

interface Row {
  readonly name: string
  readonly took: Array<number>
  readonly ratio: Array<number>
  readonly allocated: Array<number>
}
const row = (name: string): Row => ({ name, took: [], ratio: [], allocated: [] })

const measured = async (
  variants: ReadonlyArray<readonly [string, (count: number) => Promise<void> | void]>
): Promise<ReadonlyArray<Row>> => {
  const rows = variants.map(([name]) => row(name))
  // Each round starts with another variant, so that none always pays for the garbage of the one before.
  for (let round = -warmUpRounds; round < rounds; round++) {
    const took: Array<number> = []
    for (let turn = 0; turn < variants.length; turn++) {
      const index = (turn + round + warmUpRounds) % variants.length
      collect({ type: "minor" })
      took[index] = await microseconds(() => variants[index]?.[1](callsPerRound), callsPerRound)
    }
    if (round < 0) continue
    for (const [index, { ratio, took: all }] of rows.entries()) {
      all.push(took[index] ?? Number.NaN)
      ratio.push((took[index] ?? Number.NaN) / (took[0] ?? Number.NaN))
    }
  }
  // Apart from the times: a full collection also throws away what was compiled.
  for (let round = 0; round < allocationRounds; round++) {
    for (const [index, [, work]] of variants.entries()) rows[index]?.allocated.push(await bytes(work))
  }
  return rows
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const table = (rows: ReadonlyArray<Row>): void => {
  for (const { allocated, name, ratio, took } of rows) {
    const columns = [median(took).toFixed(2), median(ratio).toFixed(2), median(allocated).toFixed(0)]
    print(`${name.padEnd(36)}${columns.map((column) => column.padStart(12)).join("")}`)
  }
}

const head = (title: string): void =>
  print(`\n${title.padEnd(36)}${["µs", "× first", "bytes"].map((column) => column.padStart(12)).join("")}`)

const builds = { make: [] as Array<number>, shapes: [] as Array<number> }
for (let round = -2; round < buildRounds; round++) {
  const make = await microseconds(construct, constructed)
  const only = await microseconds(shapes, constructed)
  if (round >= 0) builds.make.push(make)
  if (round >= 0) builds.shapes.push(only)
}
print(`node ${process.version}, ${rounds} rounds of ${callsPerRound} calls, medians`)
print(`\n${constructed} typed tools: ${((median(builds.make) * constructed) / 1000).toFixed(1)} ms`)
print(`  each ${median(builds.make).toFixed(1)} µs, its schema alone ${median(builds.shapes).toFixed(1)} µs`)

for (const [title, body] of [
  ["a call whose value is at hand", atHand],
  ["a call that runs a generator", running]
] as const) {
  head(title)
  table(await measured((await waysOf(body)).map(([name, effect]) => [name, (count) => repeat(effect, count)])))
}

head("steps of it, in a plain loop")
table(await measured(steps.map(([name, work]) => [name, times(work)])))
