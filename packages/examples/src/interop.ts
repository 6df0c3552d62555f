/**
 * The server that clients of other makers talk to: on standard input and output, or, where `PORT` is set (0: any), over
 * HTTP on 127.0.0.1. `npm run test:interop` runs the clients.
 */
import { McpServer } from "@agenttool/server"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { InteropTools } from "./interopTools.ts"

const options = { name: "agenttool-interop", version: "0.0.0", registrations: InteropTools }

const Announced = Layer.effectDiscard(
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Console.error(`listening on ${HttpServer.formatAddress(address)}/mcp`)
  )
)

const overHttp = (port: number) =>
  HttpRouter.serve(McpServer.layerHttp(options), { disableLogger: true, disableListenLog: true }).pipe(
    Layer.merge(Announced),
    Layer.provide(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port, gracefulShutdownTimeout: "1 second" }))
  )

Effect.flatMap(Config.option(Config.Int("PORT")), (port) =>
  McpServer.launch(Option.isSome(port) ? overHttp(port.value) : McpServer.layerStdio(options))
).pipe(NodeRuntime.runMain)
