/**
 * The endpoint for hosts without Effect: behind bare `node:http` and behind Hono, on real sockets, and called as it is.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import { McpServer, McpSession } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { getRequestListener } from "@hono/node-server"
import { type Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { toNodeHandler } from "@modelcontextprotocol/node"
import { Context, Effect, Fiber, Layer, Logger } from "effect"
import { Hono } from "hono"
import { createServer, type RequestListener, type Server as NodeServer } from "node:http"
import type { AddressInfo } from "node:net"
import { callText, client, type ClientOptions, type Era, eras, listed } from "./hosts.ts"
import { until } from "./support/Link.ts"

/** Tools that ask, report, hold on and count in their session; what they have acquired and released. */
const makeTools = () => {
  const held = { acquired: 0, released: 0, opened: 0, closed: 0 }
  class Counter extends Context.Service<Counter, { count: number }>()("test/WebCounter") {}
  const holding = Effect.acquireRelease(
    Effect.sync(() => void held.acquired++),
    () => Effect.sync(() => void held.released++)
  )
  const ask = Tool.make("ask", {
    execute: Effect.fn(function* () {
      yield* holding
      yield* Progress.report("asking")
      return (yield* Elicitor.confirm("May I?")) ? "it may" : "it may not"
    })
  })
  const hold = Tool.make("hold", { execute: () => Effect.andThen(holding, Effect.never) })
  const count = Tool.make("count", {
    execute: () => Effect.map(Effect.service(Counter), (counter) => String(++counter.count))
  }).pipe(
    McpSession.provide(
      Layer.effect(
        Counter,
        Effect.acquireRelease(
          Effect.sync(() => {
            held.opened++
            return { count: 0 }
          }),
          () => Effect.sync(() => void held.closed++)
        )
      )
    )
  )
  return { held, registrations: McpServer.tools(ask, hold, count) }
}

const quiet = Logger.layer([])

const start = () => {
  const { held, registrations } = makeTools()
  const mcp = McpServer.toWebHandler({
    name: "web",
    version: "1.0.0",
    shutdownGrace: 0,
    registrations: Layer.provideMerge(registrations, quiet)
  })
  return { held, mcp }
}

const yes: ClientOptions = { answer: () => ({ action: "accept", content: { confirm: true } }) }

const connect = (era: Era, url: string) =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<Client> => {
      const made = client(era, yes)
      await made.connect(new StreamableHTTPClientTransport(new URL(url)))
      return made
    }),
    (made) => Effect.promise(() => made.close())
  )

const listening = (server: NodeServer) =>
  Effect.callback<string>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      resume(Effect.succeed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)) // of a TCP socket
    })
  })

const closing = (server: NodeServer) =>
  Effect.callback<void>((resume) => {
    server.closeAllConnections()
    server.close(() => resume(Effect.void))
  })

const onSocket = (listener: RequestListener) =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() => createServer(listener)),
      closing
    ),
    listening
  )

/** How a host puts the handler on a socket. */
const hosts = {
  "node:http": (mcp: McpServer.WebHandler) =>
    // Node's request, whose optional members the SDK declares otherwise.
    Effect.map(onSocket(toNodeHandler(mcp) as RequestListener), (url) => `${url}/any/path`),
  Hono: (mcp: McpServer.WebHandler) => {
    const app = new Hono()
    app.all("/mcp", (context) => mcp.fetch(context.req.raw))
    return Effect.map(onSocket(getRequestListener(app.fetch)), (url) => `${url}/mcp`)
  }
}

