/**
 * The deploy server under a real client: as a child process over stdio, then over HTTP, each at 2026-07-28 and at
 * 2025-11-25. Shows who asks what, that the very fiber that asked goes on, and the result. With `--ask` you answer.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Client, type ElicitResult, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Wire } from "@agenttool/server"
import { Console, Effect, Predicate, Schema, type Scope } from "effect"
import { Prompt } from "effect/cli"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { fileURLToPath } from "node:url"

const versions = ["2026-07-28", "2025-11-25"] as const
type Version = (typeof versions)[number]

const interactive = process.argv.includes("--ask")

const server = (file: string) => ["--conditions=@agenttool/source", fileURLToPath(new URL(file, import.meta.url))]

const show = (who: string, what: string) => Console.log(`${who.padStart(8)} │ ${what}`)

/** What the server logs, line by line. */
const showLog = (output: Readable) => {
  createInterface({ input: output }).on("line", (line) => {
    // `[time] LEVEL (#fiber): message { annotations }`; annotations may go on over more lines.
    const message = /^\[[^\]]+\] \S+ \(#\d+\): ([^{]+)/.exec(line)
    if (message?.[1] !== undefined) Effect.runFork(show("server", message[1]))
  })
}

// ----- answers

const canned: Readonly<Record<string, string | boolean>> = { environment: "staging", confirm: true }

const prompt = (member: string): Effect.Effect<string | boolean, unknown, Prompt.Environment> =>
  member === "environment"
    ? Prompt.run(
        Prompt.Select({
          message: "environment",
          choices: ["staging", "production"].map((value) => ({ title: value, value }))
        })
      )
    : Prompt.run(Prompt.Confirm({ message: member }))

const byPerson = (member: string) => Effect.provide(prompt(member), NodeServices.layer)

const answer = (message: string, members: ReadonlyArray<string>): Effect.Effect<ElicitResult> =>
  Effect.gen(function* () {
    yield* show("asks you", message)
    const content: Record<string, string | boolean> = {}
    for (const member of members) {
      content[member] = interactive ? yield* byPerson(member) : (canned[member] ?? "")
    }
    if (!interactive) yield* Effect.sleep("300 millis")
    yield* show("you", JSON.stringify(content))
    return { action: "accept" as const, content }
  }).pipe(Effect.catch(() => Effect.succeed({ action: "cancel" as const })))

// ----- one session

const connect = (version: Version, transport: Transport) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client(
        { name: "demo", version: "1.0.0" },
        {
          capabilities: { elicitation: { form: {} } },
          versionNegotiation: { mode: version === "2026-07-28" ? { pin: version } : "legacy" }
        }
      )
      client.setRequestHandler("elicitation/create", ({ params }) =>
        Effect.runPromise(
          answer(params.message, "requestedSchema" in params ? Object.keys(params.requestedSchema.properties) : [])
        )
      )
      await client.connect(transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const session = (version: Version, transport: Transport) =>
  Effect.gen(function* () {
    const client = yield* connect(version, transport)
    const { tools } = yield* Effect.promise(() => client.listTools())
    yield* show(
      "client",
      `speaks ${client.getNegotiatedProtocolVersion()}, finds ${tools.map(({ name }) => name).join(", ")}`
    )
    for (const { name } of tools) {
      const facts = yield* Effect.promise(() =>
        client.request(
          { method: Wire.factsMethod, params: { calls: [{ name, arguments: { build: "build-42" } }] } },
          Schema.toStandardSchemaV1(Schema.Struct({ results: Schema.Array(Schema.Json) }))
        )
      )
      yield* show("facts", JSON.stringify(facts.results[0]))
      yield* show("client", `calls ${name}`)
      const result = yield* Effect.promise(() =>
        client.callTool(
          { name, arguments: { build: "build-42" } },
          {
            timeout: 600_000,
            onprogress: ({ message, progress, total }) => {
              // The client reports the rounds that it answers as progress of its own.
              if (total !== undefined) Effect.runFork(show("progress", `${progress}/${total} ${message ?? ""}`))
            }
          }
        )
      )
      const record = Predicate.hasProperty(result._meta, Wire.recordKey) ? result._meta[Wire.recordKey] : undefined
      if (record !== undefined) yield* show("record", JSON.stringify(record))
      const [first] = Array.isArray(result.content) ? result.content : []
      yield* show(
        "result",
        first?.type === "text"
          ? first.text
          : first?.type === "audio"
            ? `${first.mimeType}, ${Buffer.from(first.data, "base64").length} bytes of sound`
            : JSON.stringify(result)
      )
    }
  }).pipe(Effect.scoped)

// ----- the two transports

const overStdio = (version: Version) =>
  Effect.gen(function* () {
    yield* Console.log(`\n── stdio, ${version} ──`)
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: server("./deploy.ts"),
      stderr: "pipe"
    })
    const { stderr } = transport
    if (stderr !== null) showLog(stderr as Readable) // a stream of Node, whatever the type of the SDK says
    yield* session(version, transport)
  })

const startHttp: Effect.Effect<URL, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.callback<{ readonly child: ChildProcess; readonly url: URL }>((resume) => {
      const child = spawn(process.execPath, server("./deployHttp.ts"), {
        env: { ...process.env, PORT: "0" },
        stdio: ["ignore", "pipe", "pipe"]
      })
      createInterface({ input: child.stderr }).once("line", (line) => {
        showLog(child.stderr)
        showLog(child.stdout)
        resume(Effect.succeed({ child, url: new URL(line.replace("listening on ", "")) }))
      })
    }),
    ({ child }) =>
      Effect.callback<void>((resume) => {
        child.once("exit", () => resume(Effect.void))
        child.kill("SIGTERM")
      })
  ),
  ({ url }) => url
)

/** A tool that answers with sound, and asks nothing. */
const sound = Effect.gen(function* () {
  yield* Console.log("\n── sound, over stdio ──")
  yield* session(
    "2026-07-28",
    new StdioClientTransport({ command: process.execPath, args: server("./sound.ts"), stderr: "ignore" })
  )
})

const overHttp = Effect.gen(function* () {
  const url = yield* startHttp
  for (const version of versions) {
    yield* Console.log(`\n── HTTP, ${version} ──`)
    yield* session(version, new StreamableHTTPClientTransport(url))
  }
}).pipe(Effect.scoped)

Effect.gen(function* () {
  for (const version of versions) yield* overStdio(version)
  yield* overHttp
  yield* sound
  yield* Console.log("\nEvery question was answered by its user while the very fiber that asked it waited.")
}).pipe(NodeRuntime.runMain)
