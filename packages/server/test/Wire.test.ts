/**
 * What stands on the wire byte for byte, and the texts that are written in one place.
 */
import * as Server from "@agenttool/server"
import { Calls, McpServer, StopReason, Wire } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"

describe("the wire", () => {
  it("M83, M75, M36, M17: the names are those of the contract, and of the Go packages", () => {
    const { factsCapability, factsMethod, recordKey, toolKey } = Wire
    assert.deepStrictEqual(
      [factsMethod, factsCapability, recordKey, toolKey],
      [
        "execution/facts",
        "io.github.christopherdavenport.agenttool/facts",
        "io.github.christopherdavenport.agenttool/record",
        "io.github.christopherdavenport.agenttool/tool"
      ]
    )
    // P16: reverse DNS, and not a prefix that MCP keeps for itself.
    for (const key of [factsCapability, recordKey, toolKey]) {
      assert.match(key, /^[a-z]+(\.[a-z]+)+\/[a-z]+$/)
      assert.notMatch(key, /^[a-z]+\.(mcp|modelcontextprotocol)\b/)
    }
  })

  it("M48: the form without fields cannot be changed by whoever is given it", () => {
    assert.isTrue(Object.isFrozen(Wire.emptyForm))
    assert.isTrue(Object.isFrozen(Wire.emptyForm.properties))
    assert.strictEqual(JSON.stringify(Wire.emptyForm), '{"type":"object","properties":{}}')
  })

  it("M55, M28, M27, M30: texts name the tool as JSON quotes it, in one line", () => {
    const tool = 'a "b"\nc'
    const quoted = JSON.stringify(tool)
    const texts = [
      Wire.notWaitingText(tool),
      Wire.stoppedText(tool, "cancelled"),
      Wire.defectText(tool, "1234abcd"),
      Wire.tooLargeText(tool, 17, 16),
      Wire.busyText(tool)
    ]
    assert.deepStrictEqual(texts, [
      `mcpserver: tool ${quoted}: the call these answers belong to is no longer waiting for them; call the tool again`,
      `mcpserver: tool ${quoted}: the call was stopped: cancelled; call the tool again`,
      `tool ${quoted} failed unexpectedly (1234abcd)`,
      `mcpserver: tool ${quoted}: the result is too large: 17 bytes, at most 16 are allowed`,
      `mcpserver: tool ${quoted}: the server is busy; try again later`
    ])
    for (const text of texts) assert.notInclude(text, "\n")
  })

  it("M55, M25, M3: errors have these texts as their messages", () => {
    for (const why of ["unknown", "foreign", "spent", "unreachable", "diverged"] as const) {
      assert.strictEqual(new Calls.NotWaiting({ tool: "a", why }).message, Wire.notWaitingText("a"))
    }
    assert.strictEqual(new Calls.UnknownTool({ tool: "a" }).message, 'unknown tool "a"')
    assert.strictEqual(
      new McpServer.RegistrationError({ tool: "a", detail: "schema: b" }).message,
      'mcpserver: tool "a": schema: b'
    )
  })

  it("M28: each reason for which a call is stopped has words of its own", () => {
    const words = StopReason.StopReason.literals.map(StopReason.text)
    assert.strictEqual(new Set([...words, StopReason.text(undefined)]).size, words.length + 1)
    for (const text of words) assert.match(text, /^[a-z][a-z ]+$/)
  })
})

describe("what the Go package has", () => {
  it("M1, M20, M42, M84: is all here, under the names that docs/from-go.md gives", () => {
    const {
      Blocks,
      Definition,
      McpServer: { addTo, definition, handler, make },
      McpSession,
      Settings
    } = Server
    for (const f of [make, addTo, handler, definition, Definition.make, Blocks.fromOutput, Settings.make]) {
      assert.isFunction(f)
    }
    for (const effect of [McpSession.current, McpSession.option, McpSession.id]) assert.isTrue(Effect.isEffect(effect))
    assert.strictEqual(McpSession.McpSession.key, "@agenttool/server/McpSession")
    assert.strictEqual(Settings.defaults.maxRequests, 10)
    assert.strictEqual(Settings.defaults.abandonAfter, "30 minutes")
    const document = readFileSync(new URL("../../../docs/from-go.md", import.meta.url), "utf8")
    for (const name of [
      "NewServer",
      "AddTools",
      "Handler",
      "Definition",
      "Options",
      "DefaultAbandonAfter",
      "DefaultMaxRequests",
      "ContentOf",
      "SessionFrom",
      "SessionID",
      "ContextWithSession",
      ...[Wire.factsMethod, Wire.factsCapability, Wire.recordKey, Wire.toolKey]
    ]) {
      assert.include(document, `\`${name}\``)
    }
  })
})
