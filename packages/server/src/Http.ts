/**
 * Streamable HTTP as a route of effect's `HttpRouter`: one endpoint for 2026-07-28, served request by request, and for the
 * 2025 revisions, served with sessions (see `HttpSessions`).
 *
 * In this order a request is refused: `Host` and `Origin`, the token, the body's type, size, time and depth, the scopes of
 * the tools that it calls, the headers that repeat its arguments; the last two only where the client sees the tool. What
 * is left the SDK classifies and serves.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Headers from "effect/http/Headers"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
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
  type ServerContext,
  validateHostHeader,
  validateOriginHeader
} from "@modelcontextprotocol/server"
import type * as Calls from "./Calls.ts"
import * as Ending from "./Ending.ts"
import * as FastLane from "./FastLane.ts"
import * as HostContext from "./HostContext.ts"
import * as HttpBody from "./HttpBody.ts"
import * as HttpSessions from "./HttpSessions.ts"
import * as Listing from "./Listing.ts"
import * as Outgoing from "./Outgoing.ts"
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

/** What is known of the body of a POST: what it says, or why it is refused. */
type Body = Result.Result<unknown, HttpBody.Refusal>

/** The endpoint, whatever it is mounted in. */
export interface Endpoint {
  /**
   * Answers a request of the web platform; `context` is what the host has put around it, `body` its body where it has been
   * read already.
   */
  readonly respond: (request: Request, context: Context.Context<never>, body?: Body) => Promise<Response>
  /** Whether a request may go on to have its body read, by its headers alone. */
  readonly isAllowed: (headers: Headers.Headers) => boolean
  /** Answers a plain call without the SDK; none, if the request is one for {@link Endpoint.respond}. */
  readonly plain: (
    headers: Headers.Headers,
    body: unknown
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse> | undefined
}

const pathOf = (options: Options): `/${string}` => options.path ?? "/mcp"

/** An endpoint until the scope closes. */
export const endpoint = (
  options: SdkServer.ServerInfo & Options
): Effect.Effect<Endpoint, never, Calls.Calls | Registry.Registry | Scope.Scope> =>
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

    /** Why a call is not started; of a tool that the client does not see, nothing may be told. */
    const refusal = Effect.fnUntraced(function* (
      request: Request,
      body: unknown,
      auth: AuthInfo | undefined,
      legacy: boolean
    ) {
      for (const { message, name } of calledTools(body)) {
        const served = registry.get(name)
        if (served === undefined) continue
        const refused =
          TokenVerifier.scopeChallenge(served.tool, auth, pathOf(options), protection) ??
          (legacy ? undefined : ParamHeaders.refusal(served.headers, message, request.headers))
        if (refused === undefined) continue
        const principal = TokenVerifier.principalOf(auth)
        const session = legacy && withSessions ? sessions.sessionOf(request, principal) : undefined
        const client = () => SdkServer.clientOf(message)
        if (yield* bridge.sees(served, { session, sessionOf, principal, client })) return refused
      }
      return undefined
    })

    const serve = Effect.fnUntraced(function* (request: Request, body: unknown, auth: AuthInfo | undefined) {
      const legacy = yield* Effect.promise(() => isLegacyRequest(request, body))
      const refused = yield* refusal(request, body, auth, legacy)
      if (refused !== undefined) return refused
      if (legacy && withSessions) return yield* Effect.promise(() => sessions.respond(request, body, auth))
      const given = {
        ...(auth === undefined ? {} : { authInfo: auth }),
        ...(body === undefined ? {} : { parsedBody: body })
      }
      return yield* Effect.promise(() => modern.fetch(request, given))
    })

    const answer = Effect.fnUntraced(function* (request: Request, given: Body | undefined) {
      const refused = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, origins)
      if (refused !== undefined) return refused
      if (closed) return HttpSessions.errorResponse(503, -32000, "The server is shutting down")
      const auth = yield* Effect.promise(() => gate(request))
      if (auth instanceof Response) return auth
      if (request.method !== "POST") return yield* serve(request, undefined, auth)
      // Not for the SDK to say: it may want to read the body first, for as long as that takes.
      if (!isJsonContentType(request.headers.get("content-type"))) return notJson()
      const body = given ?? (yield* HttpBody.read(request, settings))
      if (Result.isSuccess(body)) return yield* serve(request, body.success, auth)
      const { code, message, status, unread } = body.failure
      return HttpSessions.errorResponse(status, code, message, unread ? connectionEnds : {})
    })

    const verifier = yield* TokenVerifier.TokenVerifier
    const serverInfo = { name: options.name, version: options.version }

    return {
      respond: (request, context, body) => {
        const outgoing = Outgoing.make()
        contexts.set(request, Context.add(context, Outgoing.Outgoing, outgoing))
        return Effect.runPromiseWith(context)(answer(request, body)).then(outgoing.watch)
      },
      // A token takes time to verify, and is verified before the body is read.
      isAllowed: (headers) =>
        verifier === undefined &&
        !closed &&
        validateHostHeader(headers.host, hosts).ok &&
        validateOriginHeader(headers.origin, origins).ok,
      plain: (headers, body) => {
        const call = FastLane.read(headers, body)
        const served = call === undefined ? undefined : registry.get(call.name)
        if (call === undefined || served === undefined || served.headers.length > 0) return undefined
        const answered = bridge.plain(call, served)
        return answered === undefined
          ? undefined
          : Effect.match(answered, {
              onSuccess: (result) => json(FastLane.response(call.id, result, serverInfo)),
              onFailure: ({ code, message }) => json(FastLane.errorResponse(call.id, code, message))
            })
      }
    }
  })

