/**
 * The asking example over both transports, by its npm scripts, under a client of the SDK in both eras.
 */
import { assert, describe, it } from "@effect/vitest"
import { Client, type ElicitResult, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect } from "effect"
import { npmRun, start, until } from "./programs.ts"

const eras = ["2026-07-28", "2025-11-25"] as const
type Era = (typeof eras)[number]

const seconds = { timeout: 90_000 }

/** Connects with a user who gives these answers, and says what the questions were. */
const connect = (era: Era, transport: Transport, answers: ReadonlyArray<ElicitResult>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const questions: Array<string> = []
      const client = new Client(
        { name: "test", version: "0.0.0" },
        {
          capabilities: { elicitation: { form: {} } },
          versionNegotiation: { mode: era === "2026-07-28" ? { pin: era } : "legacy" }
        }
      )
      client.setRequestHandler("elicitation/create", ({ params }) => {
        questions.push(params.message)
        return answers[questions.length - 1] ?? { action: "cancel" }
      })
      await client.connect(transport)
      return { client, questions }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

const deployed = (era: Era, transport: Transport, answers: ReadonlyArray<ElicitResult>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { client, questions } = yield* connect(era, transport, answers)
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(
        tools.map(({ annotations, name }) => [name, annotations?.destructiveHint]),
        [["deploy", true]]
      )
      const result = yield* Effect.promise(() => client.callTool({ name: "deploy", arguments: { build: "b1" } }))
      assert.isUndefined(result.isError)
      const [block] = result.content
      return { text: block?.type === "text" ? block.text : "", questions }
    })
  )

const staging: ElicitResult = { action: "accept", content: { environment: "staging" } }
const confirmed: ElicitResult = { action: "accept", content: { confirm: true } }
const both = ["Deploy b1 where?", "Deploy b1 to staging?"]

const overStdio = () => new StdioClientTransport({ ...npmRun("example:deploy"), stderr: "pipe" })

describe("the deploy example", () => {
  for (const era of eras) {
    it.live(
      `over stdio asks its user twice and deploys (${era})`,
      () =>
        Effect.gen(function* () {
          const transport = overStdio()
          let log = ""
          transport.stderr?.on("data", (chunk) => {
            log += String(chunk)
          })
          const { questions, text } = yield* deployed(era, transport, [staging, confirmed])
          assert.strictEqual(text, "Deployed b1 to staging.")
          assert.deepStrictEqual(questions, both)
          // One fiber asks, waits and goes on, and holds the lock all the while. What it logs may come after its result.
          yield* until(
            () => /unlocked b1/.exec(log) ?? undefined,
            () => `the lock to be released: ${log}`
          )
          const fibers = Array.from(log.matchAll(/fiber (\d+)/g), ([, fiber]) => fiber)
          assert.lengthOf(fibers, 4)
          assert.strictEqual(new Set(fibers).size, 1)
          assert.isAbove(log.indexOf("unlocked b1"), log.lastIndexOf("goes on"))
        }),
      seconds
    )
  }

  it.live(
    "over HTTP deploys or not, as its user says, in both eras, and ends by a signal",
    () =>
      Effect.gen(function* () {
        const server = yield* start("example:deploy:http", { PORT: "0" })
        const [, address = ""] = yield* server.said(/listening on (\S+)\n/)
        for (const era of eras) {
          const http = () => new StreamableHTTPClientTransport(new URL(address))
          assert.deepStrictEqual(yield* deployed(era, http(), [staging, confirmed]), {
            text: "Deployed b1 to staging.",
            questions: both
          })
          const nothing = "Nothing was deployed."
          assert.deepStrictEqual(yield* deployed(era, http(), [staging, { action: "decline" }]), {
            text: nothing,
            questions: both
          })
          assert.deepStrictEqual(yield* deployed(era, http(), [{ action: "cancel" }]), {
            text: nothing,
            questions: both.slice(0, 1)
          })
        }
        yield* server.kill("SIGTERM")
        yield* server.gone
        // What was locked is unlocked, however the call ended.
        yield* server.exit
        assert.lengthOf(server.output().match(/\slocked b1/g) ?? [], 6)
        assert.lengthOf(server.output().match(/unlocked b1/g) ?? [], 6)
      }),
    seconds
  )
})
