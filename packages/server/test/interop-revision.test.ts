/**
 * A connection that stays open: each request says its revision anew, and one that is not served is refused each time.
 */
import { CallsMemory, Connected, McpServer, Registry } from "./support/server.ts"
import { Tool } from "@agenttool/core"
import { assert, describe, it } from "@effect/vitest"
import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/server"
import { Effect, Layer } from "effect"
import { until } from "./support/Link.ts"
import { envelope, initialize, initialized } from "./support/rawMessages.ts"

interface Response {
  readonly id?: unknown
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly data?: unknown }
}

const ping = Tool.make("ping", { execute: () => Effect.succeed("pong") })

/** A connection that is written to by hand. */
const connect = Effect.gen(function* () {
  const context = yield* McpServer.tools(ping).pipe(
    Layer.provideMerge(Layer.provideMerge(CallsMemory.layer, Registry.layer)),
    Layer.build
  )
  const [client, server] = InMemoryTransport.createLinkedPair()
  const received: Array<Response> = []
  client.onmessage = (message) => void received.push(message as Response) // read by the tests
  yield* Effect.provideContext(Connected.serve({ name: "test", version: "1.0.0" }, server), context)
  yield* Effect.promise(() => client.start())
  const send = (message: Readonly<Record<string, unknown>>) =>
    Effect.promise(() => client.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage)) // as a test has it
  const ask = (message: Readonly<Record<string, unknown>> & { readonly id: string }) =>
    Effect.andThen(
      send(message),
      Effect.map(
        until(
          Effect.sync(() => received.find(({ id }) => id === message.id)),
          (response) => response !== undefined
        ),
        (response): Response => response ?? {}
      )
    )
  return { send, ask }
})

const key = "io.modelcontextprotocol/protocolVersion"

const claiming = (id: string, version: string, method = "tools/list", params: object = {}) => ({
  id,
  method,
  params: { ...params, _meta: { ...envelope, [key]: version } }
})

const refusal = (requested: string) => ({ code: -32022, data: { supported: ["2026-07-28"], requested } })

describe("a request that claims a revision", () => {
  it.live("P4, P5: which is not served is refused, also after requests that were served, and by every method", () =>
    Effect.gen(function* () {
      const { ask } = yield* connect
      let count = 0
      for (const round of [1, 2]) {
        for (const version of ["2099-01-01", "2025-11-25", "", "2026-07-27"]) {
          for (const [method, params] of [
            ["tools/list", {}],
            ["tools/call", { name: "ping", arguments: {} }],
            ["server/discover", {}],
            ["execution/facts", { calls: [] }],
            ["tools/never", {}]
          ] as const) {
            const { error, result } = yield* ask(claiming(`${++count}`, version, method, params))
            assert.isUndefined(result, `${method} of ${version}, round ${round}`)
            assert.deepStrictEqual({ code: error?.code, data: error?.data }, refusal(version))
          }
        }
        const served = yield* ask(
          claiming(`served ${round}`, "2026-07-28", "tools/call", { name: "ping", arguments: {} })
        )
        assert.deepStrictEqual(served.result?.content, [{ type: "text", text: "pong" }])
      }
    })
  )

  it.live("P4, P8: on a connection with a handshake may claim what was agreed, and nothing that is not served", () =>
    Effect.gen(function* () {
      const { ask, send } = yield* connect
      yield* ask(initialize)
      yield* send(initialized)
      const agreed = yield* ask(claiming("agreed", "2025-11-25"))
      assert.lengthOf(agreed.result?.tools as ReadonlyArray<unknown>, 1)
      const { error } = yield* ask(claiming("unserved", "2099-01-01"))
      assert.deepStrictEqual({ code: error?.code, data: error?.data }, refusal("2099-01-01"))
    })
  )
})
