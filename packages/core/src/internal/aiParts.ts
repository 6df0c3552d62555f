/**
 * Content parts of Open Responses and those of effect/ai.
 */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Prompt from "effect/ai/Prompt"
import * as Part from "../Part.ts"
import type * as ToolResult from "../ToolResult.ts"

/** What a model of effect/ai reads of an output. */
export const fromOutput = (output: ToolResult.Output): ReadonlyArray<Prompt.ToolModelOutputPart> =>
  typeof output === "string" ? [text(output)] : output.map(fromPart)

const text = (value: string): Prompt.ToolModelOutputPart => Prompt.textPart({ text: value })

const fromPart = (part: Part.Part): Prompt.ToolModelOutputPart => {
  if (Part.isText(part)) return text(part.text)
  if (part.type === "refusal" && typeof part.refusal === "string") return text(part.refusal)
  const fileName = typeof part.filename === "string" ? part.filename : undefined
  const data = part.image_url ?? part.file_data ?? part.file_url
  const file = typeof data === "string" ? fileOf(part, data) : undefined
  // What effect/ai has no part for is shown as it is, not left out.
  return file === undefined
    ? text(JSON.stringify(part))
    : Prompt.filePart(fileName === undefined ? file : { ...file, fileName })
}

const fileOf = (
  part: Part.Part,
  data: string
): { readonly mediaType: string; readonly data: string | URL } | undefined => {
  const mediaType = part.type === "input_image" ? "image/*" : "application/octet-stream"
  const inline = dataUrl.exec(data)
  if (inline !== null) return { mediaType: inline[1] ?? mediaType, data: inline[2] ?? "" }
  if (part.file_data === data) return { mediaType, data }
  const url = Result.try(() => new URL(data))
  return Result.isSuccess(url) ? { mediaType, data: url.success } : undefined
}

const dataUrl = /^data:([^;,]+);base64,(.*)$/s

/** What effect/ai sends a model, as an output of ours. */
export const toOutput = (parts: ReadonlyArray<Prompt.ToolModelOutputPart>): ToolResult.Output => parts.map(toPart)

const toPart = (part: Prompt.ToolModelOutputPart): Part.Part => {
  if (part.type === "text") return Part.text(part.text)
  const { data, fileName, mediaType } = part
  const filename = fileName === undefined ? {} : { filename: fileName }
  if (data instanceof URL) {
    return mediaType.startsWith("image/") ? Part.image(data.href) : Part.file({ url: data.href, ...filename })
  }
  const base64 = typeof data === "string" ? data : Base64.encode(data)
  if (mediaType.startsWith("image/")) return Part.imageData(mediaType, base64)
  return Part.file({ data: `data:${mediaType};base64,${base64}`, ...filename })
}
