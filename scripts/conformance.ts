/**
 * Runs the official conformance suite against the conformance server of the examples, once per revision:
 * `node --conditions=@agenttool/source scripts/conformance.ts`.
 *
 * Prints what passed and what failed, writes docs/conformance.md, and succeeds only if exactly the checks fail that
 * `conformance/expected-failures.REVISION.yaml` lists with a reason. Warnings count like failures. Scenarios of extensions
 * are run and shown, and judged by nobody. Everything stays on this machine.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import process from "node:process"
import { createInterface } from "node:readline"

interface Check {
  readonly id: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO"
  readonly errorMessage?: string
}

interface Scenario {
  readonly name: string
  readonly passed: number
  readonly failed: number
  readonly warnings: number
  /** Why it does not count, if it does not: `extension`, `pending`, `added-after-release`. */
  readonly unscored: string | undefined
  /** The reasons of the failures that are expected. */
  readonly reasons: ReadonlyArray<string>
  /** The failures that are not. */
  readonly unexpected: ReadonlyArray<string>
}

interface Report {
  readonly revision: string
  readonly command: string
  readonly scenarios: ReadonlyArray<Scenario>
  /** Expected failures that did not happen. */
  readonly stale: ReadonlyArray<string>
  readonly exitCode: number
  readonly output: string
}

const root = path.join(import.meta.dirname, "..")
const suite = path.join(root, "node_modules/@modelcontextprotocol/conformance")

const runs = [
  { revision: "2026-07-28", flags: ["--requirements", "2026-07-28"] },
  { revision: "2025-11-25", flags: ["--requirements", "2025-11-25"] },
  // No requirements were frozen for it: all scenarios that know it.
  { revision: "2025-06-18", flags: ["--suite", "all", "--spec-version", "2025-06-18"] }
]

// ----- the server

const startServer = async (): Promise<{ readonly child: ChildProcess; readonly url: string }> => {
  const child = spawn(
    process.execPath,
    ["--conditions=@agenttool/source", path.join(root, "packages/examples/src/conformance.ts")],
    { env: { ...process.env, PORT: "0" }, stdio: ["ignore", "ignore", "pipe"] }
  )
  const heard: Array<string> = []
  let url: string | undefined
  for await (const line of createInterface({ input: child.stderr })) {
    url = /^listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) break
    heard.push(line)
  }
  if (url === undefined) throw new Error(`the server did not start:\n${heard.join("\n")}`)
  child.stderr.resume()
  return { child, url }
}

const stopServer = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null) return
  const exited = once(child, "exit")
  child.kill("SIGTERM")
  await exited
}

// ----- one run of the suite

/** The expected failures of a file, and why: the comment at the end of the line. */
const readExpected = (file: string): ReadonlyMap<string, string> =>
  new Map(
    Array.from(
      fs.readFileSync(file, "utf8").matchAll(/^ +- (\S+) # (.+)$/gm),
      ([, check = "", reason = ""]) => [check, reason] as const
    )
  )

const runSuite = async (
  url: string,
  revision: string,
  flags: ReadonlyArray<string>,
  results: string
): Promise<Report> => {
  const expectedFile = path.join("conformance", `expected-failures.${revision}.yaml`)
  const expected = readExpected(path.join(root, expectedFile))
  const args = ["server", "--url", url, ...flags, "--expected-failures", expectedFile, "-o", results]
  const child = spawn(process.execPath, [path.join(suite, "dist/index.js"), ...args], { cwd: root })
  let output = ""
  const hear = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on("data", hear)
  child.stderr.on("data", hear)
  const [exitCode] = (await once(child, "close")) as [number | null]
  const failing = new Set<string>()
  const scenarios = scenariosOf(output, results, readUnscored(revision)).map(({ checks, name, unscored }): Scenario => {
    const bad = unscored === "extension" ? [] : checks.filter(isBad)
    for (const { id } of bad) failing.add(`${name}:${id}`)
    const reasonOf = ({ id }: Check) => expected.get(`${name}:${id}`) ?? expected.get(name)
    return {
      name,
      passed: count(checks, "SUCCESS"),
      failed: count(checks, "FAILURE"),
      warnings: count(checks, "WARNING"),
      unscored,
      reasons: Array.from(new Set(bad.flatMap((check) => reasonOf(check) ?? []))),
      unexpected: bad
        .filter((check) => reasonOf(check) === undefined)
        .map(({ errorMessage, id }) => `${id}: ${errorMessage ?? ""}`)
    }
  })
  return {
    revision,
    command: `conformance server --url URL ${flags.join(" ")} --expected-failures ${expectedFile}`,
    scenarios,
    stale: Array.from(expected.keys()).filter(
      (entry) => !failing.has(entry) && !Array.from(failing).some((check) => check.startsWith(`${entry}:`))
    ),
    exitCode: exitCode ?? 1,
    output
  }
}

/** The scenarios that a revision does not require, and why they are run nevertheless. The suite says so in a file of its own. */
const readUnscored = (revision: string): ReadonlyMap<string, string> => {
  const file = path.join(suite, "requirements", `${revision}.yaml`)
  return new Map(
    Array.from(
      (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "").matchAll(
        /^ +- scenario: (\S+)\n +leg: server\n +reason: (\S+)$/gm
      ),
      ([, name = "", reason = ""]) => [name, reason] as const
    )
  )
}

/** What the suite ran, in its order, with the results that it has left in a folder per scenario. */
const scenariosOf = (output: string, results: string, unscored: ReadonlyMap<string, string>) => {
  const folders = fs.existsSync(results) ? fs.readdirSync(results) : []
  return Array.from(output.matchAll(/^=== Running scenario: (\S+) ===$/gm), ([, name = ""]) => {
    const folder = folders.find((found) => found.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "") === `server-${name}`)
    const checks: ReadonlyArray<Check> =
      folder === undefined
        ? [{ id: "results", status: "FAILURE", errorMessage: "the scenario has left no results" }]
        : JSON.parse(fs.readFileSync(path.join(results, folder, "checks.json"), "utf8"))
    return { name, checks, unscored: unscored.get(name) }
  })
}

