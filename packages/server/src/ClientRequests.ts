/**
 * What a tool may ask of the client beside a question to its user: a completion of the client's model, and its roots.
 *
 * MCP deprecates both at 2026-07-28: they are here for tools that have them. A tool that cannot do without says so by
 * {@link require}, and is then refused to clients that offer less; the others get a typed failure where they ask.
 */
import * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Asking from "./Asking.ts"
import * as Capabilities from "./Capabilities.ts"

/** The client cannot be asked, or its answer is of another kind. */
export class ClientRequestFailed extends Schema.TaggedError<ClientRequestFailed>()("ClientRequestFailed", {
  method: Schema.String,
  message: Schema.String
}) {}

/** Asks the client of the running call; fails outside of a served call. */
export interface ClientRequestsService {
  readonly createMessage: (params: Schema.JsonObject) => Effect.Effect<Schema.JsonObject, ClientRequestFailed>
  readonly listRoots: Effect.Effect<ReadonlyArray<Root>, ClientRequestFailed>
}

/** A root of the client: a `file://` URI, and a name for people. */
export interface Root {
  readonly uri: string
  readonly name?: string
}

const unavailable = (method: string) =>
  Effect.fail(new ClientRequestFailed({ method, message: `mcpserver: ${method}: the client does not offer it` }))

/** Nobody to ask: the default. */
export const none: ClientRequestsService = {
  createMessage: () => unavailable("sampling/createMessage"),
  listRoots: unavailable("roots/list")
}

/** The reference that holds them. */
export const ClientRequests: Context.Reference<ClientRequestsService> = Context.Reference<ClientRequestsService>(
  "@agenttool/server/ClientRequests",
  { defaultValue: () => none }
)

/**
 * A completion of the client's model. `params` and the result are those of MCP's `sampling/createMessage`.
 *
 * @deprecated MCP deprecates sampling at 2026-07-28.
 */
export const createMessage = (params: Schema.JsonObject): Effect.Effect<Schema.JsonObject, ClientRequestFailed> =>
  Effect.flatMap(Effect.service(ClientRequests), (requests) => requests.createMessage(params))

/**
 * The client's roots.
 *
 * @deprecated MCP deprecates roots at 2026-07-28.
 */
export const listRoots: Effect.Effect<ReadonlyArray<Root>, ClientRequestFailed> = Effect.flatMap(
  Effect.service(ClientRequests),
  (requests) => requests.listRoots
)

/** The capabilities that a client must offer for a tool to be called, as MCP has them: `{ sampling: {} }`. */
export const Required: Context.Reference<Schema.JsonObject> = Context.Reference<Schema.JsonObject>(
  "@agenttool/server/RequiredCapabilities",
  { defaultValue: () => ({}) }
)

/**
 * Says what a client must offer for this tool. A call by one that offers less is refused: with -32021 and the missing
 * capabilities at 2026-07-28, by an error result before.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { ClientRequests } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const where = Tool.make("where", {
 *   execute: () => Effect.map(ClientRequests.listRoots, (roots) => roots.map(({ uri }) => uri).join(", "))
 * }).pipe(ClientRequests.require({ roots: {} }))
 * ```
 */
export const require = (capabilities: Schema.JsonObject): (<T extends Tool.Any>(self: T) => T) =>
  Tool.setting(Required, capabilities)

/** Which of a tool's required capabilities these lack; none missing is `undefined`. */
export const missing = (tool: Tool.Any, capabilities: Schema.Json): Schema.JsonObject | undefined => {
  const lacking = Object.entries(Tool.settingOf(tool, Required)).filter(
    ([name, wanted]) => !Capabilities.has(capabilities, name, wanted)
  )
  return lacking.length === 0 ? undefined : Object.fromEntries(lacking)
}

/** Puts them into the context of a call whose client offers any of them. */
export const provide = (
  context: Context.Context<never>,
  capabilities: Schema.Json,
  ask: Asking.Ask
): Context.Context<never> => {
  const sampling = Capabilities.has(capabilities, "sampling", {})
  const roots = Capabilities.has(capabilities, "roots", {})
  if (!sampling && !roots) return context
  const one = (method: "sampling/createMessage" | "roots/list", params: Schema.Json) =>
    Effect.flatMap(
      Effect.mapError(
        ask({ key: undefined, method, params, fits: () => false }),
        ({ message }) => new ClientRequestFailed({ method, message })
      ),
      (reply) => (reply._tag === "Response" ? Effect.succeed(reply.response) : unavailable(method))
    )
  return Context.add(context, ClientRequests, {
    createMessage: sampling
      ? (params) => Effect.flatMap(one("sampling/createMessage", params), asObject("sampling/createMessage", "role"))
      : none.createMessage,
    listRoots: roots
      ? Effect.flatMap(one("roots/list", {}), (response) =>
          Effect.map(
            Effect.mapError(
              Schema.decodeUnknownEffect(Roots)(response),
              () => new ClientRequestFailed({ method: "roots/list", message: otherKind("roots/list") })
            ),
            (decoded) => decoded.roots
          )
        )
      : none.listRoots
  })
}

const Roots = Schema.Struct({
  roots: Schema.Array(Schema.Struct({ uri: Schema.String, name: Schema.optionalKey(Schema.String) }))
})

const otherKind = (method: string): string => `mcpserver: ${method}: the client answered with something else`

const asObject =
  (method: string, member: string) =>
  (response: Schema.Json): Effect.Effect<Schema.JsonObject, ClientRequestFailed> =>
    isObject(response) && Predicate.hasProperty(response, member)
      ? Effect.succeed(response)
      : Effect.fail(new ClientRequestFailed({ method, message: otherKind(method) }))

const isObject = (value: Schema.Json): value is Schema.JsonObject => Predicate.isObject(value)
