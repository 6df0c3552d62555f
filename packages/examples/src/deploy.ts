/** Serves the asking tool on standard input and output. */
import { McpServer } from "@agenttool/server"
import { NodeRuntime } from "@effect/platform-node"
import { Tools } from "./deployTool.ts"

McpServer.layerStdio({ name: "deployer", version: "1.0.0", registrations: Tools }).pipe(
  McpServer.launch,
  NodeRuntime.runMain
)
