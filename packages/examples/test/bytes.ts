/**
 * The stdio programs of this package, written to and read from byte by byte.
 */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

/** A JSON-RPC message, of which only the members that a test reads are named. */
export interface Message {
  readonly jsonrpc?: unknown
  readonly id?: unknown
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export interface Program {
  readonly write: (bytes: string | Uint8Array) => Effect.Effect<void>
  readonly endInput: Effect.Effect<void>
  /** Nobody reads its standard output from now on. */
  readonly stopReading: Effect.Effect<void>
  readonly pauseReading: Effect.Effect<void>
  readonly resumeReading: Effect.Effect<void>
  /** Every message that it has written, checked to be nothing else. */
  readonly messages: Effect.Effect<ReadonlyArray<Message>>
  /** Waits until there are so many messages. */
  readonly count: (messages: number) => Effect.Effect<void>
  /** Waits until there are so many responses with this id; the last of them. */
  readonly response: (id: unknown, count?: number) => Effect.Effect<Message>
  readonly stderr: () => string
  readonly said: (words: string) => Effect.Effect<void>
  /** Waits until it has ended by itself; its exit code. */
  readonly exit: Effect.Effect<number | null>
}

/** Starts `src/NAME.ts`; it is killed when the scope closes, whatever has become of it. */
export const start = (name: string): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(
          process.execPath,
          ["--conditions=@agenttool/source", fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url))],
          { stdio: ["pipe", "pipe", "pipe"] }
        )
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    (child) => {
      const chunks: Array<Buffer> = []
      let stderr = ""
      let ended: { readonly code: number | null } | undefined
      child.stdout.on("data", (chunk: Buffer) => void chunks.push(chunk))
      child.stderr.on("data", (chunk) => {
        stderr += String(chunk)
      })
      // It may have ended before everything was written.
      child.stdin.on("error", () => {})
      child.on("exit", (code) => {
        ended = { code }
      })
      const messages = Effect.sync(() => framesOf(Buffer.concat(chunks)))
      return {
        write: (bytes) =>
          Effect.callback<void>((resume) => {
            child.stdin.write(bytes, () => resume(Effect.void))
          }),
        endInput: Effect.sync(() => void child.stdin.end()),
        stopReading: Effect.sync(() => void child.stdout.destroy()),
        pauseReading: Effect.sync(() => void child.stdout.pause()),
        resumeReading: Effect.sync(() => void child.stdout.resume()),
        messages,
        count: (expected) =>
          Effect.asVoid(
            until(
              `${expected} messages`,
              Effect.map(messages, (seen) => (seen.length < expected ? undefined : seen))
            )
          ),
        response: (id, count = 1) =>
          until(
            `response ${count} to ${String(id)}`,
            Effect.map(messages, (seen) => {
              const responses = seen.filter((message) => message.id === id && message.method === undefined)
              return responses.length < count ? undefined : responses[count - 1]
            })
          ),
        stderr: () => stderr,
        said: (words) =>
          Effect.asVoid(
            until(
              words,
              Effect.sync(() => (stderr.includes(words) ? { words } : undefined))
            )
          ),
        exit: Effect.map(
          until(
            "the end",
            Effect.sync(() => ended)
          ),
          ({ code }) => code
        )
      }
    }
  )

/** The messages of an output: valid UTF-8, one compact JSON-RPC message per line, each line ended by a line feed alone. */
const framesOf = (output: Buffer): ReadonlyArray<Message> => {
  const complete = output.subarray(0, output.lastIndexOf("\n") + 1)
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(complete)
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const message = JSON.parse(line) as Message // of which only this is known
      assert.strictEqual(message.jsonrpc, "2.0")
      assert.strictEqual(escaped(JSON.stringify(message)), line)
      return message
    })
}

const escaped = (json: string): string => json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")

/** Looks until there is something to see, for a minute at most. */
const until = <A extends object>(what: string, look: Effect.Effect<A | undefined>): Effect.Effect<A> =>
  Effect.flatMap(look, (seen) =>
    seen === undefined ? Effect.andThen(Effect.sleep("5 millis"), until(what, look)) : Effect.succeed(seen)
  ).pipe(
    Effect.timeoutOrElse({
      duration: "1 minute",
      orElse: () => Effect.die(new Error(`waited a minute for ${what}`))
    })
  )

// ----- messages

/** One message, on a line of its own. */
export const line = (message: Readonly<Record<string, unknown>>): string =>
  `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`

/** What a request of 2026-07-28 says of itself. */
export const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } }
}

/** A request of 2026-07-28. */
export const modern = (
  id: unknown,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  meta: Readonly<Record<string, unknown>> = {}
): string => line({ id, method, params: { ...params, _meta: { ...envelope, ...meta } } })

/** A call of 2026-07-28. */
export const call = (
  id: unknown,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  meta: Readonly<Record<string, unknown>> = {}
): string => modern(id, "tools/call", { name, arguments: args }, meta)

/** What a client of 2025-11-25 opens with. */
export const initialize = line({
  id: "initialize",
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bytes", version: "0.0.0" }
  }
})

/** A call of 2025-11-25. */
export const legacyCall = (id: unknown, name: string, args: Readonly<Record<string, unknown>> = {}): string =>
  line({ id, method: "tools/call", params: { name, arguments: args } })

/** The text of a result's only block. */
export const textOf = ({ error, result }: Message): string => {
  assert.isUndefined(error, JSON.stringify(error))
  const content = result?.content as ReadonlyArray<{ readonly text?: string }> // as results are
  assert.lengthOf(content, 1)
  return content[0]?.text ?? ""
}
