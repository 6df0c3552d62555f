/**
 * Streamable HTTP as a route of effect's `HttpRouter`: one endpoint for 2026-07-28, served request by request, and for the
 * 2025 revisions, served with sessions (see `HttpSessions`).
 *
 * In this order a request is refused: `Host` and `Origin`, the token, the body's size, time and depth, the scopes of the
 * tool that it calls, the headers that repeat its arguments. What is left the SDK classifies and serves.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import {
  type AuthInfo,
  createMcpHandler,
  hostHeaderValidationResponse,
  isJsonContentType,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  type ServerContext
} from "@modelcontextprotocol/server"
import type * as Calls from "./Calls.ts"
import * as Ending from "./Ending.ts"
import * as HostContext from "./HostContext.ts"
import * as HttpBody from "./HttpBody.ts"
import * as HttpSessions from "./HttpSessions.ts"
import * as Listing from "./Listing.ts"
import * as ParamHeaders from "./ParamHeaders.ts"
import * as PrincipalSessions from "./PrincipalSessions.ts"
import * as Registry from "./Registry.ts"
import * as SdkServer from "./SdkServer.ts"
import * as Settings from "./Settings.ts"
import * as TokenVerifier from "./TokenVerifier.ts"

/**
 * Where the endpoint is, and who may call it; see `McpServer.layerHttp`.
 *
 * - `path`: default `/mcp`. - `allowedHosts`, `allowedOrigins`: host names beside those of this machine.
 * - `cors`: lets pages of these origins read answers; they are allowed as `Origin` as well.
 * - `protection`: what tokens have to be for, where a `TokenVerifier` is installed.
 * - `legacy`: whether 2025 clients are served with sessions (the default), or not at all.
 */
export interface Options {
  readonly path?: `/${string}` | undefined
  readonly allowedHosts?: ReadonlyArray<string> | undefined
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
  readonly cors?: { readonly origins: ReadonlyArray<string>; readonly credentials?: boolean } | undefined
  readonly protection?: TokenVerifier.Protection | undefined
  readonly legacy?: "sessions" | "stateless" | "reject" | undefined
}

/** Answers a request of the web platform; `context` is what the host has put around it. */
export type Respond = (request: Request, context: Context.Context<never>) => Promise<Response>

const pathOf = (options: Options): `/${string}` => options.path ?? "/mcp"

