/**
 * A server of the suites as a child process that is written to and read from by hand, line by line.
 */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { arguments_, type Message, until } from "./Link.ts"

export interface Child {
  readonly pid: number
  readonly write: (text: string) => Effect.Effect<void>
  readonly send: (message: Readonly<Record<string, unknown>>) => Effect.Effect<void>
  readonly endInput: Effect.Effect<void>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** The lines of standard output, unread. */
  readonly lines: () => ReadonlyArray<string>
  readonly stderr: () => string
  /** Both outputs: a program over HTTP logs to standard output. */
  readonly output: () => string
  /** Waits for the response with this id. */
  readonly response: (id: unknown) => Effect.Effect<Message>
  readonly said: (words: string) => Effect.Effect<void>
  /** Waits until the process has ended; how it did, and after how many milliseconds. */
  readonly exit: Effect.Effect<{ readonly code: number | null; readonly millis: number }>
}

/** Starts it; it is killed when the scope closes, whatever has become of it. */
export const start = (
  args: ReadonlyArray<string>,
  options: { readonly emptyInput?: boolean } = {}
): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, args, { stdio: [options.emptyInput === true ? "ignore" : "pipe", "pipe", "pipe"] })
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    (child) => {
      let out = ""
      let err = ""
      let ended: { readonly code: number | null; readonly millis: number } | undefined
      let asked = performance.now()
      child.stdout?.on("data", (chunk) => {
        out += String(chunk)
      })
      child.stderr?.on("data", (chunk) => {
        err += String(chunk)
      })
      child.stdin?.on("error", () => {})
      child.on("close", (code) => {
        ended = { code, millis: performance.now() - asked }
      })
      const lines = () => out.split("\n").filter((line) => line !== "")
      const write = (text: string) => Effect.sync(() => void child.stdin?.write(text))
      return {
        pid: child.pid ?? 0,
        write,
        send: (message) => write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
        endInput: Effect.sync(() => {
          asked = performance.now()
          child.stdin?.end()
        }),
        kill: (signal) =>
          Effect.sync(() => {
            asked = performance.now()
            child.kill(signal)
          }),
        lines,
        stderr: () => err,
        output: () => out + err,
        response: (id) =>
          Effect.map(
            until(
              Effect.sync(() => lines().map((line) => JSON.parse(line) as Message)), // the protocol alone writes there
              (messages) => messages.some((message) => message.id === id && message.method === undefined)
            ),
            (messages) => messages.find((message) => message.id === id && message.method === undefined) ?? {}
          ),
        said: (words) =>
          Effect.asVoid(
            until(
              Effect.sync(() => out + err),
              (text) => text.includes(words)
            )
          ),
        exit: Effect.map(
          until(
            Effect.sync(() => ({ ended, err })),
            (seen) => seen.ended !== undefined
          ),
          (seen) => seen.ended ?? { code: null, millis: 0 }
        )
      }
    }
  )

/** The server of the suites over stdio. */
export const stdio = (
  settings: Readonly<Record<string, unknown>> = {},
  options?: { readonly emptyInput?: boolean }
): Effect.Effect<Child, never, Scope.Scope> => start(arguments_("stdio", JSON.stringify(settings)), options)

/** The same over HTTP, and where it listens. */
export const http = (
  settings: Readonly<Record<string, unknown>> = {}
): Effect.Effect<Child & { readonly url: string }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* start(arguments_("http", JSON.stringify(settings)))
    const said = yield* until(Effect.sync(child.stderr), (text) => /listening on \S+\n/.test(text))
    return { ...child, url: /listening on (\S+)/.exec(said)?.[1] ?? "" }
  })
