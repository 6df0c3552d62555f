/**
 * What is said of the runs: on the terminal, and in docs/interop.md.
 */
import { checks, type Client, clients, expectedMisses, type Miss } from "./clients.ts"
import type { Outcome, Run } from "./drive.ts"

const missOf = ({ client, era, transport }: Run, { check }: Outcome): Miss | undefined =>
  expectedMisses.find(
    (miss) =>
      miss.client === client.name &&
      miss.check === check &&
      (miss.era ?? era) === era &&
      (miss.transport ?? transport) === transport
  )

const cellOf = (run: Run, outcome: Outcome): string => {
  const miss = missOf(run, outcome)
  if (outcome.ok === true) return miss === undefined ? "ok" : "**unexpected**"
  return miss === undefined ? "**failed**" : "–"
}

/** Everything about a run that is not as expected. */
export const faultsOf = (run: Run): ReadonlyArray<string> => [
  ...run.faults,
  ...run.outcomes.flatMap((outcome) => {
    const miss = missOf(run, outcome)
    if (outcome.ok === true) return miss === undefined ? [] : [`${outcome.check}: expected to fail (${miss.reason})`]
    return miss === undefined ? [`${outcome.check}: ${outcome.detail}`] : []
  })
]

export const nameOf = ({ client, era, transport }: Pick<Run, "client" | "era" | "transport">): string =>
  `${client.name} ${client.version}, ${transport}, ${era}`

/** One run, in lines for the terminal. */
export const linesOf = (run: Run): ReadonlyArray<string> => {
  const faults = faultsOf(run)
  const passed = run.outcomes.filter(({ ok }) => ok === true).length
  const missed = run.outcomes.filter((outcome) => outcome.ok !== true && missOf(run, outcome) !== undefined).length
  const heard = faults.length === 0 ? [] : run.stderr.trimEnd().split("\n").slice(-shownLines)
  return [
    `${faults.length === 0 ? "✓" : "✗"} ${nameOf(run)}: ${passed} ok${missed === 0 ? "" : `, ${missed} expected misses`}`,
    ...faults.map((fault) => `    ${fault}`),
    ...heard.map((line) => `    | ${line}`)
  ]
}

const shownLines = 40

const rowOf = (run: Run): ReadonlyArray<string> => [
  run.client.name,
  run.transport,
  run.era,
  ...run.outcomes.map((outcome) => cellOf(run, outcome))
]

/** All of it at a glance. */
export const tableOf = (runs: ReadonlyArray<Run>): ReadonlyArray<string> => {
  const rows = [["client", "transport", "era", ...checks], ...runs.map(rowOf)]
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widthOf(column)))
      .join("  ")
      .trimEnd()
  )
}

export type Skipped = ReadonlyMap<Client, string>

// What an installer has said is about the machine that it ran on.
const whySkipped = (reason: string | undefined): string =>
  reason === undefined ? "" : `skipped: ${reason.split(":")[0]}`

const headings = ["client", "transport", "era", ...checks.map((check) => `\`${check}\``)]

export const document = (runs: ReadonlyArray<Run>, skipped: Skipped): string =>
  `# Other clients

<!-- Written by \`npm run test:interop\`. -->

[packages/examples/src/interop.ts](../packages/examples/src/interop.ts), a server that is built with this library alone, under
clients that this project has not written. \`npm run test:interop\` runs them all, over stdio and HTTP; the drivers are in
[interop/](../interop), each in the language of its client. It fails if anything that ran did, but for what is listed below.

| client | package | version | |
| --- | --- | --- | --- |
${clients.map((client) => `| ${client.name} | \`${client.package}\` | ${client.version} | ${whySkipped(skipped.get(client))} |`).join("\n")}

In the era \`auto\` the client is left to find the revision, and has to end up with 2026-07-28. All others are pinned.

| ${headings.join(" | ")} |
|${headings.map(() => " --- |").join("")}
${runs.map((run) => `| ${rowOf(run).join(" | ")} |`).join("\n")}

- \`connect\`: both ends agree on the revision. \`list\`: the names of all tools, in their order.
- \`call\`: a text with several scripts, and with the two separators that are no line ends in JSON, comes back as it was.
- \`error\`: the failure of a tool is a result that is an error, with its words.
- \`progress\`: ten updates, in order, with their numbers and words, and then the result.
- \`cancel\`: a running call is cancelled; the server says that what it held is released, for that reason, and the connection goes on.
- \`ask\`: one question, answered. \`ask_twice\`: another after it, in a second round.

What is not checked (–), and why:

${expectedMisses.map(({ check, client, era, reason, transport }) => `- ${[client, transport, era].filter((word) => word !== undefined).join(", ")}: \`${check}\`: ${reason}`).join("\n")}
`
