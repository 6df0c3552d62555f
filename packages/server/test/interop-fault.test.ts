/**
 * What the log says of a connection that its own transport gives up: over stdio a message above 10 MiB, say, which no client
 * can be told of any more.
 */
import { CallsMemory, Connected, Registry } from "./support/server.ts"
import { assert, describe, it } from "@effect/vitest"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { Effect, Layer, Logger } from "effect"

/** The warnings of a connection that ends after this fault of its transport. */
const warningsAfter = (fault: Error | undefined): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") lines.push(String(message))
    })
    yield* Effect.gen(function* () {
      const [, server] = InMemoryTransport.createLinkedPair()
      const ended = yield* Connected.serve({ name: "test", version: "1.0.0" }, server)
      // As the stdio transport of the SDK does, at once.
      if (fault !== undefined) server.onerror?.(fault)
      server.onclose?.()
      yield* ended
    }).pipe(
      Effect.provide(Layer.provideMerge(CallsMemory.layer, Registry.layer)),
      Effect.scoped,
      Effect.provide(Logger.layer([logger]))
    )
    return lines
  })

describe("a connection that ends", () => {
  it.live("P96: by a fault of its transport has the fault in the log", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* warningsAfter(new Error("the message is too large")), [
        "the connection has ended: the message is too large"
      ])
    })
  )

  it.live("P95: because its client has gone is nothing to warn of", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* warningsAfter(undefined), [])
      assert.deepStrictEqual(yield* warningsAfter(Object.assign(new Error("write EPIPE"), { code: "EPIPE" })), [])
    })
  )
})
