/**
 * Clients that do not behave, over real sockets, and what they do to the others: nothing. After each of them no call is
 * left, what tools had acquired is released, and the memory is what it was.
 */
import { Elicitor, Progress, Tool } from "@agenttool/core"
import { EventStore, McpServer } from "@agenttool/server"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Child from "./support/Child.ts"
import {
  ask,
  inSession,
  legacyAsk,
  listen,
  type Listening,
  modernAsk,
  modernHeaders,
  modernRequest,
  open,
  type Options,
  responseOf,
  textOf,
  until,
  within
} from "./support/endpoint.ts"
import { arguments_ } from "./support/Link.ts"
import { initialize, initialized, legacyCall, modernCall } from "./support/rawMessages.ts"
import { chunk, head, post, socket } from "./support/sockets.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void // with the flag above, it is there

/** Bytes in use, after what nobody needs was collected. */
const inUse = Effect.sync(() => {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
})

const megabyte = 1024 * 1024
const long = { timeout: 30_000 }

interface Faulty extends Listening {
  readonly held: { acquired: number; released: number; reported: number }
  readonly openGate: Effect.Effect<void>
  /** Nothing is left of any call. */
  readonly settled: Effect.Effect<void>
  /** Somebody else is served as ever. */
  readonly othersAreServed: Effect.Effect<void>
}

const served = (more: Partial<Options> = {}): Effect.Effect<Faulty, never, Scope.Scope> =>
  Effect.gen(function* () {
    const held = { acquired: 0, released: 0, reported: 0 }
    const gate = yield* Deferred.make<void>()
    const holding = Effect.acquireRelease(
      Effect.sync(() => void held.acquired++),
      () => Effect.sync(() => void held.released++)
    )
    const echo = Tool.make("echo", {
      parameters: Schema.Struct({ text: Schema.String }),
      execute: ({ text }) => Effect.succeed(text)
    })
    const hold = Tool.make("hold", { execute: () => Effect.andThen(holding, Effect.never) })
    const wait = Tool.make("wait", {
      execute: () => Effect.andThen(holding, Effect.as(Deferred.await(gate), "waited"))
    })
    const report = Effect.suspend(() => Progress.report({ progress: ++held.reported, message: "x".repeat(500) }))
    /** Reports until it is let go. */
    const steps = Tool.make("steps", {
      execute: Effect.fn(function* () {
        yield* holding
        yield* Effect.raceFirst(Effect.forever(Effect.andThen(report, Effect.sleep("5 millis"))), Deferred.await(gate))
        return `${held.reported} steps`
      })
    })
    /** Reports more than anybody reads. */
    const flood = Tool.make("flood", {
      parameters: Schema.Struct({ times: Schema.Int }),
      execute: Effect.fn(function* ({ times }) {
        yield* holding
        for (let time = 0; time < times; time++) {
          yield* report
          if (time % 100 === 0) yield* Effect.sleep(0)
        }
        return "flooded"
      })
    })
    const confirm = Tool.make("confirm", {
      execute: () => Effect.andThen(holding, Effect.map(Elicitor.confirm("Sure?"), String))
    })
    const listening = yield* listen({
      registrations: McpServer.tools(echo, hold, wait, steps, flood, confirm),
      ...more
    })
    return {
      ...listening,
      held,
      openGate: Effect.asVoid(Deferred.succeed(gate, undefined)),
      settled: Effect.asVoid(
        until(
          Effect.map(listening.count, (count) => ({ ...count, ...held })),
          ({ acquired, attached, fibers, parked, released }) =>
            attached === 0 && parked === 0 && fibers === 0 && acquired === released
        )
      ),
      othersAreServed: Effect.gen(function* () {
        const { url } = listening
        const text = "hello"
        assert.strictEqual(textOf(yield* ask(url, modernAsk("echo", { params: { arguments: { text } } }))), text)
        const session = yield* open(url)
        assert.strictEqual(textOf(yield* ask(url, legacyAsk(session, legacyCall(1, "echo", { text })))), text)
        yield* ask(url, { method: "DELETE", headers: inSession(session) })
      })
    }
  })

