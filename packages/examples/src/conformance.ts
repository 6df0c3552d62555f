/**
 * The server that the official conformance suite talks to, over HTTP, on 127.0.0.1 and the port in `PORT` (0: any). It has
 * tools, and nothing else. `npm run conformance` runs the suite against it.
 */
import { EventStore, McpServer } from "@agenttool/server"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { AskingTools } from "./conformanceQuestions.ts"
import { ContentTools } from "./conformanceTools.ts"

const Mcp = McpServer.layerHttp({
  name: "agenttool-conformance",
  version: "0.0.0",
  registrations: Layer.mergeAll(ContentTools, AskingTools)
  // Clients of 2025-11-25 can resume a stream that they have lost.
}).pipe(Layer.provide(EventStore.layerMemory()))

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

HttpRouter.serve(Mcp, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.merge(Announced),
  Layer.provide(Server),
  McpServer.launch,
  NodeRuntime.runMain
)