const json = (text: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(text, { contentType: "application/json" })

// Streams that were closed just now end within the next turns of the loop. Then their connections are idle, and the HTTP
// server need not wait for them.
const streamsEnd = Effect.callback<void>((resume) => void setImmediate(() => setImmediate(() => resume(Effect.void))))

const notJson = () =>
  HttpSessions.errorResponse(
    415,
    -32000,
    "Unsupported Media Type: Content-Type must be application/json",
    connectionEnds
  )

// Nobody reads the rest of its body.
const connectionEnds = { Connection: "close" }

interface Called {
  readonly name: string
  readonly message: unknown
}

/** The tools that a body calls: one, or in a batch (2025-03-26) any number. */
const calledTools = (body: unknown): ReadonlyArray<Called> =>
  (Array.isArray(body) ? body : [body]).flatMap(
    (message: unknown): ReadonlyArray<Called> =>
      Predicate.hasProperty(message, "method") &&
      message.method === "tools/call" &&
      Predicate.hasProperty(message, "params") &&
      Predicate.hasProperty(message.params, "name") &&
      typeof message.params.name === "string"
        ? [{ name: message.params.name, message }]
        : []
  )

/** Whether the web platform can have this request: it knows no TRACE, and no user in a `Host`. */
const hasWebRequest = (request: HttpServerRequest.HttpServerRequest): boolean =>
  !unknownMethods.has(request.method) &&
  Option.exists(HttpServerRequest.toURL(request), ({ username }) => username === "")

const unknownMethods: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"])

/** The route, and that of the metadata of a protected endpoint. */
export const layer = (
  options: SdkServer.ServerInfo & Options
): Layer.Layer<never, never, HttpRouter.HttpRouter | Calls.Calls | Registry.Registry> =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const settings = yield* Settings.Settings
      const { isAllowed, plain, respond } = yield* endpoint(options)
      // What goes wrong here is a fault of the server, which answers 500 and logs it.
      const bySdk = (context: Context.Context<never>, body?: Body) =>
        Effect.orDie(HttpEffect.fromWebHandler((request) => respond(request, context, body)))
      const route = Effect.withFiber((fiber) => {
        const { context } = fiber
        const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
        const { headers, method } = request
        if (!hasWebRequest(request)) return Effect.succeed(HttpServerResponse.empty({ status: 400 }))
        if (method !== "POST" || !isJsonContentType(headers["content-type"] ?? null) || !isAllowed(headers)) {
          return bySdk(context)
        }
        return Effect.flatMap(HttpBody.readText(request, settings), (body) => {
          const answered = Result.isSuccess(body) ? plain(headers, body.success) : undefined
          return answered ?? bySdk(context, body)
        })
      })
      const { cors } = options
      yield* router.add(
        "*",
        pathOf(options),
        cors === undefined
          ? route
          : HttpMiddleware.cors({
              // A function: an empty list would be taken for every origin.
              allowedOrigins: (origin) => cors.origins.includes(origin),
              allowedMethods: ["GET", "POST", "DELETE"],
              // Whatever a page asks for: a tool may repeat its arguments in headers of its own.
              allowedHeaders: [],
              exposedHeaders: ["Mcp-Session-Id", "WWW-Authenticate"],
              credentials: cors.credentials ?? false
            })(route)
      )
      const metadata = TokenVerifier.metadata(options.protection ?? {})
      if (metadata !== undefined) {
        // For everybody, pages of any origin too: it is where they learn how to get a token.
        const published = HttpMiddleware.cors({ allowedMethods: ["GET"] })(
          Effect.succeed(HttpServerResponse.jsonUnsafe(metadata))
        )
        for (const method of ["GET", "OPTIONS"] as const) {
          yield* router.add(method, TokenVerifier.metadataPath(pathOf(options)), published)
        }
      }
    })
  )
