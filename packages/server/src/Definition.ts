/**
 * What a server lists of a tool: section 2 of the contract at the MCP edge, as plain data that is made once per tool.
 *
 * It can be used without the rest of this package: the entry under `_meta` is there all the same (M20). Nothing is checked
 * here: {@link schemaFault} and {@link nameWarning} say what is wrong, and whoever registers the tool acts on it. The types
 * are aliases, not interfaces: only so is a definition a `Schema.Json`.
 */
import type * as Properties from "@agenttool/core/Properties"
import * as Tool from "@agenttool/core/Tool"
import * as ToolError from "@agenttool/core/ToolError"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as headers from "./internal/headers.ts"
import * as references from "./internal/references.ts"
import * as Wire from "./Wire.ts"

/** MCP's hints, all four of them, whenever any is stated (M14). */
export type Annotations = {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
  readonly title?: string
}

/** What a harness reads of a tool and MCP has no member for (M17). What would be false or empty is left out. */
export type ToolEntry = {
  readonly facts?: true
  readonly replay: true
  readonly readOnly?: true
  readonly sequential?: true
  readonly barrier?: true
  readonly resource?: string
  readonly flow?: { readonly untrusted?: true; readonly sends?: true }
}

/**
 * A picture of a tool. `src` is an `https:` or `data:` address, `sizes` are `48x48` or `any`, `theme` is the background
 * that the picture is made for.
 */
export type Icon = {
  readonly src: string
  readonly mimeType?: string
  readonly sizes?: ReadonlyArray<string>
  readonly theme?: "light" | "dark"
}

/** A tool, as a server lists it. `inputSchema` is the very object that the tool has (M12). */
export type ToolDefinition = {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: Schema.JsonObject
  readonly outputSchema?: Schema.JsonObject
  readonly annotations?: Annotations
  readonly icons?: ReadonlyArray<Icon>
  readonly _meta: { readonly [Wire.toolKey]: ToolEntry }
}

/**
 * The pictures of a tool, set with `Tool.setting`. Default: none.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Definition } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const clock = Tool.make("clock", { execute: () => Effect.succeed("12:00") }).pipe(
 *   Tool.setting(Definition.Icons, [{ src: "https://example.com/clock.png", mimeType: "image/png", sizes: ["48x48"] }])
 * )
 * ```
 */
export const Icons: Context.Reference<ReadonlyArray<Icon>> = Context.Reference<ReadonlyArray<Icon>>(
  "@agenttool/server/Definition/Icons",
  { defaultValue: () => [] }
)

/**
 * The definition of a tool, as it is listed at 2026-07-28. See {@link forLegacy} for the revisions before.
 *
 * @example
 * ```ts
 * import { Tool } from "@agenttool/core"
 * import { Definition } from "@agenttool/server"
 * import { Effect } from "effect"
 *
 * const now = Tool.make("now", { execute: () => Effect.succeed("12:00") }).pipe(Tool.annotate({ readOnly: true }))
 *
 * Definition.make(now).annotations?.readOnlyHint // true
 * ```
 */
export const make = (tool: Tool.Any): ToolDefinition => {
  const annotations = annotationsOf(tool)
  const icons = Tool.settingOf(tool, Icons)
  return {
    name: tool.name,
    ...(annotations?.title === undefined ? {} : { title: annotations.title }),
    ...(tool.description === "" ? {} : { description: tool.description }),
    inputSchema: Tool.inputSchema(tool),
    ...(tool.success === undefined ? {} : { outputSchema: tool.success }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(icons.length === 0 ? {} : { icons }),
    _meta: { [Wire.toolKey]: entryOf(tool) }
  }
}

/** None when nothing is stated, or every hint false: the two are not told apart (M15). */
const annotationsOf = (tool: Tool.Any): Annotations | undefined => {
  const { destructive, idempotent, openWorld, readOnly, title } = hintsOf(tool)
  const named = title === undefined || title === "" ? undefined : title
  return named !== undefined || [readOnly, destructive, idempotent, openWorld].includes(true)
    ? {
        readOnlyHint: readOnly === true,
        destructiveHint: destructive === true,
        idempotentHint: idempotent === true,
        // A client without any notion of flow must not end up more trusting (M16).
        openWorldHint: openWorld === true || Option.isSome(Tool.flowOf(tool)),
        ...(named === undefined ? {} : { title: named })
      }
    : undefined
}

const hintsOf = (tool: Tool.Any): Properties.Annotations => Option.getOrElse(Tool.annotationsOf(tool), () => ({}))

const entryOf = (tool: Tool.Any): ToolEntry => {
  const barrier = Tool.isBarrier(tool)
  const resource = Tool.resourceOf(tool)
  const flow = Option.getOrUndefined(Tool.flowOf(tool))
  return {
    ...(Tool.claimsFacts(tool) ? { facts: true } : {}),
    // Every tool answers: one whose author said nothing answers `unknown`.
    replay: true,
    ...(hintsOf(tool).readOnly === true ? { readOnly: true } : {}),
    // A reader that knows no barriers runs one at a time, which is stricter (M19).
    ...(barrier || Tool.isSequential(tool) ? { sequential: true } : {}),
    ...(barrier ? { barrier: true } : {}),
    ...(resource === "" ? {} : { resource }),
    ...(flow === undefined
      ? {}
      : {
          flow: {
            ...(flow.untrusted === true ? { untrusted: true } : {}),
            ...(flow.sends === true ? { sends: true } : {})
          }
        })
  }
}

// ----- before 2026-07-28

/**
 * Whether clients before 2026-07-28 see this output schema, and the values of it, wrapped: they know objects only, so
 * anything else becomes the member `result` of one (P131).
 */
export const isWrappedForLegacy = (outputSchema: Schema.JsonObject): boolean => outputSchema.type !== "object"

/** The definition as clients before 2026-07-28 may see it. The same object where nothing differs. */
export const forLegacy = (definition: ToolDefinition): ToolDefinition =>
  definition.outputSchema === undefined || !isWrappedForLegacy(definition.outputSchema)
    ? definition
    : {
        ...definition,
        outputSchema: {
          type: "object",
          properties: { result: references.moved(definition.outputSchema, "/properties/result") },
          required: ["result"]
        }
      }

// ----- what may be wrong

const portableName = /^[A-Za-z0-9_-]{1,64}$/

/** What to warn of about a name: some model APIs refuse the whole list of tools for one such name (M12). */
export const nameWarning = (name: string): string | undefined =>
  portableName.test(name)
    ? undefined
    : `mcpserver: tool ${ToolError.quote(name)}: some model APIs refuse a list with a name outside ${portableName.source}`

/**
 * What is wrong with the schema that a tool would list, in one line: its root does not say that it is an object (M3), or
 * it misplaces `x-mcp-header` (P26), for either of which clients drop tools. Whether it is a schema at all is for
 * `Tool.prepare` to say.
 */
export const schemaFault = (tool: Tool.Any): string | undefined => {
  const schema = Tool.inputSchema(tool)
  return schema.type === "object" ? headers.faultOf(schema) : 'the root must say "type":"object"'
}
