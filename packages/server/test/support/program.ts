/**
 * The server of the suites as a program: `program.ts stdio|http [settings as JSON]`. Over HTTP it listens on any port of
 * 127.0.0.1 and says which on standard error.
 */
import { McpServer } from "@agenttool/server"
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import * as Tools from "./tools.ts"

const [transport = "stdio", settings = "{}"] = process.argv.slice(2)

const options = {
  name: "suite",
  version: "1.2.3",
  instructions: "Call the tools.",
  registrations: Tools.make().layer,
  // What a test has written as JSON: names and values of `Settings`.
  ...(JSON.parse(settings) as object)
}

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

// At start-up, as a library may do (S-01).
const noise = Layer.effectDiscard(Effect.sync(() => console.log("noise at the start")))

const overStdio = McpServer.layerStdio({ ...options, registrations: Layer.merge(options.registrations, noise) })

NodeRuntime.runMain(McpServer.launch(transport === "http" ? overHttp : overStdio))
