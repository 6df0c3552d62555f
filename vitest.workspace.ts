import { defineConfig } from "vitest/config"

// Tests read sources, not dist: no build is needed to run them.
const source = (pattern: string) => new URL(`./packages/${pattern}`, import.meta.url).pathname

export default defineConfig({
  test: {
    projects: ["core", "server", "examples"].map((name) => ({
      extends: true as const,
      resolve: {
        alias: [
          { find: /^@agenttool\/(core|server)$/, replacement: source("$1/src/index.ts") },
          { find: /^@agenttool\/(core|server)\/(.+)$/, replacement: source("$1/src/$2.ts") }
        ]
      },
      test: { name, root: `packages/${name}`, include: ["test/**/*.test.ts"] }
    }))
  }
})
