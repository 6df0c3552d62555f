/**
 * A soak test: mixed traffic against a real listening server, with restarts, for a while (`SOAK_SECONDS`, default 120). It
 * ends with no call, fiber, session or timer left and a flat heap, or exits 1 and says what was left.
 *
 * Run by `npm run soak`.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import { Calls, McpServer, McpSession } from "@agenttool/server"
import { NodeHttpServer } from "@effect/platform-node"
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Context, Effect, Exit, Layer, Logger, Schema, Scope } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { setTimeout as pause } from "node:timers/promises"

const seconds = Number(process.env.SOAK_SECONDS ?? 120)
const roundSeconds = Math.max(3, Math.min(20, seconds / 3))
const workers = 8
const done: Record<string, number> = {}
const held = { acquired: 0, released: 0, sessions: 0, sessionsReleased: 0 }

// ----- the tools

const hold = Effect.acquireRelease(
  Effect.sync(() => held.acquired++),
  () => Effect.sync(() => held.released++)
)

class PerSession extends Context.Service<PerSession, { count: number }>()("soak/PerSession") {
  static readonly layer = Layer.effect(
    this,
    Effect.acquireRelease(
      Effect.sync(() => {
        held.sessions++
        return { count: 0 }
      }),
      () => Effect.sync(() => held.sessionsReleased++)
    )
  )
}

const echo = Tool.make("echo", {
  parameters: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.as(hold, text)
})
const ask = Tool.make("ask", {
  parameters: Schema.Struct({ rounds: Schema.Int }),
  execute: Effect.fn(function* ({ rounds }) {
    yield* hold
    for (let round = 0; round < rounds; round++) {
      if (!(yield* Elicitor.confirm(`round ${round}`))) return "no"
      yield* Progress.report({ progress: round + 1, total: rounds })
    }
    return "yes"
  })
})
const slow = Tool.make("slow", { execute: () => Effect.andThen(hold, Effect.as(Effect.sleep("5 seconds"), "slow")) })
const perSession = Tool.make("per_session", {
  execute: () => Effect.map(Effect.service(PerSession), (session) => String(++session.count))
}).pipe(McpSession.provide(PerSession.layer))
const broken = Tool.make("broken", { execute: () => Effect.die(new Error("broken")) })

// ----- the server

let calls: Calls.Calls["Service"] | undefined
const Tools = Layer.merge(
  McpServer.tools(echo, ask, slow, perSession, broken),
  Layer.effectDiscard(
    Effect.map(Effect.service(Calls.Calls), (service) => {
      calls = service
    })
  )
)

const serverLayer = HttpRouter.serve(
  McpServer.layerHttp({
    name: "soak",
    version: "0.0.0",
    registrations: Tools,
    abandonAfter: "1 second",
    sessionIdleTimeout: "1 second",
    shutdownGrace: "200 millis"
  }),
  { disableLogger: true, disableListenLog: true }
).pipe(
  Layer.provideMerge(
    NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "100 millis" })
  ),
  Layer.provide(Logger.layer([]))
)

const start = async () => {
  const scope = Scope.makeUnsafe()
  const context = await Effect.runPromise(Layer.buildWithScope(serverLayer, scope))
  const { address } = Context.get(context, HttpServer.HttpServer)
  return {
    url: new URL(`${HttpServer.formatAddress(address)}/mcp`),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

// ----- the traffic

const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(Math.random() * items.length)] as A

const connect = async (url: URL) => {
  const modern = Math.random() < 0.5
  const client = new Client(
    { name: "soak", version: "0.0.0" },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: modern ? { pin: "2026-07-28" } : "legacy" } }
  )
  client.setRequestHandler("elicitation/create", () =>
    pick([
      { action: "accept" as const, content: { confirm: true } },
      { action: "decline" as const },
      { action: "cancel" as const }
    ])
  )
  const transport = new StreamableHTTPClientTransport(url)
  await client.connect(transport)
  return { client, transport, modern }
}

type Connected = Awaited<ReturnType<typeof connect>>

const actions: Record<string, (connected: Connected, url: URL) => Promise<unknown>> = {
  echo: ({ client }) => client.callTool({ name: "echo", arguments: { text: "hi" } }),
  list: ({ client }) => client.listTools(),
  ask: ({ client }) => client.callTool({ name: "ask", arguments: { rounds: pick([1, 2, 3]) } }),
  session: ({ client }) => client.callTool({ name: "per_session", arguments: {} }),
  invalid: ({ client }) => client.callTool({ name: "echo", arguments: { text: 1 } }),
  unknown: ({ client }) => client.callTool({ name: "nope", arguments: {} }),
  broken: ({ client }) => client.callTool({ name: "broken", arguments: {} }),
  cancelled: ({ client }) =>
    client.callTool({ name: "slow", arguments: {} }, { signal: AbortSignal.timeout(pick([1, 20, 60])) }),
  // Asks, and never comes back for the answer.
  abandoned: (_, url) =>
    fetch(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "ask"
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: "ask",
          arguments: { rounds: 1 },
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { elicitation: {} }
          }
        }
      })
    }).then((response) => response.text()),
  garbage: (_, url) =>
    fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: pick(["{", "[]", "null", "[[["])
    }).then((response) => response.text())
}

const work = async (url: URL, until: number) => {
  while (Date.now() < until) {
    const connected = await connect(url)
    for (let left = pick([1, 5, 20]); left > 0 && Date.now() < until; left--) {
      const name = pick(Object.keys(actions))
      // What a client is told of a failure is the business of other tests.
      await actions[name]?.(connected, url).catch(() => undefined)
      done[name] = (done[name] ?? 0) + 1
    }
    if (!connected.modern && Math.random() < 0.5) await connected.transport.terminateSession().catch(() => undefined)
    await connected.client.close()
  }
}

// ----- what is left

const problems: Array<string> = []
const left = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout" || name.includes("TCP"))

const settle = async (what: string, isSettled: () => boolean | Promise<boolean>) => {
  for (let tries = 0; tries < 100; tries++) {
    if (await isSettled()) return
    await pause(100)
  }
  problems.push(what)
}

const heap = () => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1024 / 1024
}

const started = Date.now()
const heaps: Array<number> = []
for (let round = 1; Date.now() < started + seconds * 1000 || heaps.length < 3; round++) {
  const server = await start()
  const until = Date.now() + roundSeconds * 1000
  await Promise.all(Array.from({ length: workers }, () => work(server.url, until)))
  // Every other round is shut down in the middle of what is parked and running.
  if (round % 2 === 0) {
    await settle(`round ${round}: calls are left`, async () => {
      const count = calls === undefined ? undefined : await Effect.runPromise(calls.count)
      return count !== undefined && count.attached + count.parked + count.fibers === 0
    })
  }
  await server.close()
  await settle(
    `round ${round}: resources are left: ${held.acquired} acquired, ${held.released} released`,
    () => held.acquired === held.released
  )
  await settle(
    `round ${round}: sessions are left: ${held.sessions} opened, ${held.sessionsReleased} released`,
    () => held.sessions === held.sessionsReleased
  )
  heaps.push(heap())
  const total = Object.values(done).reduce((sum, count) => sum + count, 0)
  process.stdout.write(`round ${round}: ${total} requests so far, heap ${heaps.at(-1)?.toFixed(1)} MiB\n`)
}
await settle(`timers or sockets are left: ${left().join(", ")}`, () => left().length <= 1) // the one of this very wait

// The first round warms the engine up; after it the heap may grow by what the engine keeps of compiled code.
const [warm = 0, ...later] = heaps.slice(1)
const last = later.at(-1) ?? warm
if (last > warm * 1.25 + 8) problems.push(`the heap has grown from ${warm.toFixed(1)} to ${last.toFixed(1)} MiB`)

process.stdout.write(`${JSON.stringify(done)}\n`)
process.stdout.write(`heap after each round, MiB: ${heaps.map((size) => size.toFixed(1)).join(" ")}\n`)
process.stdout.write(problems.length === 0 ? "soak: nothing is left\n" : `soak: ${problems.join("; ")}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
