/**
 * What the tests of `Calls` share: servers without a transport, driven through the service, and a journal and states by
 * which one of them can go on with the calls of another.
 */
import { assert } from "@effect/vitest"
import { Elicitor, Steps, Tool } from "@agenttool/core"
import { CallJournal, Calls, McpServer, Settings, StateNames, StopReason } from "@agenttool/server"
import * as Core from "@agenttool/server/Core"
import { Context, Effect, Exit, Layer, Option, Schema, Scope } from "effect"
import { createHmac } from "node:crypto"

// ----- servers

/** A server without a transport: what goes on in a process. */
export interface Process {
  readonly calls: Calls.Calls["Service"]
  /** Ends it in good order. Ended when the test ends, if not before. */
  readonly close: Effect.Effect<void>
}

export interface ProcessOptions {
  readonly settings?: Partial<Settings.Settings>
  /** What the host has put around: references, services, loggers. */
  readonly around?: Layer.Layer<never>
}

/** A process that serves these tools. */
export const start = <const Tools extends ReadonlyArray<Tool.Any>>(
  tools: Tools,
  { around = Layer.empty, settings = {} }: ProcessOptions = {}
): Effect.Effect<Process, McpServer.RegistrationError, McpServer.Needs<Tools> | Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const context = yield* McpServer.tools(...tools).pipe(
      Layer.provideMerge(Core.layer),
      Layer.provide(Layer.succeed(Settings.Settings, Settings.make(settings))),
      Layer.provide(around),
      Layer.fresh,
      Layer.buildWithScope(scope)
    )
    const calls = Context.get(context, Calls.Calls)
    // As transports end: what is running or parked is stopped before the tools are removed.
    const close = Effect.andThen(calls.drain("all", "ServerClosed", 0), Scope.close(scope, Exit.void))
    return { calls, close }
  })

// ----- requests

const answerable = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** A first request. */
export const request = (tool: string, rest: Partial<Calls.CallRequest> = {}): Calls.CallRequest => ({
  tool,
  arguments: {},
  binding: {},
  protocolVersion: "2026-07-28",
  capabilities: answerable,
  responses: {},
  ...rest
})

/** A later one. */
export const reply = (
  tool: string,
  state: string,
  responses: Calls.CallReply["responses"] = {},
  rest: Partial<Calls.CallReply> = {}
): Calls.CallReply => ({ tool, state, responses, capabilities: answerable, binding: {}, ...rest })

/** Nobody watches the progress of the request. */
export const silent: Calls.Attachment = { progress: () => Effect.void }

/** An accepted form. */
export const accept = (content: Schema.JsonObject = {}): Schema.JsonObject => ({ action: "accept", content })

// ----- turns

type Asked = Extract<Calls.Turn, { readonly _tag: "Asked" }>

/** The round that a turn is. */
export const asked = (turn: Calls.Turn): Asked => {
  if (turn._tag !== "Asked") assert.fail(`not a round: ${JSON.stringify(turn)}`)
  return turn
}

/** The questions of a round: id and message. */
export const questionsOf = (turn: Calls.Turn): ReadonlyArray<readonly [string, unknown]> =>
  asked(turn).questions.map(({ id, params }) => [id, (params as Schema.JsonObject | null)?.message])

interface Result {
  readonly isError?: boolean
  readonly content: ReadonlyArray<{ readonly type: string; readonly text: string }>
}

/** The result that a turn is. */
export const resultOf = (turn: Calls.Turn): Result => {
  if (turn._tag !== "Done") assert.fail(`not a result: ${JSON.stringify(turn)}`)
  return turn.result as unknown as Result // as `CallResult` makes it
}

const textOf = ({ content }: Result): string => {
  assert.lengthOf(content, 1)
  return content[0]?.text ?? ""
}

/** The text of a result that is no error. */
export const goodText = (turn: Calls.Turn): string => {
  const result = resultOf(turn)
  assert.isUndefined(result.isError, JSON.stringify(result))
  return textOf(result)
}

/** The text of an error result. */
export const errorText = (turn: Calls.Turn): string => {
  const result = resultOf(turn)
  assert.strictEqual(result.isError, true, JSON.stringify(result))
  return textOf(result)
}

/** Why a reply was refused. */
export const whyOf = <A>(effect: Effect.Effect<A, Calls.NotWaiting>): Effect.Effect<Calls.NotWaiting["why"]> =>
  Effect.match(effect, {
    onSuccess: (turn) => assert.fail(`not refused: ${JSON.stringify(turn)}`),
    onFailure: ({ why }) => why
  })

/** What every client hears whose answers nobody waits for. */
export const notWaiting = (tool: string): string =>
  `mcpserver: tool "${tool}": the call these answers belong to is no longer waiting for them; call the tool again`

/** So many calls are left. */
export const leftOf = ({ calls }: Process, count: Calls.Count): Effect.Effect<void> =>
  Effect.gen(function* () {
    // A fiber leaves the set when its observers are told.
    yield* Effect.yieldNow
    assert.deepStrictEqual(yield* calls.count, count)
  })

/** Nothing is left of any call. */
export const nothingLeft = (process: Process): Effect.Effect<void> =>
  leftOf(process, { attached: 0, parked: 0, fibers: 0 })

