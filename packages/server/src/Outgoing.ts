/**
 * What of the stream of a response its reader has not taken yet. The SDK writes into a stream without looking whether
 * anybody reads; whoever writes much waits here for its reader, so that a slow one does not fill the memory.
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
      const body = new ReadableStream<Uint8Array>(
        {
          pull: (controller) =>
            reader.read().then(
              ({ done, value }) => {
                if (done) {
                  end()
                  controller.close()
                } else {
                  controller.enqueue(value)
                  const [first] = expected
                  if (first !== undefined) take(first)
                }
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
      return new Response(body, { status: response.status, headers: response.headers })
    }
  }
}

const isEventStream = ({ headers }: Response): boolean =>
  headers.get("content-type")?.startsWith("text/event-stream") === true
