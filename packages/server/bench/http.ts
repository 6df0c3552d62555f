/**
 * Calls of an echo tool over HTTP at 2026-07-28: ours, the SDK's `Server`, and effect/ai's server, in interleaved rounds.
 * Reported as CPU of the server per call, and as ratios to the SDK's in the same run. Run by `npm run bench:http`.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : ["sdk", "ours", "effect/ai"]
const rounds = 5
const callsPerRound = 1_500
const connections = 16

const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "echo",
    arguments: { text: "hi" },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {}
    }
  }
})

const start = (name: string) =>
  new Promise<{ name: string; port: number; pid: number; stop: () => void }>((resolve) => {
    const child = spawn(
      process.execPath,
      ["--conditions=@agenttool/source", fileURLToPath(new URL("./server.ts", import.meta.url)), name],
      { stdio: ["ignore", "pipe", "inherit"] }
    )
    createInterface({ input: child.stdout }).once("line", (line) =>
      resolve({ name, port: Number(line), pid: child.pid ?? 0, stop: () => child.kill("SIGKILL") })
    )
  })

const agent = new Agent({ keepAlive: true, maxSockets: connections })

const call = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const sent = request(
      {
        agent,
        port,
        host: "127.0.0.1",
        path: "/mcp",
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
          "MCP-Protocol-Version": "2026-07-28",
          "Mcp-Method": "tools/call",
          "Mcp-Name": "echo",
          "Content-Length": body.length
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => {
          text += chunk
        })
        response.on("end", () => (text.includes("hi") ? resolve() : reject(new Error(text))))
      }
    )
    sent.on("error", reject)
    sent.end(body)
  })

/** CPU seconds that a process has used, from the kernel; the clock ticks are a hundredth of a second. */
const cpu = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

const round = async (port: number, pid: number) => {
  const [cpuBefore, before] = [cpu(pid), performance.now()]
  let left = callsPerRound
  const worker = async () => {
    while (left-- > 0) await call(port)
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return {
    cpu: ((cpu(pid) - cpuBefore) / callsPerRound) * 1e6,
    rate: (callsPerRound / (performance.now() - before)) * 1e3
  }
}

const median = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const servers = await Promise.all(names.map(start))
const results = new Map(names.map((name) => [name, [] as Array<{ cpu: number; rate: number }>]))
for (let index = 0; index <= rounds; index++) {
  for (const { name, pid, port } of servers) {
    const result = await round(port, pid)
    // The first round warms up.
    if (index > 0) results.get(name)?.push(result)
  }
}
for (const { stop } of servers) stop()
agent.destroy()

const base = median(results.get("sdk")?.map(({ cpu }) => cpu) ?? [1])
for (const [name, all] of results) {
  const micros = median(all.map(({ cpu }) => cpu))
  const rate = median(all.map(({ rate }) => rate))
  process.stdout.write(
    `${name.padEnd(10)} ${micros.toFixed(0).padStart(6)} µs CPU per call   ${(micros / base).toFixed(2)} × the SDK   ${rate.toFixed(0).padStart(6)} calls/s\n`
  )
}
