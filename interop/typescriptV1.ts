/** The client of the official TypeScript SDK, version 1, which speaks the 2025 revisions. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import { drive, readTarget, type Target } from "./checks.ts"

const transportOf = ({ target: [first = "", ...args], transport }: Target) =>
  transport === "http"
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args, stderr: "inherit" })

const started = readTarget()

await drive(started, async (answer) => {
  const client = new Client({ name: "interop", version: "0.0.0" }, { capabilities: { elicitation: { form: {} } } })
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) =>
    answer({
      message: params.message,
      properties: params.mode === "url" ? [] : Object.keys(params.requestedSchema.properties)
    })
  )
  const transport = transportOf(started)
  // The client keeps the negotiated version to itself, and tells the transport that wants to know.
  let version = "none"
  // The transports of the SDK are not written for exact optional members, and are transports all the same.
  const told = transport as Transport
  const tell = told.setProtocolVersion?.bind(told)
  told.setProtocolVersion = (negotiated) => {
    version = negotiated
    tell?.(negotiated)
  }
  await client.connect(told)
  return {
    version,
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, { onProgress, signal } = {}) => {
      const called = await client.callTool({ name, arguments: args }, CallToolResultSchema, {
        timeout: 20_000,
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : { onprogress: onProgress })
      })
      const { content, isError } = CallToolResultSchema.parse(called)
      return {
        text: content.map((block) => (block.type === "text" ? block.text : `(${block.type})`)).join(""),
        isError: isError === true
      }
    },
    close: async () => {
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession()
      await client.close()
    }
  }
})