for (const [name, host] of Object.entries(hosts)) {
  for (const era of eras) {
    describe(`${name}, ${era}`, () => {
      it.live("M1, M47: lists and calls, and a tool that asks waits for the answer", () =>
        Effect.gen(function* () {
          const { held, mcp } = start()
          const url = yield* host(mcp)
          const connected = yield* connect(era, url)
          assert.deepStrictEqual(connected.getServerVersion(), { name: "web", version: "1.0.0" })
          assert.deepStrictEqual(yield* listed(connected), ["ask", "hold", "count"])
          assert.strictEqual(yield* callText(connected, "ask"), "it may")
          assert.deepStrictEqual([held.acquired, held.released], [1, 1])
          yield* Effect.promise(() => mcp.close())
        })
      )

      it.live("M44, M45: has the sessions that the transport has", () =>
        Effect.gen(function* () {
          const { held, mcp } = start()
          const connected = yield* connect(era, yield* host(mcp))
          const counts = [yield* callText(connected, "count"), yield* callText(connected, "count")]
          assert.deepStrictEqual(counts, era === "2026-07-28" ? ["1", "1"] : ["1", "2"])
          yield* Effect.promise(() => mcp.close())
          assert.strictEqual(held.closed, held.opened)
        })
      )

      it.live("M61: closing it stops what runs and waits for its finalizers", () =>
        Effect.gen(function* () {
          const { held, mcp } = start()
          const connected = yield* connect(era, yield* host(mcp))
          const call = yield* Effect.forkScoped(callText(connected, "hold"))
          yield* callText(connected, "count")
          yield* until(
            Effect.sync(() => held.acquired),
            (acquired) => acquired === 1
          )
          assert.strictEqual(held.released, 0)
          yield* Effect.promise(() => mcp.close())
          assert.deepStrictEqual(held, { acquired: 1, released: 1, opened: 1, closed: 1 })
          assert.strictEqual(
            yield* Fiber.join(call),
            'mcpserver: tool "hold": the call was stopped: the server is shutting down; call the tool again'
          )
        })
      )
    })
  }
}

describe("a web handler", () => {
  const discover = (headers: Record<string, string> = {}, host = "localhost") =>
    new Request(`http://${host}/mcp`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "server/discover",
        Host: host,
        ...headers
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "server/discover",
        params: {
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
          }
        }
      })
    })

  it("P103, P104: refuses a foreign Host and Origin before anything is built for it", async () => {
    const { mcp } = start()
    assert.strictEqual((await mcp.fetch(discover())).status, 200)
    assert.strictEqual((await mcp.fetch(discover({ Origin: "http://evil.example" }))).status, 403)
    assert.isAtLeast((await mcp.fetch(discover({}, "evil.example"))).status, 400)
    await mcp.close()
  })

  it("M3: of a tool that cannot be served rejects every request, and nothing is answered", async () => {
    const mcp = McpServer.toWebHandler({
      name: "web",
      version: "1.0.0",
      registrations: Layer.provideMerge(McpServer.tools(Tool.make("", { execute: () => Effect.void })), quiet)
    })
    for (let request = 1; request <= 2; request++) {
      const error: unknown = await mcp.fetch(discover()).catch((thrown: unknown) => thrown)
      assert.instanceOf(error, McpServer.RegistrationError)
      assert.strictEqual((error as Error).message, 'mcpserver: tool "": empty name')
    }
    await mcp.close()
  })

  it("M61: that is closed answers 503, and one that was never used is closed at once", async () => {
    const used = start()
    assert.strictEqual((await used.mcp.fetch(discover())).status, 200)
    await used.mcp.close()
    assert.strictEqual((await used.mcp.fetch(discover())).status, 503)
    const unused = start()
    await unused.mcp.close()
    assert.deepStrictEqual(unused.held, { acquired: 0, released: 0, opened: 0, closed: 0 })
  })

  it("M84: its options are typed: what a tool needs is provided to the registrations", () => {
    class Db extends Context.Service<Db, string>()("test/WebDb") {}
    const registrations = McpServer.tools(Tool.make("query", { execute: () => Effect.service(Db) }))
    const open = { name: "web", version: "1.0.0", registrations }
    // @ts-expect-error: nobody has provided the database
    assert.isDefined(McpServer.toWebHandler(open))
    assert.isDefined(
      McpServer.toWebHandler({ ...open, registrations: Layer.provide(registrations, Layer.succeed(Db, "db")) })
    )
  })
})
