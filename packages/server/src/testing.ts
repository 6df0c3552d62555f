/**
 * For tests of tools: a client of the SDK connected to a server in memory, in one line, at any revision; with answers to
 * questions, and with every message that went over the wire.
 *
 * A subpath of its own, `@agenttool/server/testing`: it needs `@modelcontextprotocol/client`.
 */
import type * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { CallToolResult, Client, ElicitResult } from "@modelcontextprotocol/client"
import type * as Calls from "./Calls.ts"
import * as McpServer from "./McpServer.ts"
import * as Memory from "./Memory.ts"
import type * as Registry from "./Registry.ts"
import type * as Settings from "./Settings.ts"

/**
 * How a test connects.
 *
 * - `tools`: what is served.
 * - `answers`: the answers to questions in the order asked; out of answers, a question is answered `cancel`. Or `answer`, a
 *   function of the question.
 * - `protocolVersion`, `capabilities`: as in `McpServer.layerTest`. Every member of `Settings` may be given as well.
 */
export interface Options<Tools extends ReadonlyArray<Tool.Any>> extends Memory.Options, Partial<Settings.Settings> {
  readonly tools: Tools
  readonly answers?: ReadonlyArray<ElicitResult> | undefined
}

/**
 * A connected test.
 *
 * - `client`: the SDK's client. - `call`: calls a tool. - `text`: calls a tool and gives the text of its result.
 * - `messages`: what went over the wire so far, in order. - `count`: the calls that are left.
 */
export interface McpTest {
  readonly client: Client
  readonly call: (name: string, args?: Readonly<Record<string, unknown>>) => Effect.Effect<CallToolResult>
  readonly text: (name: string, args?: Readonly<Record<string, unknown>>) => Effect.Effect<string>
  readonly messages: Effect.Effect<ReadonlyArray<Memory.Message>>
  readonly count: Effect.Effect<Calls.Count>
}

/**
 * Connects until the scope closes.
 *
 * @example
 * ```ts
 * import { Elicitor, Tool } from "@agenttool/core"
 * import { connect } from "@agenttool/server/testing"
 * import { Effect } from "effect"
 *
 * const wipe = Tool.make("wipe", {
 *   execute: () => Effect.map(Elicitor.confirm("Really?"), (sure) => (sure ? "wiped" : "kept"))
 * })
 *
 * const test = Effect.gen(function* () {
 *   const mcp = yield* connect({ tools: [wipe], answers: [{ action: "accept", content: { confirm: true } }] })
 *   return yield* mcp.text("wipe") // "wiped"
 * }).pipe(Effect.scoped)
 * ```
 */
export const connect = <const Tools extends ReadonlyArray<Tool.Any>>(
  options: Options<Tools>
): Effect.Effect<McpTest, Registry.RegistrationError, McpServer.Needs<Tools> | Scope.Scope> =>
  Effect.gen(function* () {
    const messages: Array<Memory.Message> = []
    let asked = 0
    const built = yield* Layer.build(
      Layer.fresh(
        McpServer.layerTest({
          ...options,
          answer: options.answer ?? (() => options.answers?.[asked++] ?? { action: "cancel" }),
          record: (message) => {
            messages.push(message)
          },
          registrations: McpServer.tools(...options.tools)
        })
      )
    )
    const client = Context.get(built, Memory.TestClient)
    const { count } = Context.get(built, Memory.TestCalls)
    const call: McpTest["call"] = (name, args = {}) =>
      Effect.promise((signal) => client.callTool({ name, arguments: { ...args } }, { signal }))
    return {
      client,
      call,
      text: (name, args) => Effect.map(call(name, args), textOf),
      messages: Effect.sync(() => [...messages]),
      count
    }
  })

const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("")