/** The endpoint, whatever it is mounted in, until the scope closes. */
export const endpoint = (
  options: SdkServer.ServerInfo & Options
): Effect.Effect<Respond, never, Calls.Calls | Registry.Registry | Scope.Scope> =>
  Effect.gen(function* () {
    const registry = yield* Registry.Registry
    const settings = yield* Settings.Settings
    const around = yield* HostContext.capture
    const bridge = yield* SdkServer.bridge(options)
    const protection = options.protection ?? {}
    const gate = yield* TokenVerifier.gate(pathOf(options), protection)
    const sessionOf = settings.sessionPerPrincipal ? yield* PrincipalSessions.make : undefined
    // What middleware has put around a request crosses the SDK under the request itself, which it hands on as it is.
    const contexts = new WeakMap<Request, Context.Context<never>>()
    const contextOf = ({ http }: ServerContext): Context.Context<never> =>
      (http?.req === undefined ? undefined : contexts.get(http.req)) ?? around
    const principalOf = ({ http }: ServerContext) => TokenVerifier.principalOf(http?.authInfo)

    const perRequest: SdkServer.Connection = {
      session: () => undefined,
      sessionOf,
      principal: principalOf,
      context: contextOf
    }
    const modern = createMcpHandler(() => bridge.make(perRequest), {
      legacy: options.legacy === "stateless" ? "stateless" : "reject",
      maxRequestBodySize: settings.maxBodyBytes,
      onerror: bridge.report
    })
    const sessions = yield* HttpSessions.make({ bridge, context: contextOf, principal: principalOf })
    let closed = false
    const shutDown = yield* bridge.shutDown("all").pipe(
      Effect.andThen(
        Effect.promise(() => {
          closed = true
          return modern.close()
        })
      ),
      Effect.andThen(sessions.close),
      Effect.andThen(streamsEnd),
      Effect.cached
    )
    yield* Effect.addFinalizer(() => shutDown)
    yield* Ending.before(shutDown)
    const withSessions = options.legacy === undefined || options.legacy === "sessions"
    yield* Listing.onChange(() => {
      modern.notify.toolsChanged()
      sessions.toolsChanged()
    })

    const hosts = [...localhostAllowedHostnames(), ...(options.allowedHosts ?? [])]
    const origins = [
      ...localhostAllowedOrigins(),
      ...(options.allowedOrigins ?? []),
      ...(options.cors?.origins ?? []).map((origin) => (URL.canParse(origin) ? new URL(origin).hostname : origin))
    ]

    const serve = (request: Request, body: unknown, auth: AuthInfo | undefined): Promise<Response> => {
      const called = calledTool(body)
      const served = called === undefined ? undefined : registry.get(called)
      const challenge =
        served === undefined ? undefined : TokenVerifier.scopeChallenge(served.tool, auth, pathOf(options), protection)
      if (challenge !== undefined) return Promise.resolve(challenge)
      const given = {
        ...(auth === undefined ? {} : { authInfo: auth }),
        ...(body === undefined ? {} : { parsedBody: body })
      }
      return isLegacyRequest(request, body).then((legacy) => {
        if (legacy) return withSessions ? sessions.respond(request, body, auth) : modern.fetch(request, given)
        const mismatch = served === undefined ? undefined : ParamHeaders.refusal(served.headers, body, request.headers)
        return mismatch ?? modern.fetch(request, given)
      })
    }

    const answer = Effect.fnUntraced(function* (request: Request) {
      const refused = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, origins)
      if (refused !== undefined) return refused
      if (closed) return HttpSessions.errorResponse(503, -32000, "The server is shutting down")
      const auth = yield* Effect.promise(() => gate(request))
      if (auth instanceof Response) return auth
      const hasBody = request.method === "POST" && isJsonContentType(request.headers.get("content-type"))
      if (!hasBody) return yield* Effect.promise(() => serve(request, undefined, auth))
      const body = yield* HttpBody.read(request, settings)
      return Result.isSuccess(body)
        ? yield* Effect.promise(() => serve(request, body.success, auth))
        : HttpSessions.errorResponse(body.failure.status, body.failure.code, body.failure.message)
    })

    return (request, context) => {
      contexts.set(request, context)
      return Effect.runPromiseWith(context)(answer(request))
    }
  })

// Streams that were closed just now end within the next turns of the loop. Then their connections are idle, and the HTTP
// server need not wait for them.
const streamsEnd = Effect.callback<void>((resume) => void setImmediate(() => setImmediate(() => resume(Effect.void))))

/** The tool that a body calls, if it calls one. */
const calledTool = (body: unknown): string | undefined =>
  Predicate.hasProperty(body, "method") &&
  body.method === "tools/call" &&
  Predicate.hasProperty(body, "params") &&
  Predicate.hasProperty(body.params, "name") &&
  typeof body.params.name === "string"
    ? body.params.name
    : undefined

/** The route, and that of the metadata of a protected endpoint. */
export const layer = (
  options: SdkServer.ServerInfo & Options
): Layer.Layer<never, never, HttpRouter.HttpRouter | Calls.Calls | Registry.Registry> =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const respond = yield* endpoint(options)
      const route = Effect.withFiber((fiber) =>
        // What goes wrong here is a fault of the server, which answers 500 and logs it.
        Effect.orDie(HttpEffect.fromWebHandler((request) => respond(request, fiber.context)))
      )
      const { cors } = options
      yield* router.add(
        "*",
        pathOf(options),
        cors === undefined
          ? route
          : HttpMiddleware.cors({
              allowedOrigins: cors.origins,
              allowedMethods: ["GET", "POST", "DELETE"],
              allowedHeaders: corsHeaders,
              exposedHeaders: ["Mcp-Session-Id", "WWW-Authenticate"],
              credentials: cors.credentials ?? false
            })(route)
      )
      const metadata = TokenVerifier.metadata(options.protection ?? {})
      if (metadata !== undefined) {
        yield* router.add(
          "GET",
          TokenVerifier.metadataPath(pathOf(options)),
          Effect.succeed(HttpServerResponse.jsonUnsafe(metadata, { headers: { "Access-Control-Allow-Origin": "*" } }))
        )
      }
    })
  )

const corsHeaders = [
  "Authorization",
  "Content-Type",
  "Accept",
  "Last-Event-ID",
  "Mcp-Session-Id",
  "MCP-Protocol-Version",
  "Mcp-Method",
  "Mcp-Name"
]
