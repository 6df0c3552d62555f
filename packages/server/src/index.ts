/**
 * Serves `@agenttool/core` tools over MCP. Each module is one concept, used as a namespace: `McpServer.tools`.
 */
export * as Blocks from "./Blocks.ts"
export * as CallJournal from "./CallJournal.ts"
export * as CallResult from "./CallResult.ts"
export * as Calls from "./Calls.ts"
export * as ClientRequests from "./ClientRequests.ts"
export * as Definition from "./Definition.ts"
export * as EventStore from "./EventStore.ts"
export * as McpServer from "./McpServer.ts"
export * as McpSession from "./McpSession.ts"
export * as Settings from "./Settings.ts"
export * as StateNames from "./StateNames.ts"
export * as StopReason from "./StopReason.ts"
export * as Telemetry from "./Telemetry.ts"
export * as TokenVerifier from "./TokenVerifier.ts"
export * as ToolVisibility from "./ToolVisibility.ts"
export * as Wire from "./Wire.ts"
