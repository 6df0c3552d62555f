/**
 * One driver against the interop server, and what came of each check.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as path from "node:path"
import process from "node:process"
import { type Check, checks, type Client, type Prepared, root, type Transport } from "./clients.ts"
import { eventually, kill, limits, live, run, runId, seconds } from "./processes.ts"

/** What came of a check; neither, if the driver has not made it. */
export interface Outcome {
  readonly check: Check
  readonly ok: boolean | undefined
  readonly detail: string
}

/** A driver's checks over one transport, in one era. */
export interface Run {
  readonly client: Client
  readonly transport: Transport
  readonly era: string
  readonly outcomes: ReadonlyArray<Outcome>
  /** What went wrong beside the checks. */
  readonly faults: ReadonlyArray<string>
  readonly stderr: string
}

// ----- the server

const serverCommand = (label: string): ReadonlyArray<string> => [
  process.execPath,
  "--conditions=@agenttool/source",
  path.join(root, "packages/examples/src/interop.ts"),
  label // says in a listing of processes whose it is
]

/** `stop` ends it in good order, and gives its exit code. */
export interface HttpServer {
  readonly url: string
  readonly log: () => string
  readonly stop: () => Promise<number | null>
}

/** The one server of all drivers over HTTP. */
export const startHttp = async (): Promise<HttpServer> => {
  const [command = "", ...args] = serverCommand(runId)
  const child = spawn(command, args, {
    env: { ...process.env, PORT: "0" },
    detached: true,
    stdio: ["ignore", "ignore", "pipe"]
  })
  live.add(child)
  let log = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text
  })
  const urlOf = () => /^listening on (\S+)$/m.exec(log)?.[1]
  await eventually(() => urlOf() !== undefined || child.exitCode !== null, limits.server)
  const url = urlOf()
  if (url === undefined) {
    kill(child, "SIGKILL")
    throw new Error(`the server did not start:\n${log}`)
  }
  return {
    url,
    log: () => log,
    stop: async () => {
      if (child.exitCode === null) {
        const exited = once(child, "exit")
        kill(child, "SIGTERM")
        const timer = setTimeout(() => kill(child, "SIGKILL"), 20 * seconds)
        await exited
        clearTimeout(timer)
      }
      live.delete(child)
      return child.exitCode
    }
  }
}

// ----- one driver

const isCheck = (name: unknown): name is Check => checks.some((check) => check === name)

/** The checks that a driver has printed. */
const readOutcomes = (stdout: string): ReadonlyMap<Check, Outcome> => {
  const outcomes = new Map<Check, Outcome>()
  for (const line of stdout.split("\n").filter((text) => text.startsWith("{"))) {
    const { check, detail, ok } = JSON.parse(line) as { check: unknown; ok: boolean; detail: string } // as drivers print it
    if (isCheck(check)) outcomes.set(check, { check, ok, detail })
  }
  return outcomes
}

let labels = 0

/** Runs a driver. */
export const drive = async (
  client: Client,
  prepared: Exclude<Prepared, { readonly skipped: string }>,
  transport: Transport,
  era: string,
  http: HttpServer
): Promise<Run> => {
  const label = `${runId}-${++labels}`
  const target = transport === "http" ? [http.url] : serverCommand(label)
  const { PORT: _, ...env } = process.env
  const ended = await run([...prepared.command, transport, era, label, ...target], limits.driver, {
    env: { ...env, ...prepared.env }
  })
  const log = () => (transport === "http" ? http.log() : ended.stderr)
  const printed = readOutcomes(ended.stdout)
  const outcomes = await Promise.all(
    checks.map(async (check): Promise<Outcome> => {
      const outcome = printed.get(check) ?? { check, ok: undefined, detail: "not made" }
      if (check !== "cancel" || outcome.ok !== true) return outcome
      // The client has given up; whether the tool was stopped the server knows.
      const released = await eventually(() => log().includes(`released ${label}: Cancelled\n`), 5 * seconds)
      const why =
        log()
          .split("\n")
          .find((line) => line.startsWith(`released ${label}`)) ?? "nothing was released"
      return released ? outcome : { check, ok: false, detail: `the server says: ${why}` }
    })
  )
  const faults = [
    ...(ended.late ? [`it took longer than ${limits.driver / seconds} seconds`] : []),
    ...(ended.code === 0 || ended.late ? [] : [`it ended with code ${ended.code}`])
  ]
  return { client, transport, era, outcomes, faults, stderr: ended.stderr }
}
