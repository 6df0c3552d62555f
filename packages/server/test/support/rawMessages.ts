/**
 * Messages as clients of both eras write them.
 */

/** A call as a client of 2026-07-28 writes it. */
export const modernCall = (id: string | number, name: string, more: Readonly<Record<string, unknown>> = {}) => ({
  id,
  method: "tools/call",
  params: { name, arguments: {}, ...more, _meta: { ...envelope, ...(more._meta as object | undefined) } }
})

export const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "0.0.0" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } }
}

/** What a client of 2025-11-25 opens with, and its second message. */
export const initialize = {
  id: "initialize",
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: { form: {} } },
    clientInfo: { name: "test", version: "0.0.0" }
  }
}
export const initialized = { method: "notifications/initialized" }

/** A call as a client of 2025-11-25 writes it. */
export const legacyCall = (id: string | number, name: string, args: Readonly<Record<string, unknown>> = {}) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args }
})