// ----- what survives a process

const Stored = Schema.fromJsonString(
  Schema.Struct({ request: Calls.CallRequest, entries: Schema.Array(CallJournal.Entry) })
)

interface Row {
  readonly json: string
  readonly epoch: number
}

const roundsOf = (entries: ReadonlyArray<CallJournal.Entry>): number =>
  entries.filter(({ _tag }) => _tag === "Round").length

/** A journal in a `Map`, whose rows are text: what is not plain data does not get through it. */
export const journalInMap = () => {
  const rows = new Map<string, Row>()
  const log: Array<string> = []

  const read = ({ json }: Row) => Schema.decodeSync(Stored)(json)
  const write = (runId: string, epoch: number, stored: ReturnType<typeof read>): void => {
    rows.set(runId, { epoch, json: Schema.encodeSync(Stored)(stored) })
  }

  const service: CallJournal.CallJournalService = {
    open: (runId, request) =>
      Effect.sync(() => {
        log.push("open")
        if (!rows.has(runId)) write(runId, 0, { request, entries: [] })
      }),
    write: (runId, epoch, entry) =>
      Effect.sync(() => {
        const row = rows.get(runId)
        const stored = row === undefined ? undefined : read(row)
        const accepted =
          stored !== undefined &&
          row?.epoch === epoch &&
          (entry._tag === "Round"
            ? entry.round === roundsOf(stored.entries) + 1
            : !stored.entries.some((other) => other._tag === "Step" && other.name === entry.name))
        log.push(`write ${entry._tag === "Round" ? entry.round : entry.name} in ${epoch}: ${accepted}`)
        if (accepted) write(runId, epoch, { request: stored.request, entries: [...stored.entries, entry] })
        return accepted
      }),
    claim: (runId, round, tool, binding) =>
      Effect.sync(() => {
        const row = rows.get(runId)
        if (row === undefined) return Option.none()
        const { entries, request } = read(row)
        const answered = roundsOf(entries)
        const mine =
          request.tool === tool &&
          request.binding.session === binding.session &&
          request.binding.principal === binding.principal &&
          (round === answered || round === answered + 1)
        log.push(`claim ${round}: ${mine}`)
        if (!mine) return Option.none()
        write(runId, row.epoch + 1, { request, entries })
        return Option.some({ epoch: row.epoch + 1, request, entries })
      }),
    close: (runId, epoch) =>
      Effect.sync(() => {
        const mine = rows.get(runId)?.epoch === epoch
        log.push(`close in ${epoch}: ${mine}`)
        if (mine) rows.delete(runId)
      })
  }
  return {
    service,
    /** What was done to it, in order. */
    log,
    /** The rows that are left, as their text. */
    rows: () => Array.from(rows.values(), ({ epoch, json }) => `${epoch} ${json}`)
  }
}

/** States that say which run and round they are of: longer than the default ones, and with dots. */
export const tellingNames: StateNames.StateNamesService = {
  issue: (runId, round) => `${runId}.${round}.${macOf(`${runId}.${round}`)}`,
  read: (state) => {
    const [runId = "", round = "", mac] = state.split(".")
    return mac === macOf(`${runId}.${round}`) ? Option.some({ runId, round: Number(round) }) : Option.none()
  }
}

const macOf = (text: string): string => createHmac("sha256", "the same key in all processes").update(text).digest("hex")

/** What the processes of one host share. */
export const shared = () => {
  const journal = journalInMap()
  return {
    ...journal,
    around: Layer.merge(
      Layer.succeed(CallJournal.CallJournal, journal.service),
      Layer.succeed(StateNames.StateNames, tellingNames)
    )
  }
}

// ----- a tool that goes on elsewhere

const Where = Schema.Struct({ environment: Schema.Literals(["staging", "production"]) })
export const Sure = Schema.Struct({ confirm: Schema.Boolean })

export const staging = accept({ environment: "staging" })
export const yes = accept({ confirm: true })

/** A tool that plans, asks, uploads, asks and is done; what it really did, and why it was stopped, is written down. */
export const deploying = () => {
  const done: Array<string> = []
  const step = (name: string) =>
    Effect.sync(() => {
      done.push(name)
      return { receipt: `${name} ${done.length}` }
    }).pipe(Steps.once(name, Schema.Struct({ receipt: Schema.String })))
  const tool = Tool.make("deploy", {
    parameters: Schema.Struct({ build: Schema.String }),
    execute: Effect.fn(
      function* ({ build }) {
        const plan = yield* step("plan")
        const where = yield* Elicitor.ask({ message: `Deploy ${build} where?`, schema: Where })
        if (where.action !== "accept") return where.action
        const upload = yield* step("upload")
        const sure = yield* Elicitor.ask({ message: `Sure of ${where.content.environment}?`, schema: Sure })
        return [build, plan.receipt, where.content.environment, upload.receipt, sure.action].join(", ")
      },
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) done.push(Option.getOrElse(StopReason.of(exit.cause), () => "no reason"))
        })
      )
    )
  })
  return { tool, done }
}

/** A first call of it. */
export const deploy = request("deploy", { arguments: { build: "b1" } })
