/**
 * The stdio transport as a layer. The end of standard input is the end of the connection.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import type * as Calls from "./Calls.ts"
import * as Connected from "./Connected.ts"
import * as Ending from "./Ending.ts"
import type * as Registry from "./Registry.ts"
import type * as SdkServer from "./SdkServer.ts"
import * as Stdout from "./Stdout.ts"

/** Serves on standard input and output. */
export const layer = (
  info: SdkServer.ServerInfo
): Layer.Layer<never, never, Calls.Calls | Registry.Registry | Stdout.Stdout> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { protocol } = yield* Stdout.Stdout
      const ended = yield* Connected.serve(info, new StdioServerTransport(process.stdin, protocol))
      yield* Effect.forkScoped(Effect.andThen(ended, Ending.reached))
    })
  )
