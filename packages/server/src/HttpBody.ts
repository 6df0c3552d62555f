/**
 * The body of a POST, read once for everything that looks at it, within bounds of size, depth and time.
 */
import * as ByteSize from "effect/ByteSize"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as Settings from "./Settings.ts"

/**
 * What is wrong with a request before anybody has looked at what it says. `unread`: there is more of it to come, which
 * nobody waits for.
 */
export interface Refusal {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly unread: boolean
}

/** The parsed body, or why it is refused. */
export const read = (
  request: Request,
  { maxBodyBytes, maxJsonDepth, receiveTimeout }: Settings.Settings
): Effect.Effect<Result.Result<unknown, Refusal>> =>
  Effect.match(Effect.timeoutOption(collect(request, maxBodyBytes), receiveTimeout), {
    onSuccess: Option.match({
      onNone: tooSlow,
      onSome: (text) => (text === undefined ? tooLarge(maxBodyBytes) : parse(text, maxJsonDepth))
    }),
    onFailure: unreadable
  })

/** The text of a body; none if it is longer than that. What is left is let go of, however this ends. */
const collect = (request: Request, maxBytes: number): Effect.Effect<string | undefined, unknown> => {
  if (Number(request.headers.get("content-length")) > maxBytes) return Effect.succeed(undefined)
  const reader = request.body?.getReader()
  if (reader === undefined) return Effect.succeed("")
  const decoder = new TextDecoder()
  const readOn = async (text: string, size: number): Promise<string | undefined> => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return text + decoder.decode()
      size += value.byteLength
      if (size > maxBytes) return undefined
      text += decoder.decode(value, { stream: true })
    }
  }
  return Effect.ensuring(
    Effect.tryPromise(() => readOn("", 0)),
    // A body that is broken has nothing to let go of.
    Effect.sync(() => void reader.cancel().catch(() => {}))
  )
}

/** The same of a request of effect's own server, whose body is read without the web platform. */
export const readText = (
  request: HttpServerRequest.HttpServerRequest,
  { maxBodyBytes, maxJsonDepth, receiveTimeout }: Settings.Settings
): Effect.Effect<Result.Result<unknown, Refusal>> => {
  if (Number(request.headers["content-length"]) > maxBodyBytes) return Effect.succeed(tooLarge(maxBodyBytes))
  const text = Effect.provideService(request.text, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes))
  return Effect.match(patiently(text, receiveTimeout), {
    onSuccess: Option.match({
      onNone: tooSlow,
      onSome: (read) => parse(read, maxJsonDepth)
    }),
    onFailure: ({ reason }) =>
      Predicate.hasProperty(reason, "reason") && reason.reason === "BodyTooLarge"
        ? tooLarge(maxBodyBytes)
        : unreadable()
  })
}

// Reading that is interrupted takes the connection with it, and the answer would never leave. So what is too slow goes
// on until the connection is closed behind the answer.
const patiently = <E>(text: Effect.Effect<string, E>, patience: Duration.Input) =>
  Effect.flatMap(Effect.forkDetach(text, { startImmediately: true }), (reading) =>
    Effect.onInterrupt(Effect.timeoutOption(Fiber.join(reading), patience), () => Fiber.interrupt(reading))
  )

const tooSlow = () => refuse(408, -32000, "Request Timeout: the request body took too long", true)
const unreadable = () => refuse(400, -32700, "Parse error: the request body could not be read")
const tooLarge = (maxBodyBytes: number) =>
  refuse(413, -32000, `Payload Too Large: the request body is larger than ${maxBodyBytes} bytes`, true)

const refuse = (status: number, code: number, message: string, unread = false): Result.Result<never, Refusal> =>
  Result.fail({ status, code, message, unread })

const parse = (text: string, maxDepth: number): Result.Result<unknown, Refusal> => {
  if (isDeeper(text, maxDepth)) return refuse(400, -32600, `Invalid Request: nested deeper than ${maxDepth} levels`)
  return Result.mapError(
    Result.try((): unknown => JSON.parse(text)),
    () => ({ status: 400, code: -32700, message: "Parse error: the request body is not valid JSON", unread: false })
  )
}

/** Whether a JSON text is nested deeper than this, found without parsing it: parsing is what depth endangers. */
export const isDeeper = (text: string, maxDepth: number): boolean => {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at)
        break
      case openBrace:
      case openBracket:
        if (++depth > maxDepth) return true
        break
      case closeBrace:
      case closeBracket:
        depth--
        break
    }
  }
  return false
}

const endOfString = (text: string, start: number): number => {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at
}

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
