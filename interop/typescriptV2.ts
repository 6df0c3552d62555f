/** The client of the official TypeScript SDK, version 2, pinned to the revision that it is given, or left to find one. */
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { drive, readTarget, type Target } from "./checks.ts"

const transportOf = ({ target: [first = "", ...args], transport }: Target): Transport =>
  transport === "http"
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args, stderr: "inherit" })

const modeOf = (era: string) => (era === "auto" ? "auto" : era < "2026-07-28" ? "legacy" : { pin: era })

const started = readTarget()

await drive(started, async (answer) => {
  const client = new Client(
    { name: "interop", version: "0.0.0" },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: modeOf(started.era) }
    }
  )
  client.setRequestHandler("elicitation/create", ({ params }) =>
    answer({
      message: params.message,
      properties: params.mode === "url" ? [] : Object.keys(params.requestedSchema.properties)
    })
  )
  const transport = transportOf(started)
  await client.connect(transport)
  return {
    version: client.getNegotiatedProtocolVersion() ?? "none",
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args, { onProgress, signal } = {}) => {
      const { content, isError } = await client.callTool(
        { name, arguments: args },
        {
          timeout: 20_000,
          ...(signal === undefined ? {} : { signal }),
          ...(onProgress === undefined ? {} : { onprogress: onProgress })
        }
      )
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
