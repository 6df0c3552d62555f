/**
 * What every client of the TypeScript SDKs is put through: the checks, and the lines that say what came of them. The drivers
 * in other languages make the same checks in their own words.
 *
 * A driver is started as `DRIVER TRANSPORT ERA LABEL TARGET...`: the era is a revision, or `auto` where the client is to find
 * one; the target is a URL (http) or a command with its arguments (stdio). It prints one line of JSON per check. That the
 * server has released what a cancelled call held is in the server's log, under the label; the runner looks there.
 */

export interface Question {
  readonly message: string
  readonly properties: ReadonlyArray<string>
}

// Not an interface: the SDKs' results are open, and an alias fits those.
export type Answer = {
  readonly action: "accept"
  readonly content: Record<string, string | boolean>
}

export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface Result {
  readonly text: string
  readonly isError: boolean
}

/** A connected client. `call` rejects when it is cancelled. */
export interface Driven {
  readonly version: string
  readonly list: () => Promise<ReadonlyArray<string>>
  readonly call: (
    name: string,
    args: Record<string, unknown>,
    options?: { readonly signal?: AbortSignal; readonly onProgress?: (progress: Progress) => void }
  ) => Promise<Result>
  readonly close: () => Promise<void>
}

export interface Target {
  readonly transport: "stdio" | "http"
  readonly era: string
  readonly label: string
  readonly target: ReadonlyArray<string>
}

/** The revision that `auto` has to end up with. */
const newest = "2026-07-28"

/** What the driver was started with. */
export const readTarget = (): Target => {
  const [transport, era, label, ...target] = process.argv.slice(2)
  if (
    (transport !== "stdio" && transport !== "http") ||
    era === undefined ||
    label === undefined ||
    target.length === 0
  ) {
    throw new Error("usage: DRIVER stdio|http ERA LABEL TARGET...")
  }
  return { transport, era, label, target }
}

export const names = ["echo", "fail", "steps", "slow", "ask", "ask_twice"]

// The last two are no line ends in JSON, and are for some readers of lines.
export const words = "Grüße, 世界 🌍\u2028next\u2029last"

const answers: Readonly<Record<string, Record<string, string | boolean>>> = {
  "What is your name?": { name: "Ada" },
  "Which colour?": { choice: "red" },
  "Really red?": { confirm: true }
}

/** Prints what came of a check. */
const say = (check: string, ok: boolean, detail = ""): void => {
  process.stdout.write(`${JSON.stringify({ check, ok, detail })}\n`)
}

/** Complains where two values are not the same JSON. */
export const equal = (what: string, seen: unknown, expected: unknown): void => {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(expected)]
  if (one !== other) throw new Error(`${what}: ${one} instead of ${other}`)
}

/** Makes one check, and prints what came of it. */
export const check = async (name: string, body: () => Promise<void>): Promise<void> => {
  try {
    await body()
    say(name, true)
  } catch (error) {
    say(name, false, String(error))
  }
}

/** Connects, makes all checks, and closes. */
export const drive = async (
  { era, label }: Target,
  connect: (answer: (question: Question) => Answer) => Promise<Driven>
): Promise<void> => {
  const asked: Array<string> = []
  const questions = async (client: Driven, tool: string, expected: ReadonlyArray<string>, text: string) => {
    asked.length = 0
    const result = await client.call(tool, {})
    equal("the result", result, { text, isError: false })
    equal("the questions", asked, expected)
  }

  const client = await connect(({ message, properties }) => {
    asked.push(message)
    const content = answers[message] ?? {}
    equal("the form", properties, Object.keys(content))
    return { action: "accept", content }
  })

  await check("connect", async () => equal("the version", client.version, era === "auto" ? newest : era))
  await check("list", async () => equal("the tools", await client.list(), names))
  await check("call", async () =>
    equal("the result", await client.call("echo", { text: words }), { text: words, isError: false })
  )
  await check("error", async () =>
    equal("the result", await client.call("fail", {}), { text: "disk sda is full", isError: true })
  )
  await check("progress", async () => {
    const seen: Array<Progress> = []
    const result = await client.call("steps", {}, { onProgress: (progress) => void seen.push(progress) })
    equal("the result", result, { text: "took 10 steps", isError: false })
    equal(
      "the progress",
      seen.map(({ message, progress, total }) => [progress, total, message]),
      Array.from({ length: 10 }, (_, step) => [step + 1, 10, `step ${step + 1}`])
    )
  })
  await check("cancel", async () => {
    const cancelling = new AbortController()
    const ended = await client
      .call("slow", { label }, { signal: cancelling.signal, onProgress: () => cancelling.abort("enough") })
      .then(
        (result) => `ended with ${JSON.stringify(result)}`,
        () => "cancelled"
      )
    equal("the call", ended, "cancelled")
    equal("a call after it", await client.call("echo", { text: "on" }), { text: "on", isError: false })
  })
  await check("ask", () => questions(client, "ask", ["What is your name?"], "Hello, Ada."))
  await check("ask_twice", () => questions(client, "ask_twice", ["Which colour?", "Really red?"], "red: true"))
  await client.close()
}
