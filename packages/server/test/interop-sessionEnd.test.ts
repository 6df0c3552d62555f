/**
 * Why a running call ends when its client goes: clients of all makers just close the connection, or delete the session.
 */
import { Tool } from "@agenttool/core"
import { McpServer, StopReason } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Server } from "@modelcontextprotocol/server"
import { Effect, Exit, Option } from "effect"
import { client, connectTo, type Era, eras } from "./hosts.ts"
import { until } from "./support/Link.ts"

/** A tool that never ends by itself, and what it has seen. */
const makeHold = () => {
  const log: Array<string> = []
  const hold = Tool.make("hold", {
    execute: () =>
      Effect.andThen(
        Effect.acquireRelease(
          Effect.sync(() => void log.push("holding")),
          (_, exit) =>
            Effect.sync(() => {
              const reason = Exit.isFailure(exit) ? StopReason.of(exit.cause) : Option.none()
              log.push(Option.getOrElse(reason, () => "no reason"))
            })
        ),
        Effect.never
      )
  })
  return { hold, log }
}

const seen = (log: ReadonlyArray<string>, ...expected: ReadonlyArray<string>) =>
  until(
    Effect.sync(() => [...log]),
    (lines) => lines.length === expected.length
  ).pipe(Effect.map((lines) => assert.deepStrictEqual(lines, expected)))

const callAndClose = (
  log: ReadonlyArray<string>,
  call: () => Promise<unknown>,
  close: () => Promise<unknown>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const ended = call().then(
      (result) => JSON.stringify(result),
      () => "no result"
    )
    yield* seen(log, "holding")
    yield* Effect.promise(close)
    yield* seen(log, "holding", "SessionEnded")
    assert.strictEqual(yield* Effect.promise(() => ended), "no result")
  })

for (const era of eras) {
  describe(`${era}: a client that goes while its call runs`, () => {
    it.live("M28, M60: ends the call for the reason that its session has ended, not that it was cancelled", () =>
      Effect.gen(function* () {
        const { hold, log } = makeHold()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const connected = yield* McpServer.TestClient
            yield* callAndClose(
              log,
              () => connected.callTool({ name: "hold", arguments: {} }),
              () => connected.close()
            )
          }).pipe(Effect.provide(McpServer.layerTest({ protocolVersion: era, registrations: McpServer.tools(hold) })))
        )
      })
    )

    it.live("M28, M60: ends the call of a host's own server for the same reason", () =>
      Effect.gen(function* () {
        const { hold, log } = makeHold()
        const host = new Server({ name: "host", version: "1.0.0" }, { capabilities: {} })
        yield* McpServer.addTo(host, hold)
        const connected = yield* connectTo(host, era)
        yield* callAndClose(
          log,
          () => connected.callTool({ name: "hold", arguments: {} }),
          () => connected.close()
        )
      })
    )
  })
}

describe("a client that deletes its session while its call runs", () => {
  it.live("M28, M60: ends the call for the reason that its session has ended", () =>
    Effect.gen(function* () {
      const era: Era = "2025-11-25"
      const { hold, log } = makeHold()
      const mcp = yield* Effect.acquireRelease(
        Effect.sync(() =>
          McpServer.toWebHandler({ name: "web", version: "1.0.0", registrations: McpServer.tools(hold) })
        ),
        ({ close }) => Effect.promise(close)
      )
      const transport = new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), {
        fetch: (url, init) => {
          const headers = new Headers(init?.headers)
          headers.set("host", "localhost")
          return mcp.fetch(new Request(url, { ...init, headers }))
        }
      })
      const connected = client(era)
      yield* Effect.promise(() => connected.connect(transport))
      yield* callAndClose(
        log,
        () => connected.callTool({ name: "hold", arguments: {} }),
        async () => {
          await transport.terminateSession()
          await connected.close()
        }
      )
    })
  )
})
