import * as Part from "@agenttool/core/Part"
import * as Blocks from "@agenttool/server/Blocks"
import { assert, describe, it } from "@effect/vitest"
import { isSpecType } from "@modelcontextprotocol/server"
import { Arbitrary, Schema } from "effect"

/** The one block of one part. */
const blockOf = (part: Part.Part): Blocks.ContentBlock | undefined => Blocks.fromOutput([part])[0]

const file = (members: { readonly file_data?: string; readonly file_url?: string; readonly filename?: string }) =>
  blockOf({ type: "input_file", ...members })

const text = (value: string): Blocks.ContentBlock => ({ type: "text", text: value })
const imageLink = (uri: string): Blocks.ContentBlock => ({ type: "resource_link", uri, name: "image" })

// A compile-time law: a block is JSON, as far as the compiler can tell.
const asJson = (block: Blocks.ContentBlock): Schema.Json => block

describe("Blocks", () => {
  it("M30: a text is one block, also when it is empty; a list without parts is no block", () => {
    assert.deepStrictEqual(Blocks.fromOutput("hi"), [text("hi")])
    assert.deepStrictEqual(Blocks.fromOutput(""), [text("")])
    assert.deepStrictEqual(Blocks.fromOutput([]), [])
    assert.deepStrictEqual(asJson(text("hi")), { type: "text", text: "hi" })
  })

  it("M35: each textual part is one text block, in order", () => {
    const parts = ["text", "input_text", "output_text"].map((type) => ({ type, text: `a ${type}`, annotations: [] }))
    assert.deepStrictEqual(Blocks.fromOutput(parts), [text("a text"), text("a input_text"), text("a output_text")])
  })

  it("M35: any other part is its JSON as text; one without JSON is left out and moves nothing else", () => {
    const cycle: { type: string; self?: unknown } = { type: "cycle" }
    cycle.self = cycle
    assert.deepStrictEqual(
      Blocks.fromOutput([
        Part.refusal("no"),
        { type: "huge", n: 10n },
        { type: "summary_text", text: "short" },
        cycle,
        { type: "silent", toJSON: () => undefined },
        { type: "new_kind", nested: { b: 1, a: [null] } },
        { type: "text", text: 7 },
        { type: "input_image", file_id: "f1" },
        { type: "input_image", image_url: "" },
        { type: "input_file", file_id: "f1" },
        { type: "input_file", file_data: "", file_url: "", filename: "" }
      ]),
      [
        text('{"type":"refusal","refusal":"no"}'),
        text('{"type":"summary_text","text":"short"}'),
        text('{"type":"new_kind","nested":{"b":1,"a":[null]}}'),
        text('{"type":"text","text":7}'),
        text('{"type":"input_image","file_id":"f1"}'),
        text('{"type":"input_image","image_url":""}'),
        text('{"type":"input_file","file_id":"f1"}'),
        text('{"type":"input_file","file_data":"","file_url":"","filename":""}')
      ]
    )
  })

  const images: ReadonlyArray<readonly [string, Blocks.ContentBlock]> = [
    ["data:image/png;base64,AQID", { type: "image", mimeType: "image/png", data: "AQID" }],
    ["data:;base64,AQ==", { type: "image", mimeType: "application/octet-stream", data: "AQ==" }],
    [
      "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+",
      { type: "image", mimeType: "image/svg+xml;charset=utf-8", data: "PHN2Zy8+" }
    ],
    ["data:image/png;base64,", { type: "image", mimeType: "image/png", data: "" }],
    ["data:image/png;base64", imageLink("data:image/png;base64")],
    ["data:", imageLink("data:")],
    ["data:base64,AQ==", imageLink("data:base64,AQ==")],
    ["data:text/plain,hello", imageLink("data:text/plain,hello")],
    ["data:image/png;base64,***", imageLink("data:image/png;base64,***")],
    ["data:image/png;base64,AQ==,AQ==", imageLink("data:image/png;base64,AQ==,AQ==")],
    ["DATA:image/png;base64,AQ==", imageLink("DATA:image/png;base64,AQ==")],
    [" data:image/png;base64,AQ==", imageLink(" data:image/png;base64,AQ==")],
    ["https://example.com/a.png", imageLink("https://example.com/a.png")]
  ]
  it.each(images)("M32: an image at %s", (url, block) => {
    assert.deepStrictEqual(blockOf(Part.image(url)), block)
  })

  const spellings: ReadonlyArray<readonly [string, string | undefined]> = [
    ["", ""],
    ["AQID", "AQID"],
    ["+/+/", "+/+/"],
    ["AQI=", "AQI="],
    ["AQ==", "AQ=="],
    ["AQ\r\nID", "AQID"],
    ["\nAQID\n", "AQID"],
    ["AQ=\n=", "AQ=="],
    ["\r\n", ""],
    // Bits that belong to no byte: the same bytes again in base64.
    ["AR==", "AQ=="],
    ["AQJ=", "AQI="],
    ["***", undefined],
    ["!!", undefined],
    ["!!!!", undefined],
    ["AQ", undefined],
    ["AQI", undefined],
    ["A", undefined],
    ["AQ=", undefined],
    ["A===", undefined],
    ["====", undefined],
    ["AQ==AQ==", undefined],
    ["A=ID", undefined],
    ["AQ=D", undefined],
    ["AQID====", undefined],
    ["-_-_", undefined],
    ["AQ D", undefined],
    ["AQ\tD", undefined],
    ["AQI\u00e9", undefined],
    ["%41%51", undefined]
  ]
  it.each(spellings)("M31: %j is valid base64, or is not", (given, canonical) => {
    const url = `data:image/png;base64,${given}`
    assert.deepStrictEqual(
      blockOf(Part.image(url)),
      canonical === undefined ? imageLink(url) : { type: "image", mimeType: "image/png", data: canonical }
    )
    if (canonical !== undefined) {
      assert.deepStrictEqual(Buffer.from(canonical, "base64"), Buffer.from(given, "base64"), "the bytes are the same")
      assert.strictEqual(Buffer.from(canonical, "base64").toString("base64"), canonical, "the spelling is canonical")
    }
  })

  it("M31: sixteen MiB are checked, good or bad to the last character, with line breaks or without", () => {
    const data = "QUJD".repeat(4 * 1024 * 1024)
    assert.isTrue(file({ file_data: data, filename: "a.bin" })?.type === "resource")
    assert.isTrue(file({ file_data: `${data.slice(0, -1)}!`, filename: "a.bin" })?.type === "text")
    const lines = Array.from({ length: 64 }, () => "QUJD".repeat(64 * 1024)).join("\r\n")
    const block = file({ file_data: lines, filename: "a.bin" })
    assert.isTrue(block?.type === "resource" && block.resource.blob === data)
  })

  const filenames: ReadonlyArray<readonly [string, string | undefined]> = [
    ["audio.wav", "audio/wav"],
    ["song.MP3", "audio/mpeg"],
    ["voice.m4a", "audio/mp4"],
    ["a.aac", "audio/aac"],
    ["a.ogg", "audio/ogg"],
    ["a.opus", "audio/opus"],
    ["a.flac", "audio/flac"],
    ["audio.webm", "audio/webm"],
    ["audio.WEBM", "audio/webm"],
    ["clips/audio.webm", "audio/webm"],
    [".wav", "audio/wav"],
    ["film.webm", undefined],
    ["my audio.webm", undefined],
    ["a.wav.txt", undefined],
    ["dir.wav/readme", undefined],
    ["wav", undefined],
    ["a.", undefined],
    ["", undefined]
  ]
  it.each(filenames)("M33: a file named %j is sound by its name, or is not", (filename, mimeType) => {
    assert.deepStrictEqual(
      file({ file_data: "AQID", filename }),
      mimeType === undefined
        ? { type: "resource", resource: { uri: `file:///${filename}`, blob: "AQID" } }
        : { type: "audio", mimeType, data: "AQID" }
    )
  })

  it("M33: content of an audio type is sound, unless the file has a url", () => {
    assert.deepStrictEqual(blockOf(Part.audio("audio/ogg", "AQID")), {
      type: "audio",
      mimeType: "audio/ogg",
      data: "AQID"
    })
    assert.deepStrictEqual(file({ file_data: "data:Audio/OGG;codecs=opus;base64,AQID", filename: "a.txt" }), {
      type: "audio",
      mimeType: "Audio/OGG;codecs=opus",
      data: "AQID"
    })
    const url = "https://example.com/a.wav"
    assert.deepStrictEqual(file({ file_data: "AQID", file_url: url, filename: "a.wav" }), {
      type: "resource",
      resource: { uri: url, blob: "AQID" }
    })
    assert.deepStrictEqual(file({ file_data: "data:audio/wav;base64,AQID", file_url: url }), {
      type: "resource",
      resource: { uri: url, mimeType: "audio/wav", blob: "AQID" }
    })
    assert.deepStrictEqual(file({ file_data: "data:audio/wav;base64,!" }), text("data:audio/wav;base64,!"))
  })

  it("M34: content that is a data URL of another type keeps its type", () => {
    assert.deepStrictEqual(file({ file_data: "data:application/pdf;base64,AQID", filename: "a.pdf" }), {
      type: "resource",
      resource: { uri: "file:///a.pdf", mimeType: "application/pdf", blob: "AQID" }
    })
    assert.deepStrictEqual(file({ file_data: "data:;base64,AQID" }), {
      type: "resource",
      resource: { uri: "file:///", mimeType: "application/octet-stream", blob: "AQID" }
    })
    assert.deepStrictEqual(file({ file_data: "data:text/plain,hello" }), text("data:text/plain,hello"))
  })

  it("M34: a file's uri is its url, else its name without one leading slash and without escaping", () => {
    const uriOf = (members: { readonly file_url?: string; readonly filename?: string }) => {
      const block = file({ file_data: "AQID", ...members })
      return block?.type === "resource" ? block.resource.uri : undefined
    }
    assert.strictEqual(uriOf({ filename: "a b.bin" }), "file:///a b.bin")
    assert.strictEqual(uriOf({ filename: "/etc/motd" }), "file:///etc/motd")
    assert.strictEqual(uriOf({ filename: "//x" }), "file:////x")
    assert.strictEqual(uriOf({}), "file:///")
    assert.strictEqual(uriOf({ file_url: "https://example.com/f", filename: "a" }), "https://example.com/f")
  })

  it("M34: a file that is no base64, only a url, or only a name", () => {
    assert.deepStrictEqual(file({ file_data: "plain words", filename: "a.wav" }), text("plain words"))
    assert.deepStrictEqual(file({ file_url: "https://example.com/f", filename: "f.pdf" }), {
      type: "resource_link",
      uri: "https://example.com/f",
      name: "f.pdf"
    })
    assert.deepStrictEqual(file({ file_url: "https://example.com/f" }), {
      type: "resource_link",
      uri: "https://example.com/f",
      name: ""
    })
    assert.deepStrictEqual(file({ filename: "f.pdf" }), text("f.pdf"))
  })

  // Texts that meet the branches often, beside any text at all.
  const AnyText = Schema.Union([
    Schema.String,
    Schema.Literals([
      "",
      "AQID",
      "AQ==",
      "A",
      "data:;base64,AQ==",
      "data:audio/wav;base64,AQ==",
      "data:a,b",
      "audio.wav",
      "\ud800"
    ])
  ])
  const member = Schema.optionalKey(AnyText)
  const AnyPart = Schema.Union([
    Schema.Struct({ type: Schema.Literals(["text", "input_text", "output_text"]), text: Schema.Json }),
    Schema.Struct({ type: Schema.Literal("input_image"), image_url: AnyText }),
    Schema.Struct({ type: Schema.Literal("input_file"), file_data: member, file_url: member, filename: member }),
    Schema.Struct({ type: Schema.String, more: Schema.Json }),
    Schema.Struct({ type: Schema.Literal("huge"), n: Schema.BigInt })
  ])
  const manyParts = Arbitrary.array(Arbitrary.schema(AnyPart))

  it.prop(
    "M35: each part gives at most one block, in order, that the SDK and JSON take",
    [manyParts],
    ([parts]) => {
      const blocks = Blocks.fromOutput(parts)
      const each = parts.map((part) => Blocks.fromOutput([part]))
      assert.isTrue(each.every((own) => own.length <= 1))
      assert.deepStrictEqual(blocks, each.flat())
      assert.strictEqual(blocks.length, parts.filter((part) => part.type !== "huge" || !("n" in part)).length)
      assert.deepStrictEqual(JSON.parse(JSON.stringify(blocks)), blocks)
      for (const block of blocks) assert.isTrue(isSpecType.ContentBlock(block), JSON.stringify(block))
    },
    { arbitrary: { runs: 300 } }
  )
})
