/**
 * Processes with a time limit, of which nothing is left behind.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import process from "node:process"
import { setTimeout as sleep } from "node:timers/promises"

/** In the arguments of every process that is started, its own and those that drivers start. */
export const runId = `interop-${randomUUID().slice(0, 8)}`

export const seconds = 1_000
export const limits = { install: 300 * seconds, driver: 90 * seconds, server: 60 * seconds }

export const live = new Set<ChildProcess>()

/** Ends a process with everything that it has started in its group. */
export const kill = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended.
  }
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly late: boolean
}

/** Runs a command to its end, or to its time limit. */
export const run = async (
  [command = "", ...args]: ReadonlyArray<string>,
  limit: number,
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {}
): Promise<Ended> => {
  const child = spawn(command, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: options.env ?? process.env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"]
  })
  live.add(child)
  let stdout = ""
  let stderr = ""
  let late = false
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  const timer = setTimeout(() => {
    late = true
    kill(child, "SIGKILL")
  }, limit)
  try {
    const [code] = await Promise.race([
      once(child, "close"),
      once(child, "error").then(([error]) => Promise.reject(error))
    ])
    return { code, stdout, stderr, late }
  } finally {
    clearTimeout(timer)
    // What a driver has left behind.
    kill(child, "SIGKILL")
    live.delete(child)
  }
}

/** The processes of this run that are still there. */
export const leftovers = (): ReadonlyArray<{ readonly pid: number; readonly args: string }> => {
  try {
    return execFileSync("ps", ["-A", "-o", "pid=,args="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(runId))
      .map((line) => ({ pid: Number.parseInt(line, 10), args: line.trim() }))
  } catch {
    return []
  }
}

/** Looks again and again, until it is so or the time is over. */
export const eventually = async (isSo: () => boolean, limit: number): Promise<boolean> => {
  const end = performance.now() + limit
  while (!isSo()) {
    if (performance.now() > end) return false
    await sleep(20)
  }
  return true
}
