/**
 * A served set of tools and a client of the SDK that is connected to it, over any transport and in either era.
 *
 * The client does what its users do. `send` puts a hand-written request on the very same connection, so that a test can
 * control rounds, tokens and states itself.
 */
import { CallsMemory, Connected, McpServer, Registry, Settings } from "./server.ts"
import { NodeHttpServer } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import {
  type CallToolResult,
  Client,
  type ClientCapabilities,
  type ElicitRequest,
  type ElicitResult,
  type JSONRPCMessage,
  type Progress,
  StreamableHTTPClientTransport,
  type Transport
} from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { Context, Deferred, Effect, Layer, Logger, Queue, Schedule, type Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import * as Tools from "./tools.ts"

export type Era = "2026-07-28" | "2025-11-25"
export type TransportName = "memory" | "stdio" | "http"

export const modern: Era = "2026-07-28"

/** A JSON object of which only the members that a test reads are named. */
export interface Message {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Result
  readonly error?: { readonly code: number; readonly message: string }
}

export interface Result {
  readonly content?: ReadonlyArray<{ readonly type: string; readonly text?: string }>
  readonly isError?: boolean
  readonly resultType?: string
  readonly requestState?: string
  readonly inputRequests?: Readonly<Record<string, { readonly method: string; readonly params: unknown }>>
  readonly [member: string]: unknown
}

/** A request on its way: `seen` is what came for it before its response, `late` after that. */
export interface Sent {
  readonly id: string
  readonly response: Effect.Effect<Message>
  readonly seen: ReadonlyArray<Message>
  readonly cancel: Effect.Effect<void>
}

export interface SendOptions {
  readonly id?: string
  readonly token?: string | number
  readonly capabilities?: ClientCapabilities
}

/** A question that is with the user. */
export interface Question {
  readonly params: ElicitRequest["params"]
  readonly reply: (answer: ElicitResult) => Effect.Effect<void>
  readonly fail: (message: string) => Effect.Effect<void>
  /** Waits until the server takes the question back. */
  readonly withdrawn: Effect.Effect<void>
}

export interface LinkService {
  readonly transport: TransportName
  readonly era: Era
  readonly client: Client
  readonly url: string
  /** Calls a tool as the client does; interrupting it cancels the call. */
  readonly call: (
    name: string,
    args?: Record<string, unknown>,
    options?: { readonly onProgress?: (progress: Progress) => void }
  ) => Effect.Effect<CallToolResult, Error>
  readonly send: (
    method: string,
    params: Readonly<Record<string, unknown>>,
    options?: SendOptions
  ) => Effect.Effect<Sent>
  readonly notify: (method: string, params: Readonly<Record<string, unknown>>) => Effect.Effect<void>
  /** Everything that the server has sent. */
  readonly received: ReadonlyArray<Message>
  /** The next question that comes to the user. */
  readonly question: Effect.Effect<Question>
  readonly counts: Effect.Effect<Tools.Counts>
  readonly log: () => string
  /** A second client of the same server; over stdio, of a server of its own. */
  readonly another: (options?: {
    readonly capabilities?: ClientCapabilities
  }) => Effect.Effect<LinkService, never, Scope.Scope>
}

export class Link extends Context.Service<Link, LinkService>()("test/Link") {}

const info = { name: "suite", version: "1.2.3", instructions: "Call the tools." }

const program = fileURLToPath(new URL("./program.ts", import.meta.url))

/** How a program of the tests is started. */
export const arguments_ = (...args: ReadonlyArray<string>) => ["--conditions=@agenttool/source", program, ...args]

export interface Options {
  readonly transport: TransportName
  readonly era: Era
  readonly settings?: Partial<Settings.Settings>
  readonly capabilities?: ClientCapabilities
}

/** Where clients connect: a server, or over stdio one server for each. */
interface Server {
  readonly open: Effect.Effect<
    {
      readonly transport: Transport
      readonly log: () => string
      readonly url?: string
      /** Ends the session, where closing the connection does not. */
      readonly end?: () => Promise<void>
    },
    never,
    Scope.Scope
  >
}

const capturingLog = () => {
  const lines: Array<string> = []
  const logger = Logger.map(Logger.formatLogFmt, (line) => {
    lines.push(line)
  })
  return { log: () => lines.join("\n"), layer: Logger.layer([logger]) }
}

const inMemory = (settings: Partial<Settings.Settings>) =>
  Effect.gen(function* () {
    const { layer, log } = capturingLog()
    const context = yield* Tools.make().layer.pipe(
      Layer.provideMerge(Layer.provideMerge(CallsMemory.layer, Registry.layer)),
      Layer.provideMerge(Layer.succeed(Settings.Settings, Settings.make(settings))),
      Layer.provideMerge(layer),
      Layer.build
    )
    const server: Server = {
      open: Effect.gen(function* () {
        const [transport, serverSide] = InMemoryTransport.createLinkedPair()
        yield* Effect.provideContext(Connected.serve(info, serverSide), context)
        return { transport, log }
      })
    }
    return server
  })

const overHttp = (settings: Partial<Settings.Settings>) =>
  Effect.gen(function* () {
    const { layer, log } = capturingLog()
    const context = yield* HttpRouter.serve(
      McpServer.layerHttp({ ...info, ...settings, registrations: Tools.make().layer }),
      { disableLogger: true, disableListenLog: true }
    ).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0, gracefulShutdownTimeout: 1 })
      ),
      Layer.provide(layer),
      Layer.build
    )
    const url = `${HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)}/mcp`
    const server: Server = {
      open: Effect.sync(() => {
        const transport = new StreamableHTTPClientTransport(new URL(url))
        return { transport, log, url, end: () => transport.terminateSession() }
      })
    }
    return server
  })

