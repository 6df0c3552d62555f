/**
 * The content parts of Open Responses: what an output that is more than text consists of (C97).
 *
 * A part is plain data. A part of a type that this library does not know is kept and passed on as it came.
 */
import * as Schema from "effect/Schema"

/** One part of an output: an object with a `type`. See the constructors for the types that this library reads. */
export interface Part {
  readonly type: string
  readonly [member: string]: unknown
}

/** The schema of any part. */
export const Part: Schema.Codec<Part, unknown> = Schema.declare(
  (value): value is Part =>
    typeof value === "object" && value !== null && "type" in value && typeof value.type === "string",
  { expected: "a content part: an object with a type" }
)

/** Text. */
export const text = (value: string): Part => ({ type: "input_text", text: value })

/**
 * An image, by URL or as a base64 data URL. `detail` is `"auto"` unless given.
 *
 * @example
 * ```ts
 * import { Part } from "@agenttool/core"
 *
 * Part.image("https://example.com/cat.png")
 * ```
 */
export const image = (url: string, options?: { readonly detail?: "auto" | "low" | "high" }): Part => ({
  type: "input_image",
  image_url: url,
  detail: options?.detail ?? "auto"
})

/** An image of bytes that are base64 text already. */
export const imageData = (mimeType: string, base64: string): Part => image(`data:${mimeType};base64,${base64}`)

/**
 * A file: its base64 content (`data`) or its `url`, and a `filename`.
 */
export const file = (options: { readonly filename?: string; readonly data?: string; readonly url?: string }): Part => ({
  type: "input_file",
  ...(options.filename === undefined ? {} : { filename: options.filename }),
  ...(options.data === undefined ? {} : { file_data: options.data }),
  ...(options.url === undefined ? {} : { file_url: options.url })
})

/** Sound: a file whose content is a data URL of an audio type, which is how the edges recognise it. */
export const audio = (mimeType: string, base64: string): Part => ({
  type: "input_file",
  file_data: `data:${mimeType};base64,${base64}`
})

/** A refusal: the tool will not answer. */
export const refusal = (reason: string): Part => ({ type: "refusal", refusal: reason })

const textual: ReadonlySet<string> = new Set(["input_text", "output_text", "text", "summary_text", "reasoning_text"])

/** Whether a part is text (C98). */
export const isText = (part: Part): part is Part & { readonly text: string } =>
  textual.has(part.type) && typeof part.text === "string"

/** The texts of all textual parts, with nothing between them (C98). */
export const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.reduce((all, part) => (isText(part) ? all + part.text : all), "")
