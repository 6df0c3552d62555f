/** Starts the server of the suites, has it run a call that never ends, says its pid, and waits to be killed. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { modernCall } from "./rawMessages.ts"

const server = spawn(
  process.execPath,
  ["--conditions=@agenttool/source", fileURLToPath(new URL("./program.ts", import.meta.url)), "stdio"],
  { stdio: ["pipe", "ignore", "pipe"] }
)
server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...modernCall("running", "hold") })}\n`)
server.stderr.on("data", (chunk) => {
  if (String(chunk).includes("holding")) console.log(JSON.stringify({ pid: server.pid }))
})