const json = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message })

/** A call of 2026-07-28 as it is on the wire. */
const modernPost = (name: string, args: object = {}, meta: object = {}, id: string | number = 1) =>
  post(json(modernCall(id, name, { arguments: args, _meta: meta })), modernHeaders(name))

/** The same of a 2025 client. */
const legacyPost = (
  session: string,
  name: string,
  args: Record<string, unknown> = {},
  meta: object = {},
  id: string | number = 1
) => {
  const { params, ...rest } = legacyCall(id, name, args)
  return post(json({ ...rest, params: { ...params, _meta: meta } }), inSession(session))
}

const reporting = { progressToken: "t" }

// ----- over HTTP

describe("a client that reads slowly, or not at all", () => {
  for (const era of ["2026-07-28", "2025-11-25"] as const) {
    it.live(
      "M72: costs no memory: its progress is coalesced, the call ends, and it reads the latest when it goes on",
      () =>
        Effect.gen(function* () {
          const { held, othersAreServed, port, settled, url } = yield* served()
          const session = era === "2025-11-25" ? yield* open(url) : undefined
          const slow = yield* socket(port)
          yield* othersAreServed
          const before = yield* inUse
          const times = 50_000
          yield* slow.write(
            session === undefined
              ? modernPost("flood", { times }, reporting)
              : legacyPost(session, "flood", { times }, reporting)
          )
          yield* slow.receives("HTTP/1.1 200")
          yield* slow.pause
          yield* until(
            Effect.sync(() => held.reported),
            (reported) => reported === times
          )
          // 25 MB were reported; what is on its way is bounded by messages and by what sockets take.
          assert.isBelow((yield* inUse) - before, 12 * megabyte)
          yield* othersAreServed
          yield* settled
          yield* slow.resume
          const all = yield* slow.receives('"text":"flooded"')
          const numbers = [...all.matchAll(/"progress":(\d+)/g)].map(([, number]) => Number(number))
          assert.isAbove(numbers.length, 10)
          assert.strictEqual(numbers.at(-1), times)
          for (const [index, number] of numbers.entries()) {
            if (index > 0) assert.isAbove(number, numbers[index - 1] ?? 0)
          }
        }),
      long
    )
  }

  it.live("P64: and that is cut off leaves nothing", () =>
    Effect.gen(function* () {
      const { held, othersAreServed, port, settled } = yield* served()
      const before = yield* inUse
      for (let times = 0; times < 20; times++) {
        const slow = yield* socket(port)
        yield* slow.write(modernPost("steps", {}, reporting))
        yield* slow.receives("HTTP/1.1 200")
        yield* slow.pause
        yield* slow.cut
      }
      yield* settled
      assert.deepStrictEqual([held.acquired, held.released], [20, 20])
      yield* othersAreServed
      assert.isBelow((yield* inUse) - before, 12 * megabyte)
    })
  )

  it.live("P64: one that has closed its own side only is taken for gone", () =>
    Effect.gen(function* () {
      const { held, port, settled } = yield* served()
      const half = yield* socket(port)
      yield* half.write(modernPost("hold"))
      yield* until(
        Effect.sync(() => held.acquired),
        (acquired) => acquired === 1
      )
      yield* half.end
      yield* settled
    })
  )

  it.live("M84: one that opens connections and says nothing, or half of its head, holds up nobody", () =>
    Effect.gen(function* () {
      const { othersAreServed, port } = yield* served()
      for (let times = 0; times < 50; times++) {
        const silent = yield* socket(port)
        if (times % 2 === 0) yield* silent.write("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le")
      }
      yield* othersAreServed
    })
  )
})

