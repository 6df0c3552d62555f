/**
 * Bearer tokens over HTTP: who may call at all, which scopes a tool wants, and where a client learns how to get a token
 * (P109–P113).
 *
 * A reference without a default: unless a verifier is installed, the endpoint asks for no token and there is no principal.
 * Checking the signature and the issuer of a token is the verifier's; audience, expiry and scopes are checked here as well.
 */
import * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth
} from "@modelcontextprotocol/server"
import * as HostContext from "./HostContext.ts"

/**
 * What a valid token says.
 *
 * - `principal`: who it is, the same for every token of one user: issuer and subject, not the token. Calls that wait for
 *   answers are bound to it.
 * - `expiresAt`: in seconds since 1970. - `resource`: the resource that the token was issued for, if it says so.
 */
export interface Verified {
  readonly principal: string
  readonly clientId: string
  readonly scopes: ReadonlyArray<string>
  readonly expiresAt: number
  readonly resource?: URL | undefined
}

/** The token is not valid. The reason is for logs; a client hears that its token is not valid. */
export class TokenRejected extends Schema.TaggedError<TokenRejected>()("TokenRejected", { reason: Schema.String }) {
  override get message(): string {
    return `token rejected: ${this.reason}`
  }
}

/** Verifies a token. A failure to do so (the issuer is down) is a defect, and answered 500. */
export interface TokenVerifierService {
  readonly verify: (token: Redacted.Redacted<string>) => Effect.Effect<Verified, TokenRejected>
}

/** The reference that holds the verifier. */
export const TokenVerifier: Context.Reference<TokenVerifierService | undefined> = Context.Reference<
  TokenVerifierService | undefined
>("@agenttool/server/TokenVerifier", { defaultValue: () => undefined })

/**
 * Installs a verifier around a server layer.
 *
 * @example
 * ```ts
 * import { TokenVerifier } from "@agenttool/server"
 * import { Effect, Redacted } from "effect"
 *
 * const layer = TokenVerifier.layer({
 *   verify: (token) =>
 *     Redacted.value(token) === "secret"
 *       ? Effect.succeed({ principal: "me", clientId: "cli", scopes: ["tools"], expiresAt: 4_102_444_800 })
 *       : Effect.fail(new TokenVerifier.TokenRejected({ reason: "unknown token" }))
 * })
 * ```
 */
export const layer = (verifier: TokenVerifierService): Layer.Layer<never> => Layer.succeed(TokenVerifier, verifier)

/**
 * How an endpoint is protected.
 *
 * - `resource`: its own URL; tokens that were issued for another resource are refused.
 * - `authorizationServers`: where a client gets a token. With them the endpoint publishes its metadata (RFC 9728).
 * - `scopes`: what every request needs.
 */
export interface Protection {
  readonly resource?: URL | undefined
  readonly authorizationServers?: ReadonlyArray<URL> | undefined
  readonly scopes?: ReadonlyArray<string> | undefined
}

/** Where the metadata of an endpoint is, by RFC 9728. */
export const metadataPath = (path: string): `/${string}` =>
  `/.well-known/oauth-protected-resource${path === "/" ? "" : path}`

/** The metadata, where there is something to publish. */
export const metadata = ({ authorizationServers, resource, scopes }: Protection): Schema.JsonObject | undefined =>
  resource === undefined || authorizationServers === undefined
    ? undefined
    : {
        resource: resource.href,
        authorization_servers: authorizationServers.map(({ href }) => href),
        bearer_methods_supported: ["header"],
        ...(scopes === undefined || scopes.length === 0 ? {} : { scopes_supported: scopes })
      }

/** Says who sends a request, or refuses it. */
export type Gate = (request: Request) => Promise<AuthInfo | Response | undefined>

/** The gate of an endpoint: open if no verifier is installed. */
export const gate = (path: string, protection: Protection): Effect.Effect<Gate> =>
  Effect.gen(function* () {
    const verifier = yield* TokenVerifier
    if (verifier === undefined) return () => Promise.resolve(undefined)
    const around = yield* HostContext.capture
    return requireBearerAuth({
      verifier: {
        verifyAccessToken: (token) =>
          Effect.runPromiseWith(around)(
            verifier.verify(Redacted.make(token)).pipe(
              Effect.map(toAuthInfo(token)),
              Effect.tapError((error) => Effect.logDebug(error.message)),
              Effect.mapError(() => new OAuthError(OAuthErrorCode.InvalidToken, "Invalid token")),
              Effect.tapDefect((defect) => Effect.logError("the token verifier failed", defect))
            )
          )
      },
      requiredScopes: [...(protection.scopes ?? [])],
      ...(protection.resource === undefined ? {} : { expectedResource: protection.resource }),
      ...optionalMetadataUrl(path, protection)
    })
  })

const toAuthInfo =
  (token: string) =>
  ({ clientId, expiresAt, principal, resource, scopes }: Verified): AuthInfo => ({
    token,
    clientId,
    scopes: [...scopes],
    expiresAt,
    ...(resource === undefined ? {} : { resource }),
    extra: { principal }
  })

const optionalMetadataUrl = (path: string, { authorizationServers, resource }: Protection) =>
  resource === undefined || authorizationServers === undefined
    ? {}
    : { resourceMetadataUrl: new URL(metadataPath(path), resource).href }

/** Whom the gate has let in. */
export const principalOf = (auth: AuthInfo | undefined): string | undefined => {
  const principal = auth?.extra?.principal
  return typeof principal === "string" ? principal : undefined
}

// ----- scopes of tools

/** The scopes that calls of a tool need. */
export const Scopes: Context.Reference<ReadonlyArray<string>> = Context.Reference<ReadonlyArray<string>>(
  "@agenttool/server/Scopes",
  { defaultValue: () => [] }
)

/**
 * Says which scopes a call of this tool needs. Where tokens are verified, a call without them is answered 403 with what is
 * missing, before it starts; elsewhere it changes nothing.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { TokenVerifier } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const wipe = Tool.make("wipe", { execute: () => Effect.succeed("wiped") }).pipe(
 *   TokenVerifier.requireScopes("disk:write")
 * )
 * ```
 */
export const requireScopes = (...scopes: ReadonlyArray<string>): (<T extends Tool.Any>(self: T) => T) =>
  Tool.setting(Scopes, scopes)

/** The 403 for a call of a tool whose scopes the token lacks; none is missing: `undefined` (P112). */
export const scopeChallenge = (
  tool: Tool.Any,
  auth: AuthInfo | undefined,
  path: string,
  protection: Protection
): Response | undefined => {
  const needed = Tool.settingOf(tool, Scopes)
  if (auth === undefined || needed.every((scope) => auth.scopes.includes(scope))) return undefined
  return bearerAuthChallengeResponse(new OAuthError(OAuthErrorCode.InsufficientScope, "Insufficient scope"), {
    requiredScopes: [...needed],
    ...optionalMetadataUrl(path, protection)
  })
}
