/** Serves three small tools on standard input and output. */
import { McpServer } from "@agenttool/server"
import { NodeRuntime } from "@effect/platform-node"
import { add, tinyImage, upper } from "./stdioTools.ts"

McpServer.layerStdio({
  name: "agenttool-stdio-example-ts",
  version: "0.0.0",
  registrations: McpServer.tools(upper, add, tinyImage)
}).pipe(McpServer.launch, NodeRuntime.runMain)
