/**
 * How a program that serves tools ends: when its connection ends, or by a signal, with exit code 0 both times (P95).
 *
 * `Layer.launch` waits for ever, and the default teardown of `runMain` answers an interrupt with exit code 130: `launch`
 * stands for both.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

/** What a transport completes when the only connection it will ever have has ended; nothing outside of {@link launch}. */
export const Ending: Context.Reference<Deferred.Deferred<void> | undefined> = Context.Reference<
  Deferred.Deferred<void> | undefined
>("@agenttool/server/Ending", { defaultValue: () => undefined })

/** Says that the connection has ended. */
export const reached: Effect.Effect<void> = Effect.flatMap(Effect.service(Ending), (ending) =>
  ending === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(ending, undefined))
)

/** What is done before anything is released, while answers still reach clients; nothing outside of {@link launch}. */
export const Farewells: Context.Reference<Array<Effect.Effect<void>> | undefined> = Context.Reference<
  Array<Effect.Effect<void>> | undefined
>("@agenttool/server/Ending/Farewells", { defaultValue: () => undefined })

/** Has this done before anything is released. */
export const before = (farewell: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.map(Effect.service(Farewells), (farewells) => void farewells?.push(farewell))

/**
 * Builds a server layer, waits until its connection has ended or the program is interrupted, and releases it. Give it to
 * `NodeRuntime.runMain`: the exit code is 0 at the end of input and after SIGINT and SIGTERM, and 1 when building failed.
 *
 * Whoever has sent a signal and does not want to wait for the finalizers sends another one: the process then ends at once,
 * with code 130.
 *
 * @example
 * ```ts
 * import { McpServer } from "@agenttool/server"
 * import { NodeRuntime } from "@effect/platform-node"
 *
 * McpServer.layerStdio({ name: "demo", version: "1.0.0", registrations: McpServer.tools() }).pipe(
 *   McpServer.launch,
 *   NodeRuntime.runMain
 * )
 * ```
 */
export const launch = <A, E, R>(layer: Layer.Layer<A, E, R>): Effect.Effect<void, E, R> =>
  Effect.suspend(() => {
    const ending = Deferred.makeUnsafe<void>()
    const farewells: Array<Effect.Effect<void>> = []
    const impatience = makeImpatience()
    return layer.pipe(
      Layer.provide([Layer.succeed(Ending, ending), Layer.succeed(Farewells, farewells)]),
      Layer.build,
      Effect.andThen(Deferred.await(ending)),
      // An HTTP server, say, waits for its open requests before it lets go of what answers them.
      Effect.onExit((exit) =>
        Effect.andThen(impatience.begin(exit), Effect.all(farewells, { concurrency: "unbounded", discard: true }))
      ),
      Effect.scoped,
      Effect.onExit(() => impatience.end),
      Effect.onExit((exit) => (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? endQuietly : Effect.void))
    )
  })

// An interrupted main fiber cannot succeed, and `runMain` exits with 130 for it. The server has ended in good order by
// now, which is what the exit code is to say.
const interruptedCode = 130

/**
 * While the program ends, which may take its finalizers for ever, a second signal ends it at once. Where it was no signal
 * that has ended it, the first one changes nothing: a client closes the input first, and sends a signal next.
 */
const makeImpatience = () => {
  let signals = 0
  const count = () => {
    if (++signals === 2) process.exit(interruptedCode)
  }
  return {
    begin: (exit: Exit.Exit<unknown, unknown>) =>
      Effect.sync(() => {
        signals = Exit.hasInterrupts(exit) ? 1 : 0
        for (const signal of signalNames) process.on(signal, count)
      }),
    end: Effect.sync(() => {
      for (const signal of signalNames) process.off(signal, count)
    })
  }
}

const signalNames = ["SIGINT", "SIGTERM"] as const

const endQuietly = Effect.sync(() => {
  process.once("exit", (code) => {
    if (code === interruptedCode) process.exitCode = 0
  })
})
