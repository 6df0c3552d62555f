/**
 * The clients that are run, which version of each, and how its driver is made ready: installed in a cache that the next run
 * reuses, or skipped, with the reason, where the toolchain is not here.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import process from "node:process"
import { limits, run, seconds } from "./processes.ts"

export const checks = ["connect", "list", "call", "error", "progress", "cancel", "ask", "ask_twice"] as const
export type Check = (typeof checks)[number]

export const transports = ["stdio", "http"] as const
export type Transport = (typeof transports)[number]

/** How a driver is started, or why it cannot be. */
export type Prepared =
  | { readonly command: ReadonlyArray<string>; readonly env?: Readonly<Record<string, string>> }
  | { readonly skipped: string }

export interface Client {
  readonly name: string
  readonly package: string
  readonly version: string
  readonly eras: ReadonlyArray<string>
  readonly prepare: () => Promise<Prepared>
}

export interface Miss {
  readonly client: string
  readonly transport?: Transport
  readonly era?: string
  readonly check: Check
  readonly reason: string
}

/** The repository. */
export const root = path.join(import.meta.dirname, "../..")
const interop = path.join(root, "interop")
/** Where what is installed is kept. */
export const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "agenttool-interop")

const installedVersion = (name: string): string =>
  JSON.parse(fs.readFileSync(path.join(root, "node_modules", name, "package.json"), "utf8")).version

/** The version that a file pins. */
const pinnedVersion = (file: string, pattern: RegExp): string =>
  pattern.exec(fs.readFileSync(path.join(interop, file), "utf8"))?.[1] ?? "none"

const inspectorVersion = "2.12.0"

const all = ["auto", "2026-07-28", "2025-11-25"]

const node = (file: string): Prepared => ({ command: [process.execPath, path.join(interop, file)] })

// ----- toolchains

const hashOf = (...texts: ReadonlyArray<string>): string =>
  createHash("sha256").update(texts.join("\0")).digest("hex").slice(0, 12)

/** What a tool says of its version; none, if it is not here. */
const versionOf = async (...command: ReadonlyArray<string>): Promise<string | undefined> => {
  const ended = await run(command, 30 * seconds).catch(() => undefined)
  return ended?.code === 0 ? ended.stdout.trim() : undefined
}

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? ""

/** Makes a folder of the cache by these commands, once: a folder without its mark is made anew. */
const cached = async (
  name: string,
  make: (folder: string) => ReadonlyArray<{ readonly command: ReadonlyArray<string>; readonly cwd?: string }>
): Promise<{ readonly folder: string } | { readonly skipped: string }> => {
  const folder = path.join(cache, name)
  const mark = path.join(folder, ".complete")
  if (fs.existsSync(mark)) return { folder }
  fs.rmSync(folder, { recursive: true, force: true })
  fs.mkdirSync(folder, { recursive: true })
  for (const { command, cwd } of make(folder)) {
    const ended = await run(command, limits.install, cwd === undefined ? {} : { cwd })
    if (ended.code !== 0) {
      const why = ended.late ? "it took too long" : lastLine(ended.stderr || ended.stdout)
      return { skipped: `could not be installed: ${why}` }
    }
  }
  fs.writeFileSync(mark, "")
  return { folder }
}

const prepareGo = async (): Promise<Prepared> => {
  const version = await versionOf("go", "version")
  if (version === undefined) return { skipped: "there is no go" }
  const module = path.join(interop, "go")
  const sources = ["go.mod", "go.sum", "main.go"].map((file) => fs.readFileSync(path.join(module, file), "utf8"))
  const made = await cached(`go-${hashOf(version, ...sources)}`, (folder) => [
    { command: ["go", "build", "-o", path.join(folder, "driver"), "."], cwd: module }
  ])
  return "skipped" in made ? made : { command: [path.join(made.folder, "driver")] }
}

const preparePython = async (name: "mcp" | "fastmcp"): Promise<Prepared> => {
  const version = await versionOf("python3", "--version")
  if (version === undefined) return { skipped: "there is no python3" }
  const requirements = path.join(interop, "python", `requirements-${name}.txt`)
  const made = await cached(`python-${name}-${hashOf(version, fs.readFileSync(requirements, "utf8"))}`, (folder) => [
    { command: ["python3", "-m", "venv", folder] },
    { command: [path.join(folder, "bin/python"), "-m", "pip", "install", "--quiet", "-r", requirements] }
  ])
  if ("skipped" in made) return made
  return {
    command: [path.join(made.folder, "bin/python"), path.join(interop, "python", `drive_${name}.py`)],
    env: { PYTHONDONTWRITEBYTECODE: "1" }
  }
}

const prepareInspector = async (): Promise<Prepared> => {
  if ((await versionOf("npm", "--version")) === undefined) return { skipped: "there is no npm" }
  const made = await cached(`inspector-${inspectorVersion}`, (folder) => [
    {
      command: [
        ...["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
        `@modelcontextprotocol/inspector@${inspectorVersion}`
      ],
      cwd: folder
    }
  ])
  if ("skipped" in made) return made
  const launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
  return {
    command: [process.execPath, path.join(interop, "inspector.ts")],
    env: {
      INSPECTOR: path.join(made.folder, launcher),
      // Nothing of the user's is read or written.
      MCP_CATALOG_PATH: path.join(made.folder, "catalog.json"),
      MCP_CLIENT_CONFIG_PATH: path.join(made.folder, "client.json")
    }
  }
}

// ----- clients

export const clients: ReadonlyArray<Client> = [
  {
    name: "TypeScript SDK v2",
    package: "@modelcontextprotocol/client",
    version: installedVersion("@modelcontextprotocol/client"),
    eras: all,
    prepare: async () => node("typescriptV2.ts")
  },
  {
    name: "TypeScript SDK v1",
    package: "@modelcontextprotocol/sdk",
    version: installedVersion("@modelcontextprotocol/sdk"),
    eras: ["2025-11-25"],
    prepare: async () => node("typescriptV1.ts")
  },
  {
    name: "Go SDK",
    package: "github.com/modelcontextprotocol/go-sdk",
    version: pinnedVersion("go/go.mod", /modelcontextprotocol\/go-sdk v(\S+)/),
    eras: [...all, "2025-06-18"],
    prepare: () => prepareGo()
  },
  {
    name: "Python SDK",
    package: "mcp (PyPI)",
    version: pinnedVersion("python/requirements-mcp.txt", /^mcp==(\S+)$/m),
    eras: all,
    prepare: () => preparePython("mcp")
  },
  {
    name: "FastMCP",
    package: "fastmcp (PyPI)",
    version: pinnedVersion("python/requirements-fastmcp.txt", /^fastmcp==(\S+)$/m),
    eras: all,
    prepare: () => preparePython("fastmcp")
  },
  {
    name: "Inspector",
    package: "@modelcontextprotocol/inspector --cli",
    version: inspectorVersion,
    eras: all,
    prepare: () => prepareInspector()
  }
]

/** What clients cannot do. One that does not happen is a failure, too. */
export const expectedMisses: ReadonlyArray<Miss> = [
  { client: "Inspector", check: "progress", reason: "its command line shows no progress" },
  { client: "Inspector", check: "cancel", reason: "its command line makes one request and waits for it" },
  { client: "Inspector", check: "ask", reason: "its command line declares no elicitation" },
  { client: "Inspector", check: "ask_twice", reason: "its command line declares no elicitation" }
]