const overStdio = (settings: Partial<Settings.Settings>) =>
  Effect.sync(
    (): Server => ({
      open: Effect.sync(() => {
        const transport = new StdioClientTransport({
          command: process.execPath,
          args: arguments_("stdio", JSON.stringify(settings)),
          stderr: "pipe"
        })
        let text = ""
        transport.stderr?.on("data", (chunk) => {
          text += String(chunk)
        })
        return { transport, log: () => text }
      })
    })
  )

const startServer = { memory: inMemory, http: overHttp, stdio: overStdio }

/** Serves the tools, and connects a client. */
export const make = ({
  capabilities,
  era,
  settings = {},
  transport
}: Options): Effect.Effect<LinkService, never, Scope.Scope> =>
  // A server that does not start fails the suite.
  Effect.flatMap(Effect.orDie(startServer[transport](settings)), (server) =>
    connect(server, transport, era, capabilities)
  )

/** The same as a layer: one server and one connection for all tests of a suite. */
export const layer = (options: Options): Layer.Layer<Link> => Layer.effect(Link, make(options))

const formAndUrl: ClientCapabilities = { elicitation: { form: {}, url: {} } }

const connect = (
  server: Server,
  name: TransportName,
  era: Era,
  capabilities: ClientCapabilities = formAndUrl
): Effect.Effect<LinkService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { end, log, transport, url = "" } = yield* server.open
    const questions = yield* Queue.unbounded<Question>()
    const client = new Client(
      { name: "test", version: "0.0.0" },
      {
        capabilities,
        inputRequired: { maxRounds: 20 },
        versionNegotiation: { mode: era === modern ? { pin: era } : "legacy" }
      }
    )
    // Of responses that are not its own.
    client.onerror = () => {}
    if (capabilities.elicitation !== undefined) {
      client.setRequestHandler(
        "elicitation/create",
        (request, context) =>
          new Promise<ElicitResult>((resolve, reject) => {
            const { signal } = context.mcpReq
            Queue.offerUnsafe(questions, {
              params: request.params,
              reply: (answer) => Effect.sync(() => resolve(answer)),
              fail: (message) => Effect.sync(() => reject(new Error(message))),
              withdrawn: Effect.callback<void>((resume) => {
                if (signal.aborted) resume(Effect.void)
                else signal.addEventListener("abort", () => resume(Effect.void), { once: true })
              })
            })
          })
      )
    }
    yield* Effect.acquireRelease(
      Effect.promise(() => client.connect(transport)),
      () =>
        Effect.promise(async () => {
          await end?.()
          await client.close()
        })
    )

    // A program that takes a while to start, or does not start at all, is no matter of the first test.
    if (name === "stdio") {
      yield* Effect.raceFirst(
        Effect.promise(() => client.listTools()),
        Effect.callback<never>((resume) => {
          client.onclose = () => resume(Effect.die(new Error(`the server has ended: ${log()}`)))
        })
      )
    }

    const received: Array<Message> = []
    const waiting = new Map<string, { readonly token: string | number; readonly sent: (message: Message) => void }>()
    const { onmessage } = transport
    transport.onmessage = (message, extra) => {
      const read = message as Message // JSON
      received.push(read)
      if (read.method === "notifications/progress") {
        for (const { sent, token } of waiting.values()) if (read.params?.progressToken === token) sent(read)
      }
      const mine = typeof read.id === "string" && read.method === undefined ? waiting.get(read.id) : undefined
      if (mine === undefined) onmessage?.(message, extra)
      else mine.sent(read)
    }

    const put = (message: Message & { readonly jsonrpc: "2.0" }, requestSignal?: AbortSignal) =>
      Effect.promise(() =>
        transport
          .send(message as JSONRPCMessage, requestSignal === undefined ? {} : { requestSignal })
          .catch((error: unknown) => {
            if (requestSignal?.aborted !== true) throw error
          })
      )

    const enveloped = (params: Readonly<Record<string, unknown>>, options: SendOptions = {}) => {
      const meta = {
        ...(era === modern
          ? {
              "io.modelcontextprotocol/protocolVersion": era,
              "io.modelcontextprotocol/clientInfo": { name: "test", version: "0.0.0" },
              "io.modelcontextprotocol/clientCapabilities": options.capabilities ?? capabilities
            }
          : {}),
        ...(options.token === undefined ? {} : { progressToken: options.token })
      }
      return Object.keys(meta).length === 0 ? params : { ...params, _meta: meta }
    }

    let requests = 0
    const send: LinkService["send"] = (method, params, options = {}) =>
      Effect.gen(function* () {
        const id = options.id ?? `raw-${++requests}`
        const response = yield* Deferred.make<Message>()
        const seen: Array<Message> = []
        const controller = new AbortController()
        waiting.set(id, {
          token: options.token ?? id,
          sent: (message) => {
            if (message.method === undefined) Deferred.doneUnsafe(response, Effect.succeed(message))
            else seen.push(message)
          }
        })
        // A response stream stays open while the request runs: sending it is not awaited.
        yield* Effect.forkDetach(
          put({ jsonrpc: "2.0", id, method, params: enveloped(params, options) }, controller.signal),
          { startImmediately: true }
        )
        const cancel =
          name === "http" && era === modern
            ? Effect.sync(() => controller.abort())
            : put({ jsonrpc: "2.0", method: "notifications/cancelled", params: enveloped({ requestId: id }) })
        return { id, response: Deferred.await(response), seen, cancel }
      })

    const call: LinkService["call"] = (tool, args = {}, options = {}) =>
      Effect.tryPromise({
        try: (signal) =>
          client.callTool(
            { name: tool, arguments: args },
            { signal, ...(options.onProgress === undefined ? {} : { onprogress: options.onProgress }) }
          ),
        catch: (error) => (error instanceof Error ? error : new Error(String(error)))
      })

    return {
      transport: name,
      era,
      client,
      url,
      call,
      send,
      notify: (method, params) => put({ jsonrpc: "2.0", method, params: enveloped(params) }),
      received,
      question: within("a question", Queue.take(questions)),
      counts: Effect.map(
        Effect.orDie(call("counts")),
        (result) => JSON.parse(textOf(result)) as Tools.Counts // as the tool writes it
      ),
      log,
      another: (options) => connect(server, name, era, options?.capabilities ?? capabilities)
    }
  })

