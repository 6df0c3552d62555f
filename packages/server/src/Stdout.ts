/**
 * Who may write to standard output: the protocol alone (P94). This module owns that.
 *
 * While the layer lives, whatever else writes to standard output, a tool, a library, a logger, goes
 * to standard error; the protocol has the one writer that still reaches standard output. What a child process or a native
 * library writes to the file descriptor itself cannot be redirected: give a child process its own output.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Writable } from "node:stream"

/** The writer of the protocol. */
export class Stdout extends Context.Service<Stdout, { readonly protocol: Writable }>()("@agenttool/server/Stdout") {}

/** Takes standard output for the protocol, and gives it back when its scope closes. */
export const layer: Layer.Layer<Stdout> = Layer.effect(
  Stdout,
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const { stdout, stderr } = process
        const write = stdout.write
        const toStdout = write.bind(stdout)
        const protocol = new Writable({
          decodeStrings: false,
          write: (chunk: unknown, _encoding, done) => {
            toStdout(typeof chunk === "string" ? escapeSeparators(chunk) : String(chunk), done)
          }
        })
        // A reader that went away is the end of the connection, which the protocol's writer learns by its callback;
        // without a listener here it would be the end of the process.
        const ignore = () => {}
        stdout.on("error", ignore)
        stdout.write = stderr.write.bind(stderr)
        return { protocol, ignore, write }
      }),
      ({ ignore, write }) =>
        Effect.sync(() => {
          process.stdout.write = write
          process.stdout.off("error", ignore)
        })
    ),
    ({ protocol }) => ({ protocol })
  )
)

// JSON allows these in strings as they are; line readers of some languages take them for the end of a line.
const escapeSeparators = (text: string): string =>
  separators.test(text) ? text.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029") : text

const separators = /[\u2028\u2029]/
