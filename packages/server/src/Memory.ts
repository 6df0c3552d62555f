/**
 * A server and a client of the SDK, connected in memory: what tests of tools are written with.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Client, ClientCapabilities, ElicitRequest, ElicitResult } from "@modelcontextprotocol/client"
import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/server"
import * as Calls from "./Calls.ts"
import * as Connected from "./Connected.ts"
import type * as Registry from "./Registry.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Wire from "./Wire.ts"

/** The connected client of a test. */
export class TestClient extends Context.Service<TestClient, Client>()("@agenttool/server/TestClient") {}

/** The calls of a test's server that are left. */
export class TestCalls extends Context.Service<TestCalls, { readonly count: Effect.Effect<Calls.Count> }>()(
  "@agenttool/server/TestCalls"
) {}

/** A message on the wire of a test, and who sent it. */
export interface Message {
  readonly from: "client" | "server"
  readonly message: JSONRPCMessage
}

/** How the client of a test connects, what it offers, and how it answers. */
export interface Options {
  readonly protocolVersion?: "2026-07-28" | "2025-11-25" | undefined
  readonly capabilities?: ClientCapabilities | undefined
  readonly answer?: ((question: ElicitRequest["params"]) => ElicitResult | Promise<ElicitResult>) | undefined
  /** Told every message of the wire, in order. */
  readonly record?: ((message: Message) => void) | undefined
}

/** Connects a client of the SDK with a server over a pair of transports in memory. */
export const layer = (
  options: SdkServer.ServerInfo & Options
): Layer.Layer<TestClient | TestCalls, never, Calls.Calls | Registry.Registry> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair()
      const calls = yield* Calls.Calls
      yield* Connected.serve(options, recorded(serverSide, "server", options.record))
      // Loaded here: programs that only serve do without the client package.
      const sdk = yield* Effect.promise(() => import("@modelcontextprotocol/client"))
      const version = options.protocolVersion ?? Wire.firstModernVersion
      const capabilities = options.capabilities ?? { elicitation: { form: {}, url: {} } }
      const client = new sdk.Client(
        { name: "test", version: "0.0.0" },
        {
          capabilities,
          versionNegotiation: { mode: version === Wire.firstModernVersion ? { pin: version } : "legacy" }
        }
      )
      if (capabilities.elicitation !== undefined) {
        client.setRequestHandler("elicitation/create", (request) =>
          options.answer === undefined ? { action: "cancel" as const } : options.answer(request.params)
        )
      }
      yield* Effect.acquireRelease(
        Effect.promise(() => client.connect(recorded(clientSide, "client", options.record))),
        () => Effect.promise(() => client.close())
      )
      return Context.make(TestClient, client).pipe(Context.add(TestCalls, { count: calls.count }))
    })
  )

/** One side of the wire, with every message that it sends told to `record`. */
const recorded = (
  transport: InMemoryTransport,
  from: Message["from"],
  record: Options["record"]
): InMemoryTransport => {
  if (record === undefined) return transport
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    record({ from, message })
    return send(message, options)
  }
  return transport
}
