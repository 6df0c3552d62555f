/**
 * The programs of this package, started as a reader of the documents starts them: by their npm scripts.
 */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** How a script of the repository is started. */
export const npmRun = (script: string) => ({ command: "npm", args: ["run", "-s", script], cwd: root })

/** A running script, with all processes that it has started. */
export interface Program {
  readonly output: () => string
  /** Waits until this is in its output; what was found. */
  readonly said: (pattern: RegExp) => Effect.Effect<RegExpExecArray>
  readonly exit: Effect.Effect<number | null>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits until none of its processes is there. */
  readonly gone: Effect.Effect<void>
}

/** Starts a script in a process group of its own; whatever is left of the group is killed when the scope closes. */
export const start = (
  script: string,
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const { args, command, cwd } = npmRun(script)
        return spawn(command, args, {
          cwd,
          detached: true,
          env: { ...process.env, ...env },
          stdio: ["ignore", "pipe", "pipe"]
        })
      }),
      ({ pid }) => Effect.sync(() => void signalGroup(pid, "SIGKILL"))
    ),
    (child) => {
      let text = ""
      let code: number | null | undefined
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk) => {
          text += String(chunk)
        })
      }
      child.on("close", (exitCode) => {
        code = exitCode
      })
      return {
        output: () => text,
        said: (pattern) =>
          until(
            () => pattern.exec(text) ?? undefined,
            () => `${String(pattern)} in: ${text}`
          ),
        exit: Effect.map(
          until(
            () => (code === undefined ? undefined : { code }),
            () => `the end of ${script}: ${text}`
          ),
          (ended) => ended.code
        ),
        kill: (signal) => Effect.sync(() => void signalGroup(child.pid, signal)),
        gone: Effect.asVoid(
          until(
            () => (signalGroup(child.pid, 0) ? undefined : {}),
            () => `all processes of ${script} to end`
          )
        )
      }
    }
  )

/** Whether there was anybody to send it to. */
const signalGroup = (pid: number | undefined, signal: NodeJS.Signals | 0): boolean => {
  if (pid === undefined) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Looks until there is something to see, for a minute at most. */
export const until = <A extends object>(look: () => A | undefined, what: () => string): Effect.Effect<A> => {
  const looking: Effect.Effect<A> = Effect.suspend(() => {
    const seen = look()
    return seen === undefined ? Effect.andThen(Effect.sleep("10 millis"), looking) : Effect.succeed(seen)
  })
  return Effect.timeoutOrElse(looking, {
    duration: "1 minute",
    orElse: () => Effect.die(new Error(`waited a minute for ${what()}`))
  })
}
