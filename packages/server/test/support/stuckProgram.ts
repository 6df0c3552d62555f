/**
 * A server whose tool cannot let go: `stuckProgram.ts stdio|http`. Its finalizer says that it has begun, and never ends.
 */
import { Tool } from "@agenttool/core"
import { McpServer } from "@agenttool/server"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"

const stuck = Tool.make("stuck", {
  execute: () =>
    Effect.acquireUseRelease(
      Console.error("stuck is running"),
      () => Effect.never,
      () => Effect.andThen(Console.error("stuck is being released"), Effect.never)
    )
})

const options = { name: "stuck", version: "1.0.0", shutdownGrace: 0, registrations: McpServer.tools(stuck) }

const announced = Layer.effectDiscard(
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Console.error(`listening on ${HttpServer.formatAddress(address)}/mcp`)
  )
)

const overHttp = HttpRouter.serve(McpServer.layerHttp(options), { disableLogger: true, disableListenLog: true }).pipe(
  Layer.merge(announced),
  Layer.provide(
    NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0, gracefulShutdownTimeout: "10 seconds" })
  )
)

NodeRuntime.runMain(McpServer.launch(process.argv[2] === "http" ? overHttp : McpServer.layerStdio(options)))
