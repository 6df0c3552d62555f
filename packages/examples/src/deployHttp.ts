/** Serves the asking tool over HTTP, on 127.0.0.1 and the port in `PORT` (0: any). */
import { McpServer } from "@agenttool/server"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { Tools } from "./deployTool.ts"

const Server = Layer.unwrap(
  Effect.map(Config.Int("PORT").pipe(Config.withDefault(3000)), (port) =>
    NodeHttpServer.layer(createServer, { host: "127.0.0.1", port, gracefulShutdownTimeout: "1 second" })
  )
)

const Announced = Layer.effectDiscard(
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Console.error(`listening on ${HttpServer.formatAddress(address)}/mcp`)
  )
)

HttpRouter.serve(McpServer.layerHttp({ name: "deployer", version: "1.0.0", registrations: Tools }), {
  disableLogger: true,
  disableListenLog: true
}).pipe(Layer.merge(Announced), Layer.provide(Server), McpServer.launch, NodeRuntime.runMain)
