/**
 * Who imports whom, and what the sources do without: read from the import lines, and from docs/architecture.md.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.join(import.meta.dirname, "../../..")
const document = fs.readFileSync(path.join(root, "docs/architecture.md"), "utf8")

// ----- the sources

interface Import {
  /** A module of the same package, or the name of another one. */
  readonly of: string
  readonly local: boolean
  readonly typesOnly: boolean
}

interface Module {
  readonly name: string
  readonly file: string
  readonly text: string
  readonly imports: ReadonlyArray<Import>
}

/** Comments and texts, which are no code; a code block of a comment has import lines, too. */
const noCode = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
const comments = /\/\*[\s\S]*?\*\//g
const importLine = /^(?:import|export)\s(type\s)?[^;"]*?from\s+"([^"]+)"|\bimport\("([^"]+)"\)/gm

const modulesOf = (name: "core" | "server"): ReadonlyArray<Module> => {
  const source = path.join(root, "packages", name, "src")
  return fs
    .globSync("**/*.ts", { cwd: source })
    .sort()
    .map((file) => {
      const text = fs.readFileSync(path.join(source, file), "utf8")
      const imports = Array.from(
        text.replaceAll(comments, "").matchAll(importLine),
        ([, typesOnly, from = "", later]) => {
          const of = later ?? from
          const local = of.startsWith(".")
          return {
            of: local ? path.posix.join(path.posix.dirname(file), of).replace(/\.ts$/, "") : of,
            local,
            typesOnly: typesOnly !== undefined
          }
        }
      )
      return { name: file.replace(/\.ts$/, ""), file: `${name}/${file}`, text, imports }
    })
    .filter((module) => module.name !== "index")
}

const packages = { core: modulesOf("core"), server: modulesOf("server") }
const all = [...packages.core, ...packages.server]

const isInternal = (name: string): boolean => name.startsWith("internal/")

/** What a public module imports of its package, itself or by modules that are internal to it. */
const publicImports = (modules: ReadonlyArray<Module>): ReadonlyMap<string, ReadonlySet<string>> => {
  const byName = new Map(modules.map((module) => [module.name, module]))
  const follow = (name: string, seen: Set<string>): ReadonlyArray<string> =>
    (byName.get(name)?.imports ?? [])
      .filter(({ local, of }) => local && !seen.has(of))
      .flatMap(({ of }) => {
        seen.add(of)
        return isInternal(of) ? follow(of, seen) : [of]
      })
  return new Map(
    modules
      .filter(({ name }) => !isInternal(name))
      .map(({ name }) => [name, new Set(follow(name, new Set()).filter((of) => of !== name))])
  )
}

/** Everything that leads to a node, by any number of steps. */
const reachable = (graph: ReadonlyMap<string, ReadonlySet<string>>, from: string): ReadonlySet<string> => {
  const seen = new Set<string>()
  const queue = [...(graph.get(from) ?? [])]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (seen.has(next)) continue
    seen.add(next)
    queue.push(...(graph.get(next) ?? []))
  }
  return seen
}

// ----- the document

const sectionOf = (name: "core" | "server"): string => {
  const start = document.indexOf(`### \`@agenttool/${name}\``)
  const end = document.slice(start + 4).search(/\n##+ /)
  return document.slice(start, start + 4 + end)
}

/** By module, what the arrows say that it imports. */
const arrowsOf = (name: "core" | "server"): ReadonlyMap<string, ReadonlySet<string>> => {
  const graph = new Map<string, Set<string>>()
  for (const [, imported = "", importer = ""] of sectionOf(name).matchAll(/^ +(\w+) --> (\w+)$/gm)) {
    graph.set(importer, new Set([...(graph.get(importer) ?? []), imported]))
  }
  return graph
}

const namesIn = (text: string): ReadonlyArray<string> => Array.from(text.matchAll(/`(\w+)`/g), ([, name = ""]) => name)

/** The modules that import nothing of their package. */
const leavesOf = (name: "core" | "server"): ReadonlyArray<string> =>
  namesIn(/^Imported by all: (.*)$/m.exec(sectionOf(name))?.[1] ?? "")

const describedIn = (name: "core" | "server"): ReadonlyArray<string> =>
  Array.from(sectionOf(name).matchAll(/^\| (`[^|]+) \|/gm), ([, cell = ""]) => namesIn(cell)).flat()

const classOf = (name: string): ReadonlyArray<string> =>
  new RegExp(`^ +class ([\\w,]+) ${name}$`, "m").exec(document)?.[1]?.split(",") ?? []

// ----- the laws

for (const name of ["core", "server"] as const) {
  describe(name, () => {
    const imports = publicImports(packages[name])

    it("has no cycles: none of its modules imports itself, by however many others", () => {
      for (const module of imports.keys()) assert.notInclude(Array.from(reachable(imports, module)), module)
      // Types may go back and forth between a module and what is internal to it, values may not.
      const values = new Map(
        packages[name].map((module) => [
          module.name,
          new Set(module.imports.filter(({ local, typesOnly }) => local && !typesOnly).map(({ of }) => of))
        ])
      )
      for (const module of values.keys()) assert.notInclude(Array.from(reachable(values, module)), module)
    })

    it("imports what the pictures of the architecture show, and nothing beside it", () => {
      const arrows = arrowsOf(name)
      const leaves = leavesOf(name)
      assert.isAbove(arrows.size, 5)
      for (const [importer, shown] of arrows) {
        for (const imported of shown) {
          assert.isTrue(imports.get(importer)?.has(imported) ?? false, `no import: ${imported} --> ${importer}`)
        }
      }
      for (const leaf of leaves) assert.deepStrictEqual([...(imports.get(leaf) ?? ["no such module"])], [], leaf)
      for (const [importer, imported] of imports) {
        const shown = reachable(arrows, importer)
        for (const module of imported) {
          if (!leaves.includes(module)) assert.isTrue(shown.has(module), `not shown: ${module} --> ${importer}`)
        }
      }
    })

    it("has each of its modules described once, and no other", () => {
      const described = describedIn(name)
      assert.deepStrictEqual(described.toSorted(), [...imports.keys()].sort())
    })
  })
}

describe("the sources", () => {
  const sdk = "@modelcontextprotocol/"

  it("of core know nothing of MCP", () => {
    for (const { file, imports } of packages.core) {
      for (const { of } of imports) assert.notMatch(of, /^@modelcontextprotocol\/|^@agenttool\/server/, file)
    }
  })

  it("of the server import the SDK where the architecture says so, and only its types where it says so", () => {
    const importing = packages.server.filter(({ imports }) => imports.some(({ of }) => of.startsWith(sdk)))
    const values = importing.filter(({ imports }) =>
      imports.some(({ of, typesOnly }) => of.startsWith(sdk) && !typesOnly)
    )
    const types = importing.filter((module) => !values.includes(module))
    assert.deepStrictEqual(values.map(({ name }) => name).sort(), classOf("sdk").toSorted())
    assert.deepStrictEqual(types.map(({ name }) => name).sort(), classOf("types").toSorted())
  })

  it("reach into what is internal to another package nowhere", () => {
    for (const { file, imports } of all) {
      for (const { of } of imports) assert.notMatch(of, /^@agenttool\/.*\/(internal|src|dist)\b/, file)
    }
  })

  it("P94: have no timer of their own, and write to no console, not even in a comment", () => {
    for (const { file, text } of all) assert.notMatch(text, /\b(setTimeout|setInterval|console)\b/, file)
  })

  it("have no type that is no type", () => {
    for (const { file, text } of all) assert.notMatch(text.replaceAll(noCode, ""), /\bany\b/, file)
  })
})
