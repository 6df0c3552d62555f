/**
 * A tool's output as MCP content blocks: section 4 of the contract at the MCP edge, row by row.
 *
 * Pure: nothing is fetched and no bytes are decoded. Base64 is checked strictly and passed on in its one canonical
 * spelling, since clients refuse a whole result for one block that is no base64. A member of a part that is the empty text
 * counts as not given. The types are aliases, not interfaces: only so is a block a `Schema.Json`.
 */
import type * as Part from "@agenttool/core/Part"
import * as ToolResult from "@agenttool/core/ToolResult"
import * as Exit from "effect/Exit"
import * as Wire from "./Wire.ts"

/** Text. */
export type TextBlock = {
  readonly type: "text"
  readonly text: string
}

/** An image: base64 in `data`. */
export type ImageBlock = {
  readonly type: "image"
  readonly mimeType: string
  readonly data: string
}

/** Sound: base64 in `data`. */
export type AudioBlock = {
  readonly type: "audio"
  readonly mimeType: string
  readonly data: string
}

/** A file's content: base64 in `blob`. */
export type ResourceBlock = {
  readonly type: "resource"
  readonly resource: { readonly uri: string; readonly mimeType?: string; readonly blob: string }
}

/** Where to get an image or a file. */
export type ResourceLinkBlock = {
  readonly type: "resource_link"
  readonly uri: string
  readonly name: string
}

/** What an output becomes. */
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceBlock | ResourceLinkBlock

/** A block of text. */
export const text = (value: string): TextBlock => ({ type: "text", text: value })

/**
 * The blocks of an output: one for a text, at most one for each part, in the order of the parts (M35). A part of a type
 * that has no block is its JSON as text; a part without JSON is left out.
 *
 * @example
 * ```ts
 * import { Part } from "@agenttool/core"
 * import { Blocks } from "@agenttool/server"
 *
 * Blocks.fromOutput("hi") // [{ type: "text", text: "hi" }]
 * Blocks.fromOutput([Part.image("https://example.com/cat.png")])
 * // [{ type: "resource_link", uri: "https://example.com/cat.png", name: "image" }]
 * ```
 */
export const fromOutput = (output: ToolResult.Output): ReadonlyArray<ContentBlock> =>
  typeof output === "string" ? [text(output)] : output.flatMap((part) => fromPart(part) ?? [])

const fromPart = (part: Part.Part): ContentBlock | undefined => {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return typeof part.text === "string" ? text(part.text) : fromUnknown(part)
    case "input_image":
      return fromImage(part)
    case "input_file":
      return fromFile(part)
    default:
      return fromUnknown(part)
  }
}

const fromUnknown = (part: Part.Part): TextBlock | undefined =>
  Exit.match(ToolResult.encode(part), { onSuccess: text, onFailure: () => undefined })

const fromImage = (part: Part.Part): ContentBlock | undefined => {
  const url = given(part, "image_url")
  if (url === undefined) return fromUnknown(part)
  const found = base64DataUrl(url)
  return found === undefined
    ? { type: "resource_link", uri: url, name: "image" }
    : { type: "image", mimeType: found.mediaType ?? Wire.unknownBytes, data: found.data }
}

const fromFile = (part: Part.Part): ContentBlock | undefined => {
  const content = given(part, "file_data")
  const url = given(part, "file_url")
  const filename = given(part, "filename")
  if (content !== undefined) return fromContent(content, url, filename)
  if (url !== undefined) return { type: "resource_link", uri: url, name: filename ?? "" }
  return filename === undefined ? fromUnknown(part) : text(filename)
}

const fromContent = (content: string, url: string | undefined, filename: string | undefined): ContentBlock => {
  const dataUrl = base64DataUrl(content)
  const data = dataUrl?.data ?? base64(content)
  if (data === undefined) return text(content)
  const mimeType = dataUrl === undefined ? undefined : (dataUrl.mediaType ?? Wire.unknownBytes)
  const audio = url === undefined ? audioType(mimeType, filename ?? "") : undefined
  if (audio !== undefined) return { type: "audio", mimeType: audio, data }
  const uri = url ?? `file:///${(filename ?? "").replace(/^\//, "")}`
  return { type: "resource", resource: { uri, ...(mimeType === undefined ? {} : { mimeType }), blob: data } }
}

/** A member that is a text and not the empty one. */
const given = (part: Part.Part, member: string): string | undefined => {
  const value = part[member]
  return typeof value === "string" && value !== "" ? value : undefined
}

// ----- sound

/** The inverse of how a consuming side names the sound it got (M111), so that sound survives a second hop. */
const audioTypes: ReadonlyMap<string, string> = new Map([
  ["wav", "audio/wav"],
  ["mp3", "audio/mpeg"],
  ["m4a", "audio/mp4"],
  ["aac", "audio/aac"],
  ["ogg", "audio/ogg"],
  ["opus", "audio/opus"],
  ["flac", "audio/flac"]
])

/** The audio type of a file, by the type of its content or by its name; none if it is no sound (M33). */
const audioType = (mimeType: string | undefined, filename: string): string | undefined => {
  if (mimeType !== undefined && /^audio\//i.test(mimeType)) return mimeType
  const name = filename.slice(filename.lastIndexOf("/") + 1)
  const dot = name.lastIndexOf(".")
  const extension = dot === -1 ? "" : name.slice(dot + 1).toLowerCase()
  // Only what a consuming side names so is sound: any other `.webm` is more likely a film.
  return extension === "webm" && name.slice(0, dot) === "audio" ? "audio/webm" : audioTypes.get(extension)
}

// ----- base64

interface DataUrl {
  readonly mediaType: string | undefined
  readonly data: string
}

/** A data URL whose payload is valid base64 (M31, M32). The media type keeps its parameters. */
const base64DataUrl = (url: string): DataUrl | undefined => {
  if (!url.startsWith("data:")) return undefined
  const comma = url.indexOf(",")
  const header = url.slice("data:".length, comma)
  if (comma === -1 || !header.endsWith(";base64")) return undefined
  const data = base64(url.slice(comma + 1))
  const mediaType = header.slice(0, -";base64".length)
  return data === undefined ? undefined : { mediaType: mediaType === "" ? undefined : mediaType, data }
}

const outsideAlphabet = /[^A-Za-z0-9+/]/
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/**
 * The canonical base64 of the same bytes, none where the text is no base64: standard alphabet, padded to a multiple of
 * four, line breaks ignored (M31).
 *
 * One search for a character that does not belong: a pattern of the whole would fill the engine's stack on a large file.
 */
const base64 = (spelling: string): string | undefined => {
  const joined = /[\r\n]/.test(spelling) ? spelling.replace(/[\r\n]+/g, "") : spelling
  if (joined.length % 4 !== 0) return undefined
  const end = joined.search(outsideAlphabet)
  if (end === -1) return joined
  const pad = joined.slice(end)
  return pad === "=" || pad === "==" ? withoutSpareBits(joined, end, pad) : undefined
}

/** The last character before a pad holds bits of no byte: the canonical spelling has them zero. */
const withoutSpareBits = (joined: string, end: number, pad: string): string => {
  const value = alphabet.indexOf(joined.charAt(end - 1))
  const spare = pad.length === 1 ? 0b11 : 0b1111
  return (value & spare) === 0 ? joined : `${joined.slice(0, end - 1)}${alphabet.charAt(value & ~spare)}${pad}`
}
