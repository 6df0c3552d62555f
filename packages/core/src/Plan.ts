/**
 * The plan of a batch: which calls of one model response may run at once. Pure, it runs nothing.
 *
 * A plan is a list of segments, run one after another; a segment is a list of chains, run beside each other; a chain is a
 * list of positions in the batch, run one after another. `Executor` follows it.
 */
import * as Tool from "./Tool.ts"

/**
 * - `maxParallel`: how many calls run at once. Default 8; zero or less is the default (C131).
 * - `sequential`: one call at a time, whatever the tools say. Default false.
 */
export interface Options {
  readonly maxParallel?: number | undefined
  readonly sequential?: boolean | undefined
}

/** Positions in the batch, run one after another. */
export type Chain = ReadonlyArray<number>

/** Chains that run beside each other. */
export type Segment = ReadonlyArray<Chain>

const defaultParallel = 8

/** The bound that a setting means: a whole number from 1, or infinity. */
export const boundOf = (maxParallel: number | undefined): number => {
  const bound = Math.floor(maxParallel ?? defaultParallel)
  return bound >= 1 ? bound : defaultParallel
}

/** Whether the calls run strictly in order, so that resources and barriers have nothing to add (C132). */
const isSerial = (tools: ReadonlyArray<Tool.Any | undefined>, options?: Options): boolean =>
  options?.sequential === true ||
  boundOf(options?.maxParallel) === 1 ||
  tools.some((tool) => tool !== undefined && Tool.isSequential(tool))

/**
 * The plan of a batch, given the tool of each call in the model's order; a call whose tool is missing is one without a
 * resource. Every position is in it exactly once. A barrier is a segment of its own.
 *
 * @example
 * ```ts
 * import { Plan, Tool } from "@agenttool/core"
 * import { Effect } from "effect"
 *
 * const read = Tool.raw("read", { execute: () => Effect.succeed("") })
 * const shell = read.pipe(Tool.resource("shell:session"))
 * const migrate = read.pipe(Tool.barrier)
 *
 * Plan.segments([shell, read, shell, migrate, read]) // [[[0, 2], [1]], [[3]], [[4]]]
 * ```
 */
export const segments = (tools: ReadonlyArray<Tool.Any | undefined>, options?: Options): ReadonlyArray<Segment> => {
  if (tools.length === 0) return []
  if (isSerial(tools, options)) return [[tools.map((_, index) => index)]]
  return stretches(tools).map((positions) => chainsOf(tools, positions))
}

/** The chains of all segments, in order: what the batch is made of, without what waits for what (C133, C134). */
export const chains = (tools: ReadonlyArray<Tool.Any | undefined>, options?: Options): ReadonlyArray<Chain> =>
  segments(tools, options).flat()

/** The positions between barriers, and each barrier alone. */
const stretches = (tools: ReadonlyArray<Tool.Any | undefined>): ReadonlyArray<ReadonlyArray<number>> => {
  const made: Array<Array<number>> = []
  let open: Array<number> | undefined
  for (const [index, tool] of tools.entries()) {
    if (tool !== undefined && Tool.isBarrier(tool)) {
      made.push([index])
      open = undefined
    } else if (open === undefined) {
      open = [index]
      made.push(open)
    } else {
      open.push(index)
    }
  }
  return made
}

const chainsOf = (tools: ReadonlyArray<Tool.Any | undefined>, positions: ReadonlyArray<number>): Segment => {
  const made: Array<Array<number>> = []
  const byResource = new Map<string, Array<number>>()
  for (const index of positions) {
    const tool = tools[index]
    const resource = tool === undefined ? "" : Tool.resourceOf(tool)
    const chain = byResource.get(resource)
    if (chain !== undefined) {
      chain.push(index)
      continue
    }
    const begun = [index]
    made.push(begun)
    if (resource !== "") byResource.set(resource, begun)
  }
  return made
}