describe("a stream that is cut in the middle of its progress", () => {
  it.live("P64, M60: at 2026-07-28 is a cancellation: the tool is interrupted, and its finalizer runs", () =>
    Effect.gen(function* () {
      const { held, othersAreServed, port, settled } = yield* served()
      const client = yield* socket(port)
      yield* client.write(modernPost("steps", {}, reporting))
      yield* client.receives(/"progress":3\D/)
      assert.deepStrictEqual([held.acquired, held.released], [1, 0])
      yield* client.cut
      yield* settled
      const { reported } = held
      yield* othersAreServed
      assert.strictEqual(held.reported, reported)
    })
  )

  it.live("P125, P127: in a 2025 session the call runs on, and what was missed is fetched by Last-Event-ID", () =>
    Effect.gen(function* () {
      const { held, openGate, othersAreServed, port, settled, url } = yield* served({
        around: EventStore.layerMemory()
      })
      const session = yield* open(url)
      const client = yield* socket(port)
      yield* client.write(legacyPost(session, "steps", {}, reporting))
      const seen = yield* client.receives(/"progress":3\D/)
      const lastId = [...seen.matchAll(/^id: (.+)$/gm)].at(-1)?.[1]
      assert.isDefined(lastId)
      const lastSeen = Number([...seen.matchAll(/"progress":(\d+)/g)].at(-1)?.[1])
      yield* client.cut
      yield* until(
        Effect.sync(() => held.reported),
        (reported) => reported > lastSeen + 10
      )
      assert.deepStrictEqual([held.acquired, held.released], [1, 0])
      yield* othersAreServed
      yield* openGate
      yield* until(
        Effect.sync(() => held.released),
        (released) => released === 1
      )
      const resumed = yield* socket(port)
      const headers = { ...inSession(session), "last-event-id": lastId, accept: "text/event-stream" }
      yield* resumed.write(
        `GET /mcp HTTP/1.1\r\n${Object.entries({ host: "127.0.0.1", ...headers })
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}\r\n`
      )
      const missed = yield* resumed.receives(/ steps"/)
      const numbers = [...missed.matchAll(/"progress":(\d+)/g)].map(([, number]) => Number(number))
      // Everything after what was seen, in order, none of it twice.
      assert.deepStrictEqual(
        numbers,
        Array.from({ length: held.reported - lastSeen }, (_, index) => lastSeen + 1 + index)
      )
      yield* settled
    })
  )

  it.live("P125: without a store the call runs on all the same, and ends with its session at the latest", () =>
    Effect.gen(function* () {
      const { held, port, settled, url } = yield* served()
      const session = yield* open(url)
      const client = yield* socket(port)
      yield* client.write(legacyPost(session, "steps", {}, reporting))
      const seen = yield* client.receives(/"progress":3\D/)
      assert.isString(seen)
      yield* client.cut
      const { reported } = held
      yield* until(
        Effect.sync(() => held.reported),
        (now) => now > reported + 10
      )
      assert.strictEqual(held.released, 0)
      yield* ask(url, { method: "DELETE", headers: inSession(session) })
      yield* settled
    })
  )
})

describe("a client that sends garbage", () => {
  it.live("P96: bytes that are no HTTP end its connection, and nothing else", () =>
    Effect.gen(function* () {
      const { log, othersAreServed, port } = yield* served()
      const before = yield* inUse
      const bytes = new Uint8Array(64 * 1024).map((_, index) => (index * 31 + (index >> 8)) % 256)
      const garbage = [
        "\u0000\u0001\u0002\r\n\r\n",
        bytes,
        `GET ${"/".repeat(100_000)} HTTP/1.1\r\n\r\n`,
        head({ "content-length": -1 }),
        head({ "content-length": "1, 2" }),
        head({ "transfer-encoding": "chunked", "content-length": 5 }),
        `${head({ "transfer-encoding": "chunked" })}zz\r\n`,
        `POST /mcp HTTP/1.1\r\n${"x: y\r\n".repeat(10_000)}\r\n`,
        "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003"
      ]
      for (const text of garbage) {
        const client = yield* socket(port)
        yield* client.write(text)
        yield* client.closed
        assert.notInclude(client.received(), "HTTP/1.1 2")
      }
      yield* othersAreServed
      assert.notInclude(log(), "ERROR")
      assert.isBelow((yield* inUse) - before, 12 * megabyte)
    })
  )

  it.live("P12, P31: JSON that is no message of the protocol is refused as the client's mistake, in both eras", () =>
    Effect.gen(function* () {
      const { held, log, othersAreServed, url } = yield* served()
      const session = yield* open(url)
      const bodies = [
        "null",
        "1",
        '"text"',
        "[]",
        "[[]]",
        "{}",
        '{"jsonrpc":"1.0","id":1,"method":"tools/call"}',
        '{"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"hold"}}',
        '{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"hold"}}',
        '{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"hold"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold","arguments":[]}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold","_meta":7}}',
        '{"jsonrpc":"2.0","id":1,"method":"__proto__","params":{}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"__proto__"}}',
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"constructor","arguments":{"__proto__":1}}}',
        '{"__proto__":{"jsonrpc":"2.0"},"method":"tools/call"}',
        '{"jsonrpc":"2.0","id":"unasked","result":{"action":"accept"}}'
      ]
      for (const body of bodies) {
        for (const headers of [modernHeaders("hold"), inSession(session), {}]) {
          const answer = yield* within(body, ask(url, { body, headers }))
          const { status } = answer
          const fault = answer.messages.at(-1)?.error
          // A response, even one that nobody has asked for, is accepted without a word.
          assert.isTrue((status >= 400 && status < 500) || status === 202 || fault !== undefined, `${status} ${body}`)
          assert.notInclude(answer.text, "    at ")
          assert.notInclude(answer.text, "/src/")
        }
      }
      assert.strictEqual(held.acquired, 0)
      assert.notInclude(log(), "ERROR")
      yield* othersAreServed
    })
  )

  it.live("M84: a body of 100 MB is refused before it has come, and costs no memory", () =>
    Effect.gen(function* () {
      const { othersAreServed, port } = yield* served()
      const before = yield* inUse
      let most = 0
      for (const length of [{ "content-length": 100 * megabyte }, { "transfer-encoding": "chunked" }]) {
        const client = yield* socket(port)
        yield* client.write(head(length))
        const piece = "x".repeat(megabyte)
        const framed = "content-length" in length ? piece : chunk(piece)
        for (let sent = 0; sent < 100 && !client.isClosed(); sent++) {
          yield* client.write(framed)
          yield* Effect.sleep(1)
          if (sent % 20 === 0) most = Math.max(most, yield* inUse)
        }
        yield* client.closed
        assert.include(client.received(), "HTTP/1.1 413")
      }
      yield* othersAreServed
      // What is written here and not taken there waits in this very process as well: the test's own part.
      assert.isBelow((yield* inUse) - before, 32 * megabyte)
      assert.isBelow(most - before, 120 * megabyte)
    })
  )
})

