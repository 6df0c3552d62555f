/**
 * The commonest request, served without the SDK: a plain `tools/call` of 2026-07-28 over HTTP, without a progress token and
 * without answers, whose headers repeat what its body says. Everything else is the SDK's, every doubtful case too.
 *
 * It reads what the SDK reads by the SDK's own exported schemas, and answers what the SDK answers: a differential test
 * sends every request both ways.
 */
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import type { Headers } from "effect/http/Headers"
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  specTypeSchemas
} from "@modelcontextprotocol/server"
import * as Wire from "./Wire.ts"

/** A plain call, as far as it has been read. */
export interface PlainCall {
  readonly id: string | number
  readonly name: string
  readonly arguments: Schema.Json
  readonly capabilities: Schema.Json
  readonly info: { readonly name: string; readonly version: string } | undefined
  readonly traceparent: string | undefined
}

/** The call that a request makes, if it is one for this lane. */
export const read = (headers: Headers, body: unknown): PlainCall | undefined => {
  if (!isRecord(body) || body.jsonrpc !== "2.0" || body.method !== "tools/call") return undefined
  const { id, params } = body
  if (!(typeof id === "string" || (typeof id === "number" && Number.isSafeInteger(id))) || !isRecord(params)) {
    return undefined
  }
  if (!onlyHas(body, bodyMembers) || !onlyHas(params, paramsMembers)) return undefined
  const { _meta: meta, arguments: args, name } = params
  if (typeof name !== "string" || !(args === undefined || isRecord(args)) || !isRecord(meta)) return undefined
  if (!onlyHas(meta, metaMembers) || meta[PROTOCOL_VERSION_META_KEY] !== Wire.firstModernVersion) return undefined
  const capabilities = meta[CLIENT_CAPABILITIES_META_KEY]
  const info = meta[CLIENT_INFO_META_KEY]
  const traceparent = meta.traceparent
  if (!isRecord(capabilities) || !fits("ClientCapabilities", capabilities)) return undefined
  if (!(info === undefined || (isRecord(info) && fits("Implementation", info)))) return undefined
  if (!(traceparent === undefined || typeof traceparent === "string")) return undefined
  if (!repeats(headers, name)) return undefined
  return {
    id,
    name,
    // Parsed JSON, all of it.
    arguments: (args ?? {}) as Schema.Json,
    capabilities: capabilities as Schema.Json,
    info: info === undefined ? undefined : { name: String(info.name), version: String(info.version) },
    traceparent
  }
}

type Members = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Members => Predicate.isObject(value) && !Array.isArray(value)

const bodyMembers: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"])
const paramsMembers: ReadonlySet<string> = new Set(["name", "arguments", "_meta"])
const metaMembers: ReadonlySet<string> = new Set([
  PROTOCOL_VERSION_META_KEY,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  "traceparent"
])

const onlyHas = (record: Members, members: ReadonlySet<string>): boolean => {
  for (const key in record) if (!members.has(key)) return false
  return true
}

// A client without capabilities is common, and has nothing to check.
const fits = (type: "ClientCapabilities" | "Implementation", value: Members): boolean => {
  if (type === "ClientCapabilities" && Object.keys(value).length === 0) return true
  const checked = specTypeSchemas[type]["~standard"].validate(value)
  return !(checked instanceof Promise) && checked.issues === undefined
}

/** Whether the headers say what the body says, plainly: no encoding, no blanks, each of them once. */
const repeats = (headers: Headers, name: string): boolean =>
  headers["mcp-protocol-version"] === Wire.firstModernVersion &&
  headers["mcp-method"] === "tools/call" &&
  headers["mcp-name"] === name &&
  plainName.test(name) &&
  acceptsBoth(headers.accept)

const plainName = /^[A-Za-z0-9_.-]{1,128}$/

const acceptsBoth = (accept: string | undefined): boolean =>
  ["application/json", "text/event-stream"].every((type) => accept?.includes(type))

/** The response of the SDK to the same request, as text. */
export const response = (
  id: string | number,
  result: Members,
  server: { readonly name: string; readonly version: string }
): string => {
  const meta = result._meta
  return JSON.stringify({
    result: {
      ...result,
      ...(result.resultType === undefined ? { resultType: "complete" } : {}),
      _meta: { ...(isRecord(meta) ? meta : {}), [SERVER_INFO_META_KEY]: server }
    },
    jsonrpc: "2.0",
    id
  })
}

/** The SDK's response where a request is refused with an error of the protocol. */
export const errorResponse = (id: string | number, code: number, message: string): string =>
  JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })
