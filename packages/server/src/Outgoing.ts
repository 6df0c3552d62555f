/**
 * What of the stream of a response its reader has not taken yet. The SDK writes into a stream without looking whether
 * anybody reads; whoever writes much waits here for its reader, so that a slow one does not fill the memory.
 *
 * And that there is a stream at all is told at once: an HTTP server sends the head of a response with its first bytes, for
 * which the reader of a stream might wait for long.
 */
import * as Context from "effect/Context"

/** The stream of one response. */
export interface Outgoing {
  /** Says that one message is about to be written; called back once it was taken, or there is nobody to take it. */
  readonly expect: (taken: () => void) => Expected
  /** Puts itself between the stream of a response and its reader. Other responses are left as they are. */
  readonly watch: (response: Response) => Response
}

/** A message that is expected; `drop` says that it was not written after all. */
export interface Expected {
  readonly drop: () => void
}

/** The stream of the response to this request; none, where writing is waited for by itself. */
export const Outgoing: Context.Reference<Outgoing | undefined> = Context.Reference<Outgoing | undefined>(
  "@agenttool/server/Outgoing",
  { defaultValue: () => undefined }
)

/** Of a response that is still to come. */
export const make = (): Outgoing => {
  // In the order in which they are written. What is written beside them is taken for one of them, which only means that
  // a few more may be under way.
  const expected = new Set<() => void>()
  let over = false

  const take = (taken: () => void): void => {
    if (expected.delete(taken)) taken()
  }
  const end = (): void => {
    over = true
    for (const taken of expected) take(taken)
  }

  return {
    expect: (taken) => {
      const once = () => taken()
      expected.add(once)
      if (over) queueMicrotask(() => take(once))
      return { drop: () => take(once) }
    },
    watch: (response) => {
      if (response.body === null || !isEventStream(response)) {
        end()
        return response
      }
      const reader = response.body.getReader()
      const chunks = chunksOf(reader)
      const body = new ReadableStream<Uint8Array>(
        {
          pull: (controller) =>
            chunks.next().then(
              ({ done, value }) => {
                if (done === true) {
                  end()
                  controller.close()
                  return
                }
                controller.enqueue(value)
                const [oldest] = expected
                if (oldest !== undefined && value !== comment) take(oldest)
              },
              (error: unknown) => {
                end()
                controller.error(error)
              }
            ),
          cancel: (reason) => {
            end()
            return reader.cancel(reason)
          }
        },
        // Nothing is read ahead.
        { highWaterMark: 0 }
      )
      const headers = new Headers(response.headers)
      // For the HTTP server to say, and for its client.
      headers.delete("connection")
      return new Response(body, { status: response.status, headers })
    }
  }
}

/** The chunks of a stream of events; first a comment, where there is nothing else to begin with. */
async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  const first = reader.read()
  if ((await Promise.race([first, nextTurn()])) === undefined) yield comment
  for (let read = await first; !read.done; read = await reader.read()) yield read.value
}

const comment = new TextEncoder().encode(": open\n\n")

const nextTurn = () => new Promise<undefined>((resolve) => void setImmediate(() => resolve(undefined)))

const isEventStream = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true
