/**
 * Runs clients that others have written against the interop server of the examples, over stdio and HTTP and in each era:
 * `node --conditions=@agenttool/source scripts/interop.ts`.
 *
 * Prints what each check came to, writes docs/interop.md, and succeeds only if nothing that ran failed, but for the misses
 * that `interop/runner/clients.ts` expects, each with its reason. A client whose toolchain is not here is skipped, and that
 * is said; with `--all` it counts as a failure. What is installed goes to a cache in the user's cache folder, which the next
 * run reuses. Every process has a time limit, and nothing is left running.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import process from "node:process"
import { cache, type Client, clients, root, transports } from "../interop/runner/clients.ts"
import { drive, type HttpServer, type Run, startHttp } from "../interop/runner/drive.ts"
import { eventually, kill, leftovers, live, seconds } from "../interop/runner/processes.ts"
import { document, faultsOf, linesOf, nameOf, type Skipped, tableOf } from "../interop/runner/report.ts"

const concurrency = 2

const runAll = async (http: HttpServer): Promise<{ readonly runs: ReadonlyArray<Run>; readonly skipped: Skipped }> => {
  const skipped = new Map<Client, string>()
  console.log(`preparing ${clients.length} clients in ${cache}`)
  const prepared = await Promise.all(clients.map(async (client) => ({ client, ...(await client.prepare()) })))
  const jobs = prepared.flatMap((made) => {
    if ("skipped" in made) {
      skipped.set(made.client, made.skipped)
      console.log(`· ${made.client.name} ${made.client.version}: skipped, ${made.skipped}`)
      return []
    }
    return transports.flatMap((transport) => made.client.eras.map((era) => ({ made, transport, era })))
  })
  const runs: Array<Run> = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (;;) {
      const index = next++
      const job = jobs[index]
      if (job === undefined) return
      const { era, made, transport } = job
      const done = await drive(made.client, made, transport, era, http)
      console.log(linesOf(done).join("\n"))
      runs[index] = done
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return { runs, skipped }
}

const main = async (): Promise<void> => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      for (const child of live) kill(child, "SIGKILL")
      process.exit(1)
    })
  }
  const http = await startHttp()
  let serverCode: number | null = null
  const { runs, skipped } = await runAll(http).finally(async () => {
    serverCode = await http.stop()
  })
  const faults = runs.flatMap((run) => faultsOf(run).map((fault) => `${nameOf(run)}: ${fault}`))
  if (serverCode !== 0) faults.push(`the HTTP server ended with code ${serverCode}`)
  await eventually(() => leftovers().length === 0, 10 * seconds)
  for (const { args, pid } of leftovers()) {
    faults.push(`left behind: ${args}`)
    process.kill(pid, "SIGKILL")
  }
  fs.writeFileSync(path.join(root, "docs/interop.md"), document(runs, skipped))
  const total = runs.reduce((sum, { outcomes }) => sum + outcomes.filter(({ ok }) => ok === true).length, 0)
  console.log(`\n${tableOf(runs).join("\n")}`)
  console.log(`\n${runs.length} runs, ${total} checks ok, ${faults.length} faults, ${skipped.size} clients skipped`)
  for (const fault of faults) console.log(`✗ ${fault}`)
  process.exitCode = faults.length === 0 && !(process.argv.includes("--all") && skipped.size > 0) ? 0 : 1
}

await main()
