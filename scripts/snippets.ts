/**
 * Type-checks the code that the documents show: `node scripts/snippets.ts [--run]`, after `npm run build`.
 *
 * Every `ts` block of README.md, of the packages' own, of docs, and of the doc comments in the packages' sources becomes a
 * module of its own in .snippets, which sees the packages as a user does: by their names, as they are built. One run of
 * tsc checks them all; what it finds is told at the file and line of the document.
 *
 * After the language, a block may say `nocheck`, with the reason in the text around it. Blocks of docs/contract, which are
 * outlines, are looked at only if they say `check`. With `--run`, each block that says `run` is run in the root and must
 * exit 0: an `sh` block as it is, a `ts` block by node, and it must print what a `text` block right after it shows.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import process from "node:process"

type Block = {
  /** The document, from the root. */
  readonly file: string
  /** The line of the opening fence, from 1. */
  readonly line: number
  /** What stands before the code on each line: white space, or the star of a comment. */
  readonly margin: number
  readonly language: string
  readonly words: ReadonlyArray<string>
  readonly code: ReadonlyArray<string>
}

const root = path.join(import.meta.dirname, "..")
const scratch = path.join(root, ".snippets")
const faults: Array<string> = []

// ----- blocks

/** In a doc comment a fence stands after its star, in a document after white space or nothing. */
const fences = { ".md": /^(\s*)(`{3,})(.*)$/, ".ts": /^(\s*\* ?)(`{3,})(.*)$/ } as const

const blocksOf = (file: string): Array<Block> => {
  const fence = fences[file.endsWith(".md") ? ".md" : ".ts"]
  const blocks: Array<Block> = []
  let open: { readonly ticks: string; readonly block: Block & { readonly code: Array<string> } } | undefined
  for (const [index, text] of fs.readFileSync(path.join(root, file), "utf8").split("\n").entries()) {
    const [, margin = "", ticks = "", info = ""] = fence.exec(text) ?? []
    if (open !== undefined && ticks.startsWith(open.ticks) && info.trim() === "") {
      blocks.push(open.block)
      open = undefined
    } else if (open !== undefined) {
      open.block.code.push(text.slice(open.block.margin))
    } else if (ticks !== "") {
      const [language = "", ...words] = info.trim().split(/\s+/)
      open = { ticks, block: { file, line: index + 1, margin: margin.length, language, words, code: [] } }
    }
  }
  if (open !== undefined) faults.push(`${file}:${open.block.line}: this block is never closed`)
  return blocks
}

const documents = ["README.md", "packages/*/README.md", "docs/**/*.md", "packages/*/src/**/*.ts"]
const blocks = fs
  .globSync(documents, { cwd: root })
  .sort()
  .flatMap((file) => blocksOf(file))

const isChecked = ({ file, language, words }: Block): boolean =>
  /^(ts|typescript)$/.test(language) &&
  !words.includes("nocheck") &&
  (!file.startsWith(path.join("docs", "contract")) || words.includes("check"))

// ----- the modules

const modules = new Map(
  blocks
    .filter(isChecked)
    .map((block) => [`${block.file.replace(/\.(md|ts)$/, "").replaceAll(/[^\w-]/g, "_")}_${block.line}.ts`, block])
)

const options = {
  extends: "../tsconfig.base.json",
  // A snippet is there to be read: it may name what it does not go on to use.
  compilerOptions: { composite: false, declaration: false, declarationMap: false, noEmit: true, noUnusedLocals: false },
  include: ["*.ts"]
}

/** What a document imports by a relative path is relative to the document. */
const textOf = ({ code, file }: Block): string =>
  `${code.join("\n")}\n`.replaceAll(
    /(?<=\bfrom ")\.{1,2}\/[^"]+/g,
    (name) => `../${path.posix.join(path.posix.dirname(file.replaceAll("\\", "/")), name)}`
  )

const write = (): void => {
  fs.rmSync(scratch, { recursive: true, force: true })
  fs.mkdirSync(scratch)
  fs.writeFileSync(path.join(scratch, "tsconfig.json"), `${JSON.stringify(options, null, 2)}\n`)
  for (const [name, block] of modules) fs.writeFileSync(path.join(scratch, name), textOf(block))
}

// ----- the check

/** A line of tsc, at its place in the document. */
const located = (line: string): string => {
  const [, name = "", row, column, rest] = /^(?:.*[\\/])?([^\\/(]+)\((\d+),(\d+)\): (.*)$/.exec(line) ?? []
  const block = modules.get(name)
  return block === undefined
    ? line
    : `${block.file}:${block.line + Number(row)}:${block.margin + Number(column)}: ${rest}`
}

const check = (): void => {
  const tsc = path.join(root, "node_modules/typescript/bin/tsc")
  const ran = spawnSync(process.execPath, [tsc, "-p", scratch, "--pretty", "false"], { cwd: root, encoding: "utf8" })
  const lines = `${ran.stdout}${ran.stderr}`.split("\n").filter((line) => line.trim() !== "")
  faults.push(...lines.map(located))
  if (ran.status !== 0 && lines.length === 0) faults.push(`tsc ended with ${ran.status ?? ran.error?.message}`)
}

// ----- commands

const named = new Map([...modules].map(([name, block]) => [block, path.join(scratch, name)]))

const commands = process.argv.includes("--run")
  ? blocks.filter((block) => block.words.includes("run") && (block.language === "sh" || named.has(block)))
  : []

const run = (block: Block): void => {
  const name = named.get(block)
  const [command, ...words] = name === undefined ? ["sh", "-e", "-c", block.code.join("\n")] : [process.execPath, name]
  const ran = spawnSync(command ?? "", words, { cwd: root, encoding: "utf8" })
  const after = blocks[blocks.indexOf(block) + 1]
  const shown = name !== undefined && after?.file === block.file && after.language === "text" ? after : undefined
  if (ran.status !== 0) faults.push(`${block.file}:${block.line}: exit ${ran.status}\n${ran.stdout}${ran.stderr}`)
  else if (shown !== undefined && ran.stdout.trimEnd() !== shown.code.join("\n").trimEnd()) {
    faults.push(`${shown.file}:${shown.line}: what is printed is\n${ran.stdout}`)
  }
}

write()
check()
commands.forEach(run)
for (const fault of faults) console.log(fault)
console.log(`snippets: ${modules.size} checked${commands.length > 0 ? `, ${commands.length} run` : ""}`)
process.exitCode = faults.length > 0 ? 1 : 0
