/** One server of the benchmark, by name, on a free port; prints the port. Run by `http.ts`. */
import { Tool } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { NodeHttpServer } from "@effect/platform-node"
import { toNodeHandler } from "@modelcontextprotocol/node"
import { createMcpHandler, Server } from "@modelcontextprotocol/server"
import { Effect, Layer, Logger, Schema } from "effect"
import { McpProtocol, McpServer as AiServer, Tool as AiTool, Toolkit } from "effect/ai"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"

const listening = (port: number) => process.stdout.write(`${port}\n`)

const announce = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => listening(Number(new URL(HttpServer.formatAddress(address)).port)))
)

const onNode = <E, R>(layer: Layer.Layer<never, E, R>) =>
  HttpRouter.serve(layer as Layer.Layer<never, E, HttpRouter.HttpRouter>, {
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.merge(announce),
    Layer.provide(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
    Layer.provide(Logger.layer([])),
    Layer.launch,
    Effect.runFork
  )

const Parameters = Schema.Struct({ text: Schema.String })

const servers: Record<string, () => void> = {
  ours: () => {
    const echo = Tool.make("echo", {
      description: "Echo",
      parameters: Parameters,
      execute: ({ text }) => Effect.succeed(text)
    })
    onNode(McpServer.layerHttp({ name: "bench", version: "0.0.0", registrations: McpServer.tools(echo) }))
  },
  sdk: () => {
    const handler = toNodeHandler(
      createMcpHandler(() => {
        const server = new Server({ name: "bench", version: "0.0.0" }, { capabilities: { tools: {} } })
        server.setRequestHandler("tools/list", () => ({ tools: [] }))
        server.setRequestHandler("tools/call", ({ params }) => ({
          content: [{ type: "text" as const, text: String(params.arguments?.text) }]
        }))
        return server
      })
    )
    const http = createServer((request, response) => void handler(request, response))
    http.listen(0, "127.0.0.1", () => {
      const address = http.address()
      listening(typeof address === "object" && address !== null ? address.port : 0)
    })
  },
  "effect/ai": () => {
    const Echo = AiTool.make("echo", { description: "Echo", parameters: Parameters, success: Schema.String })
    const Kit = Toolkit.make(Echo)
    onNode(
      AiServer.layerHttp({
        name: "bench",
        version: "0.0.0",
        path: "/mcp",
        protocols: [McpProtocol.v2026_07_28],
        registrations: AiServer.toolkit(Kit).pipe(
          Layer.provide(Kit.toLayer(Kit.of({ echo: ({ text }) => Effect.succeed(text) })))
        )
      })
    )
  }
}

servers[process.argv[2] ?? "ours"]?.()

process.once("SIGINT", () => process.exit(0))
