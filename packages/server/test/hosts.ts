/**
 * What the tests of hosts share: a client in memory, in either era, for a server of the SDK that a host made.
 */
import { Client, type ClientCapabilities, type ElicitRequest, type ElicitResult } from "@modelcontextprotocol/client"
import { InMemoryTransport, type McpServer, type Server } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { Effect, type Scope } from "effect"

export type Era = "2026-07-28" | "2025-11-25"
export const eras = ["2026-07-28", "2025-11-25"] as const

export interface ClientOptions {
  readonly capabilities?: ClientCapabilities
  readonly answer?: (question: ElicitRequest["params"]) => ElicitResult
  readonly toolsChanged?: () => void
}

/** A client that is not connected yet. */
export const client = (
  era: Era,
  { answer, capabilities = { elicitation: {} }, toolsChanged }: ClientOptions = {}
): Client => {
  const made = new Client(
    { name: "test", version: "0.0.0" },
    {
      capabilities,
      versionNegotiation: { mode: era === "2026-07-28" ? { pin: era } : "legacy" },
      ...(toolsChanged === undefined
        ? {}
        : { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: toolsChanged } } })
    }
  )
  if (capabilities.elicitation !== undefined) {
    made.setRequestHandler("elicitation/create", (request) => answer?.(request.params) ?? { action: "cancel" })
  }
  return made
}

/** Connects a client with a host's server in memory, as the era has it, until the scope closes. */
export const connectTo = (
  host: Server | McpServer,
  era: Era,
  options?: ClientOptions
): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair()
      if (era === "2026-07-28") serveStdio(() => host, { transport: serverSide })
      else await host.connect(serverSide)
      const made = client(era, options)
      await made.connect(clientSide)
      return made
    }),
    (made) => Effect.promise(() => made.close())
  )

/** The text of a call's result. */
export const callText = (connected: Client, name: string, args: Record<string, unknown> = {}): Effect.Effect<string> =>
  Effect.map(
    Effect.promise((signal) => connected.callTool({ name, arguments: args }, { signal })),
    ({ content }) => content.map((block) => (block.type === "text" ? block.text : block.type)).join()
  )

/** The names that are listed. */
export const listed = (connected: Client): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.promise(() => connected.listTools()),
    ({ tools }) => tools.map(({ name }) => name)
  )

/** What a request fails with. */
export const failureOf = (request: () => Promise<unknown>): Effect.Effect<{ readonly code?: unknown } & Error> =>
  Effect.flip(
    Effect.tryPromise({
      try: request,
      catch: (error) => error as { readonly code?: unknown } & Error // the SDK throws errors
    })
  ).pipe(Effect.orDie)
