/** Serves a tool that answers with sound: half a second of a plain tone, made here. */
import { Part, Tool, ToolResult } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"

const rate = 8_000

/** A WAV file of 16-bit mono samples. */
const tone = (hertz: number, seconds: number): Buffer => {
  const samples = Math.round(rate * seconds)
  const file = Buffer.alloc(44 + 2 * samples)
  file.write("RIFF", 0)
  file.writeUInt32LE(36 + 2 * samples, 4)
  file.write("WAVEfmt ", 8)
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(rate, 24)
  file.writeUInt32LE(2 * rate, 28)
  file.writeUInt16LE(2, 32)
  file.writeUInt16LE(16, 34)
  file.write("data", 36)
  file.writeUInt32LE(2 * samples, 40)
  for (let index = 0; index < samples; index++) {
    file.writeInt16LE(Math.round(12_000 * Math.sin((2 * Math.PI * hertz * index) / rate)), 44 + 2 * index)
  }
  return file
}

const chime = Tool.make("chime", {
  description: "Plays half a second of a plain tone.",
  execute: () => Effect.sync(() => ToolResult.parts([Part.audio("audio/wav", tone(440, 0.5).toString("base64"))]))
}).pipe(Tool.annotate({ readOnly: true }))

McpServer.layerStdio({ name: "chimes", version: "1.0.0", registrations: McpServer.tools(chime) }).pipe(
  McpServer.launch,
  NodeRuntime.runMain
)
