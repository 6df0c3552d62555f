/**
 * The command line of the MCP Inspector, which makes one request per run: it lists, calls, and says that a result is an
 * error. It shows no progress, cancels nothing, and cannot be asked. Started as the other drivers are (see `checks.ts`),
 * with the file of the Inspector in `INSPECTOR`.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { check, equal, names, readTarget, words } from "./checks.ts"

const { era, target, transport } = readTarget()

interface Envelope {
  readonly result: {
    readonly tools?: ReadonlyArray<{ readonly name: string }>
    readonly content?: ReadonlyArray<{ readonly type: string; readonly text?: string }>
    readonly isError?: boolean
    readonly _meta?: Readonly<Record<string, unknown>>
  }
}

const eraName = era === "auto" ? "auto" : era < "2026-07-28" ? "legacy" : "modern"

/** One run: what it printed, and its exit code. */
const run = async (...args: ReadonlyArray<string>): Promise<Envelope["result"] & { readonly code: unknown }> => {
  const where = transport === "http" ? ["--server-url", target[0] ?? ""] : target
  const child = spawn(
    process.execPath,
    [process.env.INSPECTOR ?? "", "--cli", ...where, "--protocol-era", eraName, "--format", "json", ...args],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  let output = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text
  })
  const [code] = await once(child, "close")
  return { ...(JSON.parse(output) as Envelope).result, code } // as it prints it
}

const call = (name: string, args: Readonly<Record<string, unknown>> = {}) =>
  run("--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args))

await check("connect", async () => {
  // Which revision it speaks it does not say; a result of 2026-07-28 says which server it is from.
  const { _meta } = await call("echo", { text: "on" })
  equal("a result of 2026-07-28", _meta?.["io.modelcontextprotocol/serverInfo"] !== undefined, eraName !== "legacy")
})
await check("list", async () => {
  const { code, tools } = await run("--method", "tools/list")
  equal("the exit code", code, 0)
  equal(
    "the tools",
    tools?.map(({ name }) => name),
    names
  )
})
await check("call", async () => {
  const { code, content } = await call("echo", { text: words })
  equal("the exit code", code, 0)
  equal("the result", content, [{ type: "text", text: words }])
})
await check("error", async () => {
  const { code, content, isError } = await call("fail")
  equal("the exit code", code, 5)
  equal("the result", { content, isError }, { content: [{ type: "text", text: "disk sda is full" }], isError: true })
})