describe("a client that cancels what is not there", () => {
  it.live(
    "P65: ten thousand times, is ignored, and changes nothing for the calls that are",
    () =>
      Effect.gen(function* () {
        const { held, openGate, othersAreServed, port, settled, url } = yield* served()
        const session = yield* open(url)
        const waiting = yield* Effect.forkChild(ask(url, legacyAsk(session, legacyCall("mine", "wait"))), {
          startImmediately: true
        })
        yield* until(
          Effect.sync(() => held.acquired),
          (acquired) => acquired === 1
        )
        const before = yield* inUse
        const client = yield* socket(port)
        const cancels = (from: number, of: number) =>
          Array.from({ length: of }, (_, index) =>
            post(
              json({
                method: "notifications/cancelled",
                params: { requestId: index % 2 === 0 ? from + index : `no such ${from + index}`, reason: "none" }
              }),
              inSession(session)
            )
          ).join("")
        for (let sent = 0; sent < 10_000; sent += 1000) {
          yield* client.write(cancels(sent, 1000))
          yield* until(
            Effect.sync(() => client.received().split("HTTP/1.1 202").length - 1),
            (accepted) => accepted === sent + 1000
          )
        }
        assert.isBelow((yield* inUse) - before, 16 * megabyte)
        yield* othersAreServed
        yield* openGate
        assert.strictEqual(textOf(yield* Fiber.join(waiting)), "waited")
        yield* settled
      }),
    long
  )

  it.live("P65: with nonsense in it, is ignored as well", () =>
    Effect.gen(function* () {
      const { held, openGate, url } = yield* served()
      const session = yield* open(url)
      const waiting = yield* Effect.forkChild(ask(url, legacyAsk(session, legacyCall("mine", "wait"))), {
        startImmediately: true
      })
      yield* until(
        Effect.sync(() => held.acquired),
        (acquired) => acquired === 1
      )
      for (const params of [{}, { requestId: null }, { requestId: { id: "mine" } }, { requestId: ["mine"] }, []]) {
        yield* ask(url, legacyAsk(session, { method: "notifications/cancelled", params }))
        yield* ask(url, modernRequest("notifications/cancelled", { params: { requestId: "mine" } }))
      }
      yield* openGate
      assert.strictEqual(textOf(yield* Fiber.join(waiting)), "waited")
    })
  )
})

