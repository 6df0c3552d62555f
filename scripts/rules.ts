/**
 * Which rules of docs/contract are held by a test: `node scripts/rules.ts [--report] [--write] [--only C|M]`.
 *
 * A test cites a rule in its own title, literally: `it.effect("C12: ...")`, `test("M1, M3-M5: ...")`. The titles of
 * `describe` do not count, nor do tests that are skipped, still to be written, or expected to fail.
 * Fails when a rule has no test, when a title cites a rule that does not exist, and when the numbers have a gap.
 *
 * `--report` always succeeds, `--write` writes docs/contract/coverage.md, `--only` looks at one family.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import process from "node:process"

type Standing = "test" | "note" | "planned"
type Title = { readonly file: string; readonly text: string }

const root = path.join(import.meta.dirname, "..")
const contract = path.join(root, "docs/contract")
const flags = process.argv.slice(2)
const only = flags.includes("--only") ? (flags[flags.indexOf("--only") + 1] ?? "") : ""

// ----- rules: `**C12.** text` or `- **M12** text` at the start of a line, `(note: ...)` right after the id

const faults: Array<string> = []
const rules = new Map<string, Standing>()

const readRules = (family: string, file: string): void => {
  let planned = false
  let last = 0
  for (const line of fs.readFileSync(path.join(contract, file), "utf8").split("\n")) {
    if (line.includes("<!-- rules: planned -->")) planned = true
    if (line.includes("<!-- rules: end -->")) planned = false
    const found = /^(?:- )?\*\*([A-Z])(\d+)\.?\*\*( \(note: )?/.exec(line)
    if (found === null || found[1] !== family) continue
    const number = Number(found[2])
    if (number !== last + 1) faults.push(`${file}: ${family}${number} follows ${family}${last}`)
    last = number
    rules.set(`${family}${number}`, planned ? "planned" : found[3] === undefined ? "test" : "note")
  }
}

// ----- titles: the first argument of it(...), test(...), it.effect(...), it.effect.each<...>(...)(...), if it is a string

/** The string literal at this place, without what a template fills in. */
const stringAt = (source: string, at: number): { readonly text: string; readonly end: number } | undefined => {
  const quote = source[at]
  if (quote !== '"' && quote !== "'" && quote !== "`") return undefined
  let text = ""
  for (let i = at + 1; i < source.length; i++) {
    if (source[i] === quote) return { text, end: i + 1 }
    if (source[i] === "\\") text += source[++i] ?? ""
    else if (quote === "`" && source.startsWith("${", i)) {
      text += "…"
      i = closing(source, i + 1)
    } else text += source[i]
  }
  return undefined
}

/** The place of the bracket that closes the one at this place. */
const closing = (source: string, at: number): number => {
  let depth = 0
  for (let i = at; i < source.length; i++) {
    const text = stringAt(source, i)
    if (text !== undefined) i = text.end - 1
    else if ("([{".includes(source[i] ?? " ")) depth++
    else if (")]}".includes(source[i] ?? " ") && --depth === 0) return i
  }
  return source.length
}

const afterSpace = (source: string, at: number): number => at + (/^\s*/.exec(source.slice(at))?.[0].length ?? 0)

const titlesOf = (file: string, source: string): Array<Title> => {
  const titles: Array<Title> = []
  for (const call of source.matchAll(/(?<![\w.$])(?:it|test)((?:\.\w+)*)(?:<[^();]*>)?\s*\(/g)) {
    const modifiers = call[1]?.split(".") ?? []
    if (modifiers.some((name) => ["skip", "todo", "fails", "layer"].includes(name))) continue
    const line = source.slice(source.lastIndexOf("\n", call.index) + 1, call.index)
    if (/^\s*(\/\/|\/?\*)/.test(line)) continue
    const open = call.index + call[0].length - 1
    let title = stringAt(source, afterSpace(source, open + 1))
    if (title === undefined && ["each", "for", "skipIf", "runIf"].some((name) => modifiers.includes(name))) {
      const second = afterSpace(source, closing(source, open) + 1)
      if (source[second] === "(") title = stringAt(source, afterSpace(source, second + 1))
    }
    if (title !== undefined) titles.push({ file: path.relative(root, file), text: title.text })
  }
  return titles
}

/** The test files, and the suites that they import from beside them. */
const testFiles = (): Map<string, string> => {
  const queue = fs.globSync("packages/*/test/**/*.test.ts", { cwd: root }).map((name) => path.join(root, name))
  const files = new Map<string, string>()
  for (const file of queue.sort()) {
    if (files.has(file) || !fs.existsSync(file)) continue
    const source = fs.readFileSync(file, "utf8")
    files.set(file, source)
    for (const found of source.matchAll(/\bfrom\s+"(\.{1,2}\/[^"]+\.ts)"/g)) {
      const imported = path.join(path.dirname(file), found[1] ?? "")
      if (imported.includes(`${path.sep}test${path.sep}`)) queue.push(imported)
    }
  }
  return files
}

/** The ids that a title cites; `C178-C181` is four of them. */
const idsOf = (title: string): Array<string> =>
  [...title.matchAll(/\b([CM])(\d+)(?:\s?[-–]\s?\1(\d+))?\b/g)].flatMap(([, family, from, to]) =>
    Array.from({ length: Math.max(1, Number(to ?? from) - Number(from) + 1) }, (_, i) => `${family}${Number(from) + i}`)
  )

// ----- the report

readRules("C", "core.md")
readRules("M", "mcp.md")
const held = new Map<string, Array<Title>>()
for (const [file, source] of testFiles()) {
  for (const title of titlesOf(file, source)) {
    for (const id of new Set(idsOf(title.text))) {
      if (!rules.has(id) && id.startsWith(only)) faults.push(`${title.file}: no rule ${id}: ${title.text}`)
      held.set(id, [...(held.get(id) ?? []), title])
    }
  }
}

const looked = [...rules].filter(([id]) => id.startsWith(only))
const tested = looked.filter(([, standing]) => standing === "test").map(([id]) => id)
const missing = tested.filter((id) => !held.has(id))
const count = (standing: Standing): number => looked.filter(([, other]) => other === standing).length

if (flags.includes("--write")) {
  const cell = (titles: ReadonlyArray<Title>): string =>
    titles.map(({ file, text }) => `\`${file}\`: ${text.replaceAll("|", "\\|")}`).join("<br>")
  const rows = [...rules].map(
    ([id, standing]) => `| ${id} | ${cell(held.get(id) ?? []) || (standing === "test" ? "**none**" : standing)} |`
  )
  const head =
    "# Rules and the tests that hold them\n\nWritten by `node scripts/rules.ts --write`.\n\n| Rule | Tests |\n| --- | --- |\n"
  fs.writeFileSync(path.join(contract, "coverage.md"), `${head}${rows.join("\n")}\n`)
}
for (const fault of faults) console.log(fault)
if (missing.length > 0) console.log(`without a test:\n${missing.join(" ").replace(/(.{1,110})( |$)/g, "  $1\n")}`)
console.log(
  `rules: ${tested.length - missing.length} of ${tested.length} held by a test, ${count("note")} notes, ${count("planned")} planned`
)
process.exitCode = !flags.includes("--report") && missing.length + faults.length > 0 ? 1 : 0
