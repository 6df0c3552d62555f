/**
 * The body of a POST, read once for everything that looks at it, within bounds of size, depth and time.
 */
import * as Effect from "effect/Effect"
import * as ByteSize from "effect/ByteSize"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { readRequestBody } from "@modelcontextprotocol/server"
import type * as Settings from "./Settings.ts"

/** What is wrong with a request before anybody has looked at what it says. */
export interface Refusal {
  readonly status: number
  readonly code: number
  readonly message: string
}

/** The parsed body, or why it is refused. */
export const read = (
  request: Request,
  { maxBodyBytes, maxJsonDepth, receiveTimeout }: Settings.Settings
): Effect.Effect<Result.Result<unknown, Refusal>> =>
  Effect.map(
    Effect.timeoutOption(
      Effect.promise(() => readRequestBody(request, maxBodyBytes).catch(() => undefined)),
      receiveTimeout
    ),
    Option.match({
      onNone: tooSlow,
      onSome: (body) => {
        if (body === undefined) return unreadable()
        return body.tooLarge ? tooLarge(maxBodyBytes) : parse(body.text, maxJsonDepth)
      }
    })
  )

/** The same of a request of effect's own server, whose body is read without the web platform. */
export const readText = (
  request: HttpServerRequest.HttpServerRequest,
  { maxBodyBytes, maxJsonDepth, receiveTimeout }: Settings.Settings
): Effect.Effect<Result.Result<unknown, Refusal>> =>
  Effect.match(
    Effect.timeoutOption(
      Effect.provideService(request.text, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
      receiveTimeout
    ),
    {
      onSuccess: Option.match({
        onNone: tooSlow,
        onSome: (text) => parse(text, maxJsonDepth)
      }),
      onFailure: ({ reason }) =>
        Predicate.hasProperty(reason, "reason") && reason.reason === "BodyTooLarge"
          ? tooLarge(maxBodyBytes)
          : unreadable()
    }
  )

const tooSlow = () => refuse(408, -32000, "Request Timeout: the request body took too long")
const unreadable = () => refuse(400, -32700, "Parse error: the request body could not be read")
const tooLarge = (maxBodyBytes: number) =>
  refuse(413, -32000, `Payload Too Large: the request body is larger than ${maxBodyBytes} bytes`)

const refuse = (status: number, code: number, message: string): Result.Result<never, Refusal> =>
  Result.fail({ status, code, message })

const parse = (text: string, maxDepth: number): Result.Result<unknown, Refusal> => {
  if (isDeeper(text, maxDepth)) return refuse(400, -32600, `Invalid Request: nested deeper than ${maxDepth} levels`)
  return Result.mapError(
    Result.try((): unknown => JSON.parse(text)),
    () => ({ status: 400, code: -32700, message: "Parse error: the request body is not valid JSON" })
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
