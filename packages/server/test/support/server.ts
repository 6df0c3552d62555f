/** Modules of the server that are not in its index: what the suites put together themselves. */
export * as CallsMemory from "@agenttool/server/CallsMemory"
export * as Connected from "@agenttool/server/Connected"
export * as Registry from "@agenttool/server/Registry"
export { McpServer, Settings } from "@agenttool/server"