// ----- what tests say

/** The text of a result's only block. */
export const textOf = (result: { readonly content?: unknown }): string => {
  const blocks: ReadonlyArray<unknown> = Array.isArray(result.content) ? result.content : []
  assert.lengthOf(blocks, 1)
  const { text, type } = blocks[0] as { readonly type?: unknown; readonly text?: unknown } // JSON
  assert.strictEqual(type, "text")
  return String(text)
}

/** A hand-written call. */
export const sendCall = (
  link: LinkService,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  options?: SendOptions
) => link.send("tools/call", { name, arguments: args }, options)

/** Its response. */
export const sendCallAndWait = (
  link: LinkService,
  name: string,
  args?: Readonly<Record<string, unknown>>,
  options?: SendOptions
) => Effect.flatMap(sendCall(link, name, args, options), ({ response }) => within(`the response to ${name}`, response))

/** The result of a response that has one. */
export const resultOf = ({ error, result }: Message): Result => {
  assert.isUndefined(error, JSON.stringify(error))
  assert.isDefined(result)
  return result
}

/** The text of a result that is no error. */
export const goodText = (message: Message): string => {
  const result = resultOf(message)
  assert.isUndefined(result.isError, JSON.stringify(result))
  return textOf(result)
}

/** The text of an error result. */
export const errorText = (message: Message): string => {
  const result = resultOf(message)
  assert.strictEqual(result.isError, true, JSON.stringify(result))
  return textOf(result)
}

/** The error of a response that has one. */
export const errorOf = ({ error, result }: Message): { readonly code: number; readonly message: string } => {
  assert.isUndefined(result, JSON.stringify(result))
  assert.isDefined(error)
  return error
}

const patience = "10 seconds"

/** Waits for something that will happen, and fails if it does not. */
export const within = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(effect, {
    duration: patience,
    orElse: () => Effect.die(new Error(`waited ${patience} for ${what}`))
  })

/** Looks again and again until what it sees is right; fails with what it saw last. */
export const until = <A>(look: Effect.Effect<A>, isRight: (seen: A) => boolean): Effect.Effect<A> =>
  Effect.suspend(() => {
    let last: A | undefined
    return look.pipe(
      Effect.tap((seen) =>
        Effect.sync(() => {
          last = seen
        })
      ),
      Effect.repeat({ until: isRight, schedule: Schedule.spaced("5 millis") }),
      Effect.map((seen) => seen as A),
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.die(new Error(`still ${JSON.stringify(last)}`))
      })
    )
  })

/** No call is left, and what tools had acquired is released. */
export const settled = (link: LinkService) =>
  until(
    link.counts,
    ({ acquired, attached, fibers, parked, released }) =>
      attached === 0 && parked === 0 && fibers === 0 && acquired === released
  )

/** A test on the suite's link: nothing may be left after it. */
export const on =
  <E>(body: (link: LinkService) => Effect.Effect<unknown, E, Scope.Scope>) =>
  () =>
    Effect.flatMap(Link, (link) => Effect.andThen(body(link), settled(link)))