describe("a client that uses an id twice at once", () => {
  it.live("P18: at 2026-07-28 gets both answers: a request is its connection", () =>
    Effect.gen(function* () {
      const { held, openGate, settled, url } = yield* served()
      const both = yield* Effect.forkChild(
        Effect.all([ask(url, modernAsk("wait", { id: "same" })), ask(url, modernAsk("wait", { id: "same" }))], {
          concurrency: 2
        }),
        { startImmediately: true }
      )
      yield* until(
        Effect.sync(() => held.acquired),
        (acquired) => acquired === 2
      )
      yield* openGate
      assert.deepStrictEqual((yield* Fiber.join(both)).map(textOf), ["waited", "waited"])
      yield* settled
    })
  )

  it.live("P18: in a 2025 session harms nobody but itself, and leaves nothing", () =>
    Effect.gen(function* () {
      const { held, openGate, othersAreServed, port, settled, url } = yield* served()
      const session = yield* open(url)
      for (let times = 0; times < 2; times++) {
        const client = yield* socket(port)
        yield* client.write(legacyPost(session, "wait", {}, {}, "same"))
        yield* until(
          Effect.sync(() => held.acquired),
          (acquired) => acquired === times + 1
        )
      }
      yield* othersAreServed
      yield* openGate
      yield* settled
      assert.strictEqual(textOf(yield* ask(url, legacyAsk(session, legacyCall("same", "echo", { text: "on" })))), "on")
      assert.strictEqual((yield* ask(url, { method: "DELETE", headers: inSession(session) })).status, 200)
    })
  )
})

describe("clients that come and go", () => {
  it.live(
    "M61: leave nothing, whatever they were doing when they went",
    () =>
      Effect.gen(function* () {
        const { held, othersAreServed, port, settled, url } = yield* served({ maxParked: 10_000, abandonAfter: 300 })
        yield* othersAreServed
        const before = yield* inUse
        for (let times = 0; times < 40; times++) {
          const session = yield* open(url)
          const clients = yield* Effect.forEach(
            [
              modernPost("hold"),
              modernPost("confirm"),
              modernPost("steps", {}, reporting),
              legacyPost(session, "hold"),
              legacyPost(session, "confirm"),
              legacyPost(session, "steps", {}, reporting)
            ],
            (text) => Effect.tap(socket(port), (client) => client.write(text))
          )
          if (times % 2 === 0) {
            yield* until(
              Effect.sync(() => held.acquired),
              (acquired) => acquired >= times
            )
          }
          for (const client of clients) yield* client.cut
          yield* ask(url, { method: "DELETE", headers: inSession(session) })
        }
        yield* settled
        yield* othersAreServed
        assert.isBelow((yield* inUse) - before, 16 * megabyte)
      }),
    long
  )
})

// ----- programs

/** A server whose tool cannot let go. */
const stuckProgram = (transport: "stdio" | "http") =>
  Child.start([
    "--conditions=@agenttool/source",
    fileURLToPath(new URL("./support/stuckProgram.ts", import.meta.url)),
    transport
  ])

