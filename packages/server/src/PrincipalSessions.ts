/**
 * Sessions of per-request HTTP, by principal: a setting (`sessionPerPrincipal`) by which session-scoped layers work there
 * as well. One session for all requests of an authenticated principal, ended when it has been idle for `sessionIdleTimeout`.
 *
 * Only an authenticated principal makes a session: what a client says of itself does not.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import * as McpSession from "./McpSession.ts"
import * as Settings from "./Settings.ts"

/** A session, and what gives it back when the request and the call that it started have ended. */
export interface Held {
  readonly session: McpSession.Session
  readonly ended: Effect.Effect<void>
}

/** Gives the session of a principal. `client` is what this request says of its client. */
export type SessionOf = (principal: string, client: McpSession.Client) => Effect.Effect<Held>

/** Sessions until the scope closes. */
export const make: Effect.Effect<SessionOf, never, Scope.Scope> = Effect.gen(function* () {
  const settings = yield* Settings.Settings
  const sessions = yield* RcMap.make({
    lookup: (principal: string) =>
      Effect.map(Effect.acquireRelease(Scope.make(), Scope.close), (scope) => {
        let client: McpSession.Client = { protocolVersion: "", capabilities: {}, info: undefined }
        const session = McpSession.make({
          id: "",
          key: `principal ${principal}`,
          lifetime: "principal",
          principal,
          client: () => client,
          scope
        })
        return {
          session,
          seen: (latest: McpSession.Client) => {
            client = latest
          }
        }
      }),
    idleTimeToLive: settings.sessionIdleTimeout
  })
  return (principal, client) =>
    Effect.flatMap(Scope.make(), (held) =>
      Effect.map(Effect.provideService(RcMap.get(sessions, principal), Scope.Scope, held), ({ seen, session }) => {
        seen(client)
        return { session, ended: Scope.close(held, Exit.void) }
      })
    )
})
