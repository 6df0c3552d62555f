/**
 * An HTTP endpoint that listens on a real socket, and requests to it that are written by hand, in either era.
 *
 * `Link` has the SDK's client and one set of tools for all suites; here each test brings its own tools, what the host puts
 * around them, and whatever headers and bodies it wants to send.
 */
import { Calls, McpServer, type TokenVerifier } from "@agenttool/server"
import { NodeHttpServer } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Logger, References, type Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer, type IncomingHttpHeaders, request as httpRequest } from "node:http"
import type { Message } from "./Link.ts"
import { envelope, initialize, initialized } from "./rawMessages.ts"

export { until, within } from "./Link.ts"

type HttpOptions = Omit<Parameters<typeof McpServer.layerHttp>[0], "name" | "version" | "registrations">

export interface Options extends HttpOptions {
  readonly registrations: Layer.Layer<never, McpServer.RegistrationError, McpServer.Core>
  /** What the host has put around the server: a verifier, a visibility, a tracer. */
  readonly around?: Layer.Layer<never>
  readonly protection?: TokenVerifier.Protection
}

export interface Listening {
  readonly url: string
  readonly port: number
  /** The calls that are left. */
  readonly count: Effect.Effect<Calls.Count>
  /** Everything that was logged, at any level. */
  readonly log: () => string
}

/** Keeps every log line, at any level. */
export const capturingLog = () => {
  const lines: Array<string> = []
  const logger = Logger.map(Logger.formatLogFmt, (line) => {
    lines.push(line)
  })
  return {
    log: () => lines.join("\n"),
    layer: Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "All"))
  }
}

/** Listens on a port of this machine until the scope closes. */
export const listen = ({
  around = Layer.empty,
  registrations,
  ...options
}: Options): Effect.Effect<Listening, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { layer, log } = capturingLog()
    let calls: Calls.Calls["Service"] | undefined
    const probe = Layer.effectDiscard(
      Effect.map(Effect.service(Calls.Calls), (found) => {
        calls = found
      })
    )
    const context = yield* HttpRouter.serve(
      McpServer.layerHttp({
        name: "suite",
        version: "1.2.3",
        shutdownGrace: 0,
        ...options,
        registrations: Layer.merge(registrations, probe)
      }),
      { disableLogger: true, disableListenLog: true }
    ).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0, gracefulShutdownTimeout: 1 })
      ),
      Layer.provide(around),
      Layer.provide(layer),
      Layer.fresh,
      Layer.build,
      // A server that does not start fails the test.
      Effect.orDie
    )
    assert.isDefined(calls)
    const { count } = calls
    const origin = HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
    return { url: `${origin}${options.path ?? "/mcp"}`, port: Number(new URL(origin).port), count, log }
  })

// ----- requests

export interface Ask {
  readonly method?: string
  /** Sent as JSON, as a message of JSON-RPC. */
  readonly message?: Readonly<Record<string, unknown>>
  /** Sent as it is. */
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The messages of the body, be it JSON or a stream. */
  readonly messages: ReadonlyArray<Message>
}

const messagesOf = (type: string, text: string): ReadonlyArray<Message> =>
  type.startsWith("text/event-stream")
    ? text
        .split("\n")
        .filter((line) => line.startsWith("data: {"))
        .map((line) => JSON.parse(line.slice(6)) as Message)
    : type.startsWith("application/json") && text !== ""
      ? [JSON.parse(text) as Message]
      : []

/** One HTTP request, with whatever headers: `fetch` does not let everybody set `Host`. Interrupting it drops it. */
export const ask = (url: string, { body, headers = {}, message, method = "POST" }: Ask): Effect.Effect<Answer> =>
  Effect.callback<Answer>((resume) => {
    const sent = body ?? (message === undefined ? undefined : JSON.stringify({ jsonrpc: "2.0", ...message }))
    const call = httpRequest(
      url,
      {
        method,
        agent: false,
        headers: {
          accept: "application/json, text/event-stream",
          ...(sent === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk) => {
          text += String(chunk)
        })
        response.on("end", () =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text,
              messages: messagesOf(response.headers["content-type"] ?? "", text)
            })
          )
        )
      }
    )
    call.on("error", (error) => resume(Effect.die(error)))
    call.end(sent)
    return Effect.sync(() => {
      call.removeAllListeners("error").on("error", () => {})
      call.destroy()
    })
  })

/** The headers that a request of 2026-07-28 repeats. */
export const modernHeaders = (name: string) => ({
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": name
})

export interface CallOptions {
  readonly id?: string | number
  readonly params?: Readonly<Record<string, unknown>>
  readonly meta?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

/** A call of 2026-07-28. */
export const modernAsk = (name: string, { headers, id = 1, meta, params }: CallOptions = {}): Ask => ({
  message: {
    id,
    method: "tools/call",
    params: { name, arguments: {}, ...params, _meta: { ...envelope, ...meta } }
  },
  headers: { ...modernHeaders(name), ...headers }
})

/** Any other request of 2026-07-28. */
export const modernRequest = (method: string, { headers, id = 1, params }: CallOptions = {}): Ask => ({
  message: { id, method, params: { ...params, _meta: envelope } },
  headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers }
})

/** The headers of a request in a session of a 2025 client. */
export const inSession = (id: string, version = "2025-11-25") => ({
  "mcp-session-id": id,
  "mcp-protocol-version": version
})

/** A session of a 2025 client: its id. */
export const open = (
  url: string,
  {
    headers = {},
    version = "2025-11-25"
  }: { readonly headers?: Record<string, string>; readonly version?: string } = {}
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const message = { ...initialize, params: { ...initialize.params, protocolVersion: version } }
    const { headers: got, status, text } = yield* ask(url, { message, headers })
    assert.strictEqual(status, 200, text)
    const session = got["mcp-session-id"]
    if (typeof session !== "string") return assert.fail("no session")
    yield* ask(url, { message: initialized, headers: { ...inSession(session, version), ...headers } })
    return session
  })

/** A request in such a session. */
export const legacyAsk = (
  session: string,
  message: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {}
): Ask => ({ message, headers: { ...inSession(session), ...headers } })

/** The last message of an answer: its response. */
export const responseOf = ({ messages, status, text }: Answer): Message =>
  messages.at(-1) ?? assert.fail(`no response: ${status} ${text}`)

/** The text of a result's only block. */
export const textOf = (answer: Answer): string => {
  const { error, result } = responseOf(answer)
  assert.isUndefined(error, JSON.stringify(error))
  const [block] = result?.content ?? []
  return block?.text ?? assert.fail(`no text: ${JSON.stringify(result)}`)
}
