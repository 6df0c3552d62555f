/**
 * The table of served tools, which registration layers fill and empty.
 *
 * A name stands for one tool everywhere, in listings, calls and facts: the one that was registered last. When that
 * registration is released, the one before it is back.
 */
import * as Tool from "@agenttool/core/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Definition from "./Definition.ts"
import * as HostContext from "./HostContext.ts"
import * as ParamHeaders from "./ParamHeaders.ts"
import * as Settings from "./Settings.ts"

/**
 * A tool cannot be served as it is; nothing of its registration is.
 *
 * Text: `mcpserver: tool "NAME": DETAIL`; DETAIL is `schema: …` for a schema that does not parse or resolve (M3).
 */
export class RegistrationError extends Schema.TaggedError<RegistrationError>()("RegistrationError", {
  tool: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `mcpserver: tool ${JSON.stringify(this.tool)}: ${this.detail}`
  }
}

/** A tool as it is served: all that can be known when it is registered. */
export interface Served {
  readonly tool: Tool.Any
  readonly definition: Definition.ToolDefinition
  /** The arguments that clients repeat as headers, at 2026-07-28 over HTTP. */
  readonly headers: ReadonlyArray<ParamHeaders.Declared>
  readonly registration: string
  /** What was in the context when the tool was registered: the services that it needs. */
  readonly context: Context.Context<never>
}

/** The table. `list` gives the same array until the table changes. */
export class Registry extends Context.Service<
  Registry,
  {
    /** A name for a registration to come. */
    readonly reserve: Effect.Effect<string>
    /** Adds all tools or none, until the scope closes. */
    readonly add: (
      registration: string,
      tools: ReadonlyArray<Tool.Any>
    ) => Effect.Effect<void, RegistrationError, Scope.Scope>
    readonly get: (name: string) => Served | undefined
    readonly list: () => ReadonlyArray<Served>
    /** Calls back after each change, until the scope closes. */
    readonly subscribe: (listener: () => void) => Effect.Effect<void, never, Scope.Scope>
  }
>()("@agenttool/server/Registry") {}

/** An empty table. */
export const layer: Layer.Layer<Registry> = Layer.effect(
  Registry,
  Effect.gen(function* () {
    const settings = yield* Settings.Settings
    // By name, the tools that were registered under it, the last one counts. A map keeps the order of its first keys.
    const table = new Map<string, ReadonlyArray<Served>>()
    const listeners = new Set<() => void>()
    let listed: ReadonlyArray<Served> = []
    let registrations = 0

    const changed = () => {
      listed = Array.from(table.values(), (tools) => tools[tools.length - 1]).filter((served) => served !== undefined)
      for (const listener of listeners) listener()
    }

    const remove = (registration: string) =>
      Effect.sync(() => {
        for (const [name, tools] of table) {
          const kept = tools.filter((served) => served.registration !== registration)
          if (kept.length === tools.length) continue
          if (kept.length === 0) table.delete(name)
          else table.set(name, kept)
        }
        changed()
      })

    const warnings = Effect.fnUntraced(function* (served: Served) {
      const { name } = served.tool
      if (table.has(name)) yield* Effect.logWarning(`tool ${JSON.stringify(name)} is served twice: the later one wins`)
      const oddName = Definition.nameWarning(name)
      if (oddName !== undefined) yield* Effect.logWarning(oddName)
      const check = Tool.prepare(served.tool)
      if (Result.isSuccess(check) && check.success._tag === "Unchecked") {
        yield* Effect.logWarning(
          `tool ${JSON.stringify(name)}: its arguments are not checked: unknown schema dialect ${check.success.dialect}`
        )
      }
    })

    const add = Effect.fnUntraced(function* (registration: string, tools: ReadonlyArray<Tool.Any>) {
      const context = yield* HostContext.capture
      const prepared: Array<Served> = []
      for (const given of tools) {
        const tool = settings.nullAsAbsent ? Tool.nullAsAbsent(given) : given
        const fault = faultOf(tool)
        if (fault !== undefined) return yield* new RegistrationError({ tool: tool.name, detail: fault })
        const definition = Definition.make(tool)
        const headers = ParamHeaders.declared(definition.inputSchema)
        prepared.push({ tool, definition, headers, registration, context })
      }
      yield* Effect.acquireRelease(
        Effect.gen(function* () {
          for (const served of prepared) {
            yield* warnings(served)
            table.set(served.tool.name, [...(table.get(served.tool.name) ?? []), served])
          }
          changed()
        }),
        () => remove(registration)
      )
    })

    return {
      reserve: Effect.sync(() => `registration_${++registrations}`),
      add,
      get: (name) => table.get(name)?.at(-1),
      list: () => listed,
      subscribe: (listener) =>
        Effect.acquireRelease(
          Effect.sync(() => void listeners.add(listener)),
          () => Effect.sync(() => void listeners.delete(listener))
        )
    }
  })
)

const faultOf = (tool: Tool.Any): string | undefined => {
  if (tool.name === "") return "empty name"
  const check = Tool.prepare(tool)
  if (Result.isFailure(check)) return `schema: ${check.failure.reason}`
  const schema = Definition.schemaFault(tool)
  return schema === undefined ? undefined : `schema: ${schema}`
}
