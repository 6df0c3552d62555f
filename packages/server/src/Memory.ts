/**
 * A server and a client of the SDK, connected in memory: what tests of tools are written with.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Client, ClientCapabilities, ElicitRequest, ElicitResult } from "@modelcontextprotocol/client"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import type * as Calls from "./Calls.ts"
import * as Connected from "./Connected.ts"
import type * as Registry from "./Registry.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Wire from "./Wire.ts"

/** The connected client of a test. */
export class TestClient extends Context.Service<TestClient, Client>()("@agenttool/server/TestClient") {}

/** How the client of a test connects, what it offers, and how it answers. */
export interface Options {
  readonly protocolVersion?: "2026-07-28" | "2025-11-25" | undefined
  readonly capabilities?: ClientCapabilities | undefined
  readonly answer?: ((question: ElicitRequest["params"]) => ElicitResult | Promise<ElicitResult>) | undefined
}

/** Connects a client of the SDK with a server over a pair of transports in memory. */
export const layer = (
  options: SdkServer.ServerInfo & Options
): Layer.Layer<TestClient, never, Calls.Calls | Registry.Registry> =>
  Layer.effect(
    TestClient,
    Effect.gen(function* () {
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair()
      yield* Connected.serve(options, serverSide)
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
      return yield* Effect.acquireRelease(
        Effect.as(
          Effect.promise(() => client.connect(clientSide)),
          client
        ),
        () => Effect.promise(() => client.close())
      )
    })
  )
