/**
 * Streamable HTTP as a route of effect's `HttpRouter`: one endpoint for 2026-07-28, served request by request, and for the
 * 2025 revisions, served with sessions (see `HttpSessions`).
 *
 * It checks `Host` and `Origin` before anything else. It verifies no tokens.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import type { ServerContext } from "@modelcontextprotocol/server"
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse
} from "@modelcontextprotocol/server"
import * as Calls from "./Calls.ts"
import * as HostContext from "./HostContext.ts"
import * as HttpSessions from "./HttpSessions.ts"
import * as Listing from "./Listing.ts"
import type * as Registry from "./Registry.ts"
import * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"

/** Where the endpoint is, and who may call it; see `McpServer.layerHttp`. */
export interface Options {
  readonly path?: `/${string}` | undefined
  readonly allowedHosts?: ReadonlyArray<string> | undefined
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
}

/** Answers a request of the web platform; `context` is what the host has put around it. */
export type Respond = (request: Request, context: Context.Context<never>) => Promise<Response>

/** The endpoint, whatever it is mounted in, until the scope closes. */
export const endpoint = (
  options: SdkServer.ServerInfo & Options
): Effect.Effect<Respond, never, Calls.Calls | Registry.Registry | Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* Calls.Calls
    const settings = yield* Settings.Settings
    const around = yield* HostContext.capture
    const bridge = yield* SdkServer.bridge(options)
    // What middleware has put around a request crosses the SDK under the request itself, which it hands on as it is.
    const contexts = new WeakMap<Request, Context.Context<never>>()
    const contextOf = ({ http }: ServerContext): Context.Context<never> =>
      (http?.req === undefined ? undefined : contexts.get(http.req)) ?? around

    const modern = yield* Effect.acquireRelease(
      Effect.sync(() =>
        createMcpHandler(
          () => bridge.make({ session: undefined, canAsk: false, principal: undefined, context: contextOf }),
          { legacy: "reject", maxRequestBodySize: settings.maxBodyBytes, onerror: bridge.report }
        )
      ),
      (handler) =>
        calls
          .drain("all", "ServerClosed", settings.shutdownGrace)
          .pipe(Effect.andThen(bridge.idle), Effect.andThen(Effect.promise(() => handler.close())))
    )
    const sessions = yield* HttpSessions.make({ bridge, context: contextOf })
    yield* Listing.onChange(() => {
      modern.notify.toolsChanged()
      sessions.toolsChanged()
    })

    const hosts = [...localhostAllowedHostnames(), ...(options.allowedHosts ?? [])]
    const origins = [...localhostAllowedOrigins(), ...(options.allowedOrigins ?? [])]
    return (request, context) => {
      const refused = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, origins)
      if (refused !== undefined) return Promise.resolve(refused)
      contexts.set(request, context)
      return isLegacyRequest(request, undefined, { maxRequestBodySize: settings.maxBodyBytes }).then((legacy) =>
        legacy ? sessions.respond(request) : modern.fetch(request)
      )
    }
  })

/** The route. */
export const layer = (
  options: SdkServer.ServerInfo & Options
): Layer.Layer<never, never, HttpRouter.HttpRouter | Calls.Calls | Registry.Registry> =>
  HttpRouter.use((router) =>
    Effect.flatMap(endpoint(options), (respond) =>
      router.add(
        "*",
        options.path ?? "/mcp",
        Effect.withFiber((fiber) =>
          // What goes wrong here is a fault of the server, which answers 500 and logs it.
          Effect.orDie(HttpEffect.fromWebHandler((request) => respond(request, fiber.context)))
        )
      )
    )
  )