const isRunning = ({ pid }: Child.Child): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The server of the suites, whose reader goes away. */
const deaf = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, arguments_("stdio"))),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  ),
  (child) => {
    let [out, err] = ["", ""]
    let code: number | null | undefined
    child.stdout.on("data", (data) => {
      out += String(data)
    })
    child.stderr.on("data", (data) => {
      err += String(data)
    })
    child.stdin.on("error", () => {})
    child.on("exit", (ended) => {
      code = ended
    })
    const has = (read: () => string, words: string) =>
      Effect.asVoid(until(Effect.sync(read), (text) => text.includes(words)))
    return {
      send: (message: object) => Effect.sync(() => void child.stdin.write(`${json(message)}\n`)),
      answered: (words: string) => has(() => out, words),
      said: (words: string) => has(() => err, words),
      closeOutput: Effect.sync(() => void child.stdout.destroy()),
      stderr: () => err,
      code: until(
        Effect.sync(() => code),
        (ended) => ended !== undefined
      )
    }
  }
)

const handshake = (child: Child.Child) =>
  child.send(initialize).pipe(Effect.andThen(child.response("initialize")), Effect.andThen(child.send(initialized)))

describe("a program over stdio", () => {
  it.live(
    "P65: ignores ten thousand cancellations of nothing, and ids that are used twice",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.stdio()
        yield* handshake(child)
        yield* child.send(legacyCall("same", "hold"))
        yield* child.send(legacyCall("same", "echo", { text: "twice" }))
        yield* child.said("holding")
        const cancel = (requestId: unknown) => json({ method: "notifications/cancelled", params: { requestId } })
        const lines = Array.from({ length: 10_000 }, (_, index) => cancel(index % 2 === 0 ? index : `no ${index}`))
        yield* child.write(`${lines.join("\n")}\n`)
        yield* child.send(legacyCall("after", "echo", { text: "after" }))
        const { result } = yield* child.response("after")
        assert.strictEqual(result?.content?.[0]?.text, "after")
        yield* child.endInput
        const { code } = yield* child.exit
        assert.strictEqual(code, 0)
        assert.include(child.stderr(), "released hold")
      }),
    long
  )

  it.live(
    "P96: survives lines that are nested 100,000 levels deep, and long ones",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.stdio()
        yield* handshake(child)
        const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
        yield* child.write(
          `{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"nothing","arguments":{"a":${nested}}}}\n`
        )
        yield* child.write(`${"x".repeat(5_000_000)}\n`)
        yield* child.write(`${nested}\n`)
        yield* child.send(legacyCall("after", "echo", { text: "after" }))
        const { result } = yield* child.response("after")
        assert.strictEqual(result?.content?.[0]?.text, "after")
        for (const line of child.lines()) assert.strictEqual((JSON.parse(line) as { jsonrpc: string }).jsonrpc, "2.0")
        yield* child.endInput
        assert.strictEqual((yield* child.exit).code, 0)
      }),
    long
  )

  it.live(
    "P95: ends quietly, with code 0, when nobody reads its output any more",
    () =>
      Effect.gen(function* () {
        const child = yield* deaf
        yield* child.send(initialize)
        yield* child.answered('"initialize"')
        yield* child.send(initialized)
        yield* child.send(legacyCall("running", "hold"))
        yield* child.said("holding")
        yield* child.closeOutput
        yield* child.send(legacyCall("late", "echo", { text: "x".repeat(100_000) }))
        assert.strictEqual(yield* child.code, 0, child.stderr())
        assert.include(child.stderr(), "released hold")
        assert.notInclude(child.stderr(), "EPIPE")
        assert.notInclude(child.stderr(), "    at ")
      }),
    long
  )
})

