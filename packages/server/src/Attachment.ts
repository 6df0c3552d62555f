/**
 * The live end of one open request of the SDK: its progress notifications, and its channel back to a 2025 client.
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import type { ServerContext } from "@modelcontextprotocol/server"
import * as Calls from "./Calls.ts"
import type * as McpSession from "./McpSession.ts"
import type * as Outgoing from "./Outgoing.ts"
import * as Rising from "./Rising.ts"

/** An attachment whose notifications can be waited for: none is sent after the result. */
export interface SdkAttachment extends Calls.Attachment {
  readonly flush: Effect.Effect<void>
}

/** The attachment of one request. `outgoing` is where its notifications go, if writing them does not wait for a reader. */
export const make = (
  request: ServerContext,
  client: McpSession.Client,
  options: {
    readonly canAsk: boolean
    readonly maxBacklog: number
    readonly outgoing: Outgoing.Outgoing | undefined
  }
): SdkAttachment => {
  const progress = progressOf(request, options)
  return { ...progress, ...(options.canAsk ? { ask: askOf(request, client) } : {}) }
}

/** The attachment of a request that nothing can be sent to but its result. */
export const silent: SdkAttachment = { progress: () => Effect.void, flush: Effect.void }

/**
 * Notifications in the order of the updates, with numbers that rise. Behind a backlog only the latest update is kept: a
 * tool that reports a hundred thousand times does not drown a client that reads slowly, nor the server.
 */
const progressOf = (
  request: ServerContext,
  { maxBacklog, outgoing }: { readonly maxBacklog: number; readonly outgoing: Outgoing.Outgoing | undefined }
): Pick<SdkAttachment, "progress" | "flush"> => {
  const token = request.mcpReq._meta?.progressToken
  if (token === undefined) return silent
  let last: number | undefined
  // Given to the SDK, which has not written them yet; and not taken by the client.
  let unwritten = 0
  let untaken = 0
  let latest: Calls.ProgressUpdate | undefined
  let drained: (() => void) | undefined

  const send = (update: Calls.ProgressUpdate): void => {
    last = Rising.above(last, update.progress)
    unwritten++
    untaken++
    const expected = outgoing?.expect(taken)
    const notification = {
      method: "notifications/progress",
      params: { progressToken: token, ...update, progress: last }
    }
    // A notification that cannot be delivered never fails the call (M72).
    request.mcpReq.notify(notification).then(
      () => written(expected === undefined),
      () => {
        expected?.drop()
        written(expected === undefined)
      }
    )
  }

  const written = (isTaken: boolean): void => {
    if (isTaken) taken()
    unwritten--
    if (unwritten === 0) drained?.()
  }

  const taken = (): void => {
    untaken--
    sendLatest()
  }

  const sendLatest = (): void => {
    if (latest === undefined) return
    const update = latest
    latest = undefined
    send(update)
  }

  return {
    progress: (update) =>
      Effect.sync(() => {
        if (untaken < maxBacklog) send(update)
        else latest = update
      }),
    // The client may take them whenever it wants: only the order is kept.
    flush: Effect.suspend(() => {
      if (last === undefined) return Effect.void
      sendLatest()
      const allWritten =
        unwritten === 0
          ? Effect.void
          : Effect.callback<void>((resume) => {
              drained = () => resume(Effect.void)
            })
      return Effect.andThen(allWritten, nextTurn)
    })
  }
}

// A client that reads the last notification and the result in one go may have forgotten the token when it comes to the
// notification (the SDK's own client does so): the result takes the next turn of the loop.
const nextTurn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

// The clock of a question is that of its call (M67), not the SDK's.
const noTimeout = 2_147_483_647

const anyJson = Schema.toStandardSchemaV1(Schema.Json)

const askOf =
  (request: ServerContext, client: McpSession.Client) =>
  (question: Calls.InputRequest): Effect.Effect<Schema.Json, Calls.PushFailed> =>
    Effect.tryPromise({
      try: (signal) =>
        request.mcpReq.send({ method: question.method, params: paramsFor(client, question) }, anyJson, {
          signal,
          timeout: noTimeout
        }),
      catch: (cause) => new Calls.PushFailed({ message: cause instanceof Error ? cause.message : String(cause) })
    })

/** The parameters as the client's revision has them: `elicitationId` for a url, no `mode` before there were two. */
const paramsFor = (
  client: McpSession.Client,
  { method, params }: Calls.InputRequest
): Readonly<Record<string, unknown>> => {
  const members = Object.fromEntries(Predicate.isObject(params) ? Object.entries(params) : [])
  if (method !== "elicitation/create") return members
  if (members.mode === "url") return { ...members, elicitationId: randomBytes(16).toString("hex") }
  const { mode: _, ...form } = members
  return client.protocolVersion < "2025-11-25" ? form : members
}
