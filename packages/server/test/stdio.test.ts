import { vi } from "@effect/vitest"
import * as calls from "./support/calls.ts"
import * as pushes from "./support/pushes.ts"
import * as rounds from "./support/rounds.ts"

// A machine with much to do starts programs slowly.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 })

for (const era of ["2026-07-28", "2025-11-25"] as const) calls.suite({ transport: "stdio", era })
rounds.suite("stdio")
pushes.suite("stdio")