describe("a program that ends", () => {
  it.live("M61: listens to signals of its own for as long as it takes to end, and not after that", () =>
    Effect.gen(function* () {
      const listeners = () => process.listenerCount("SIGTERM") + process.listenerCount("SIGINT")
      const before = listeners()
      let ending = 0
      const layer = Layer.effectDiscard(
        Effect.addFinalizer(() =>
          Effect.sync(() => {
            ending = listeners()
          })
        )
      )
      const program = yield* Effect.forkChild(McpServer.launch(layer), { startImmediately: true })
      assert.strictEqual(listeners(), before)
      yield* Fiber.interrupt(program)
      assert.deepStrictEqual([ending, listeners()], [before + 2, before])
    })
  )

  for (const signals of [
    ["SIGTERM", "SIGTERM"],
    ["SIGINT", "SIGINT"],
    ["SIGTERM", "SIGINT"]
  ] as const) {
    it.live(
      "M61: at a second signal ends at once with code 130, whatever its finalizers do",
      () =>
        Effect.gen(function* () {
          const child = yield* stuckProgram("stdio")
          yield* handshake(child)
          yield* child.send(legacyCall("stuck", "stuck"))
          yield* child.said("stuck is running")
          yield* child.kill(signals[0])
          yield* child.said("stuck is being released")
          assert.isTrue(isRunning(child))
          yield* child.kill(signals[1])
          const { code, millis } = yield* child.exit
          assert.strictEqual(code, 130)
          assert.isBelow(millis, 2_000)
        }),
      long
    )
  }

  it.live(
    "M61, P95: after the end of its input the first signal leaves the finalizers their time, the second does not",
    () =>
      Effect.gen(function* () {
        const child = yield* stuckProgram("stdio")
        yield* handshake(child)
        yield* child.send(legacyCall("stuck", "stuck"))
        yield* child.said("stuck is running")
        yield* child.endInput
        yield* child.said("stuck is being released")
        yield* child.kill("SIGTERM")
        yield* Effect.sleep("300 millis")
        assert.isTrue(isRunning(child))
        yield* child.kill("SIGTERM")
        assert.strictEqual((yield* child.exit).code, 130)
      }),
    long
  )

  it.live(
    "M61: over HTTP as well, and with clients that hold their streams",
    () =>
      Effect.gen(function* () {
        const child = yield* stuckProgram("http")
        const said = yield* until(Effect.sync(child.stderr), (text) => /listening on \S+\n/.test(text))
        const url = /listening on (\S+)/.exec(said)?.[1] ?? ""
        const session = yield* open(url)
        yield* Effect.forkChild(ask(url, { method: "GET", headers: inSession(session) }), { startImmediately: true })
        yield* Effect.forkChild(ask(url, modernAsk("stuck")), { startImmediately: true })
        yield* child.said("stuck is running")
        yield* child.kill("SIGTERM")
        yield* child.said("stuck is being released")
        yield* child.kill("SIGTERM")
        const { code, millis } = yield* child.exit
        assert.strictEqual(code, 130)
        assert.isBelow(millis, 2_000)
      }),
    long
  )

  it.live(
    "M61: that has ended in good order says so with code 0, and nothing keeps it there",
    () =>
      Effect.gen(function* () {
        const child = yield* Child.http({ shutdownGrace: 0 })
        const { url } = child
        const session = yield* open(url)
        // Open streams and an idle connection that a client keeps for later.
        yield* Effect.forkChild(ask(url, { method: "GET", headers: inSession(session) }), { startImmediately: true })
        yield* Effect.forkChild(
          ask(url, modernRequest("subscriptions/listen", { params: { notifications: { toolsListChanged: true } } })),
          { startImmediately: true }
        )
        const kept = yield* socket(Number(new URL(url).port))
        yield* kept.write(post(json(modernCall(1, "nothing")), modernHeaders("nothing")))
        yield* kept.receives("ran")
        const message = responseOf(yield* ask(url, modernAsk("ask", { params: { arguments: { build: "b" } } })))
        assert.strictEqual(message.result?.resultType, "input_required")
        yield* child.kill("SIGTERM")
        const { code, millis } = yield* child.exit
        assert.strictEqual(code, 0)
        assert.isBelow(millis, 3_000)
        assert.include(child.output(), "released ask")
      }),
    long
  )
})
