/**
 * A TCP connection that is written to and read from by hand, for clients that do not behave.
 */
import { Effect, type Scope } from "effect"
import { connect } from "node:net"
import { until } from "./Link.ts"

export interface Socket {
  readonly write: (text: string | Uint8Array) => Effect.Effect<void>
  /** Everything that came so far. */
  readonly received: () => string
  /** Waits until this has come. */
  readonly receives: (words: string | RegExp) => Effect.Effect<string>
  /** Waits until the other side has closed the connection. */
  readonly closed: Effect.Effect<void>
  readonly isClosed: () => boolean
  /** Stops and starts reading. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Closes its own side: it has nothing more to say. */
  readonly end: Effect.Effect<void>
  /** Cuts the connection, without a goodbye. */
  readonly cut: Effect.Effect<void>
}

/** A connection to a port of this machine; it is cut when the scope closes. */
export const socket = (port: number): Effect.Effect<Socket, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof connect>>((resume) => {
        const made = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true }, () =>
          resume(Effect.succeed(made))
        )
      }),
      (made) => Effect.sync(() => made.destroy())
    ),
    (made) => {
      let text = ""
      let closed = false
      made.setEncoding("utf8")
      made.on("data", (chunk) => {
        text += String(chunk)
      })
      made.on("error", () => {})
      for (const event of ["end", "close"]) {
        made.on(event, () => {
          closed = true
        })
      }
      const has = (words: string | RegExp) => (seen: string) =>
        typeof words === "string" ? seen.includes(words) : words.test(seen)
      return {
        write: (data) => Effect.sync(() => void made.write(data)),
        received: () => text,
        receives: (words) =>
          until(
            Effect.sync(() => text),
            has(words)
          ),
        closed: Effect.asVoid(
          until(
            Effect.sync(() => closed),
            (seen) => seen
          )
        ),
        isClosed: () => closed,
        pause: Effect.sync(() => void made.pause()),
        resume: Effect.sync(() => void made.resume()),
        end: Effect.sync(() => void made.end()),
        cut: Effect.sync(() => void made.resetAndDestroy())
      }
    }
  )

/** The head of a POST to the endpoint; the body is for the test to write. */
export const head = (headers: Readonly<Record<string, string | number>>, path = "/mcp"): string =>
  [
    `POST ${path} HTTP/1.1`,
    ...Object.entries({
      host: "127.0.0.1",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers
    }).map(([name, value]) => `${name}: ${value}`),
    "",
    ""
  ].join("\r\n")

/** A whole POST. */
export const post = (body: string, headers: Readonly<Record<string, string | number>> = {}): string =>
  head({ ...headers, "content-length": Buffer.byteLength(body) }) + body

/** One chunk of a body of unknown length. */
export const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