const isBad = ({ status }: Check): boolean => status === "FAILURE" || status === "WARNING"

const count = (checks: ReadonlyArray<Check>, status: Check["status"]): number =>
  checks.filter((check) => check.status === status).length

const isAsExpected = (report: Report): boolean =>
  report.exitCode === 0 &&
  report.scenarios.length > 0 &&
  report.stale.length === 0 &&
  report.scenarios.every(({ unexpected }) => unexpected.length === 0)

// ----- what is said of it

const scoreOf = ({ scenarios }: Report): string => {
  const scored = scenarios.filter(({ unscored }) => unscored === undefined)
  const clean = scored.filter(({ failed }) => failed === 0)
  const sum = (of: (scenario: Scenario) => number) => scored.reduce((total, scenario) => total + of(scenario), 0)
  const checks = `${sum(({ passed }) => passed)} checks passed, ${sum(({ failed }) => failed)} failed`
  return `${clean.length} of ${scored.length} scored scenarios without a failure; ${checks}`
}

const numbersOf = ({ failed, passed, warnings }: Scenario): string =>
  [`${passed} passed`, `${failed} failed`, ...(warnings === 0 ? [] : [`${warnings} warned`])].join(", ")

const print = (report: Report): void => {
  console.log(`\n── ${report.revision}: ${scoreOf(report)} ──`)
  for (const scenario of report.scenarios) {
    const { name, reasons, unexpected, unscored } = scenario
    const mark = unexpected.length > 0 ? "✗" : unscored === "extension" ? "·" : reasons.length > 0 ? "~" : "✓"
    const why = unscored === "extension" ? "an extension, not judged" : reasons.join("; ")
    console.log(`${mark} ${name}: ${numbersOf(scenario)}${why === "" ? "" : ` (${why})`}`)
    for (const fault of unexpected) console.log(`    ${fault}`)
  }
  for (const entry of report.stale) console.log(`✗ ${entry} is expected to fail, and does not`)
  if (report.exitCode !== 0) console.log(`\n${report.output}`)
}

const rowOf = ({ failed, name, passed, reasons, unexpected, unscored, warnings }: Scenario): string => {
  const notes = [
    ...(unscored === undefined ? [] : [`not scored: ${unscored}`]),
    ...(reasons.length === 0 ? [] : [`expected: ${reasons.join("; ")}`]),
    ...unexpected
  ]
  return `| ${name} | ${passed} | ${failed} | ${warnings} | ${notes.join(". ").replaceAll("|", "\\|")} |`
}

const section = (report: Report): string =>
  `## ${report.revision}

${scoreOf(report)}${isAsExpected(report) ? ", all as expected" : ". **Not as expected**"}.

\`${report.command}\`

| scenario | passed | failed | warned | |
| --- | ---: | ---: | ---: | --- |
${report.scenarios.map(rowOf).join("\n")}
`

const document = (version: string, reports: ReadonlyArray<Report>): string =>
  `# Conformance

<!-- Written by \`npm run conformance\`. -->

The official suite, \`@modelcontextprotocol/conformance\` ${version}, against
[packages/examples/src/conformance.ts](../packages/examples/src/conformance.ts): a server over HTTP that is built with this
library alone. \`npm run conformance\` runs it without a network and fails unless exactly the checks fail that
[conformance/](../conformance) lists, each with its reason: a server of tools has no prompts, resources, completion or
logging. Warnings count like failures there. Scenarios of extensions are run and shown, and not judged.

| revision | score | as expected |
| --- | --- | --- |
${reports.map((report) => `| ${report.revision} | ${scoreOf(report)} | ${isAsExpected(report) ? "yes" : "**no**"} |`).join("\n")}

The suite speaks HTTP only. Standard input and output, cancellation, expiry and single use of \`requestState\`, the binding of a
call to its principal, pages and output schemas are held by the tests of this project.

${reports.map(section).join("\n")}`

// ----- all of it

const main = async (): Promise<void> => {
  const { version } = JSON.parse(fs.readFileSync(path.join(suite, "package.json"), "utf8")) as {
    readonly version: string
  }
  const results = fs.mkdtempSync(path.join(os.tmpdir(), "conformance-"))
  const { child, url } = await startServer()
  try {
    const reports: Array<Report> = []
    for (const { flags, revision } of runs) {
      const report = await runSuite(url, revision, flags, path.join(results, revision))
      print(report)
      reports.push(report)
    }
    fs.writeFileSync(path.join(root, "docs/conformance.md"), document(version, reports))
    process.exitCode = reports.every(isAsExpected) ? 0 : 1
  } finally {
    await stopServer(child)
    fs.rmSync(results, { recursive: true, force: true })
  }
}

await main()
