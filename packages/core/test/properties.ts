/** Every property of a tool, with its combinator and its reader: what a new property has to be added to. */
import { Context, Effect, Layer, Option } from "effect"
import type * as Properties from "@agenttool/core/Properties"
import * as Tool from "@agenttool/core/Tool"

/** Any tool of a test: it fails with nothing and needs nothing. */
export type Subject = Tool.Tool<never, never, never>

export interface Row {
  /** Sets the property by its combinator. */
  readonly set: (tool: Subject) => Subject
  /** What its reader gives, for a call with these arguments. */
  readonly read: (tool: Tool.Tool<unknown, never>, raw: string) => Effect.Effect<unknown>
  readonly fallback: unknown
  readonly given: unknown
}

export const Icon: Context.Reference<string> = Context.Reference<string>("test/Icon", { defaultValue: () => "none" })

export const rows: Record<keyof Properties.Properties, Row> = {
  strict: {
    set: Tool.strict,
    read: (tool) => Effect.succeed(Tool.isStrict(tool)),
    fallback: false,
    given: true
  },
  sequential: {
    set: Tool.sequential,
    read: (tool) => Effect.succeed(Tool.isSequential(tool)),
    fallback: false,
    given: true
  },
  barrier: {
    set: Tool.barrier,
    read: (tool) => Effect.succeed(Tool.isBarrier(tool)),
    fallback: false,
    given: true
  },
  resource: {
    set: Tool.resource("shell:1"),
    read: (tool) => Effect.succeed(Tool.resourceOf(tool)),
    fallback: "",
    given: "shell:1"
  },
  flow: {
    set: Tool.flow({ untrusted: true, sends: false }),
    read: (tool) => Effect.succeed(Tool.flowOf(tool)),
    fallback: Option.none(),
    given: Option.some({ untrusted: true })
  },
  annotations: {
    set: Tool.annotate({ title: "A tool", readOnly: false }),
    read: (tool) => Effect.succeed(Tool.annotationsOf(tool)),
    fallback: Option.none(),
    given: Option.some({ title: "A tool", readOnly: false })
  },
  confined: {
    set: Tool.confined((args, raw) => Effect.succeed({ confined: true, by: `${JSON.stringify(args)} of ${raw}` })),
    read: (tool, raw) => Tool.confinedOf(tool, raw),
    fallback: { confined: false, by: "" },
    given: { confined: true, by: '{"a":1} of {"a": 1}' }
  },
  replay: {
    set: Tool.replay((args, raw) =>
      Effect.succeed(JSON.stringify(args) === '{"a":1}' && raw === '{"a": 1}' ? "keyed" : "safe")
    ),
    read: (tool, raw) => Tool.replayOf(tool, raw),
    fallback: "unknown",
    given: "keyed"
  },
  facts: {
    set: Tool.facts((args, raw) => Effect.fail({ args, raw })),
    read: (tool, raw) => Effect.map(Tool.factsOf(tool, raw), (claim) => [Tool.claimsFacts(tool), claim]),
    fallback: [false, { claims: false }],
    given: [true, { claims: true, error: { args: { a: 1 }, raw: '{"a": 1}' } }]
  },
  closer: {
    set: Tool.closer(Effect.fail("closed")),
    read: (tool) => Effect.transposeOption(Option.map(Tool.closerOf(tool), Effect.flip)).pipe(Effect.orDie),
    fallback: Option.none(),
    given: Option.some("closed")
  },
  settings: {
    set: Tool.setting(Icon, "a star"),
    read: (tool) => Effect.succeed(Tool.settingOf(tool, Icon)),
    fallback: "none",
    given: "a star"
  }
}

// The keys of an object literal are those of its type.
export const names = Object.keys(rows) as ReadonlyArray<keyof Properties.Properties>

/** What every reader gives, by property. */
export const readings = (tool: Tool.Tool<unknown, never>): Effect.Effect<Record<string, unknown>> =>
  Effect.map(
    Effect.forEach(names, (name) => Effect.map(rows[name].read(tool, '{"a": 1}'), (value) => [name, value] as const)),
    Object.fromEntries
  )

class Nothing extends Context.Service<Nothing, object>()("test/Nothing") {}

/** Every combinator of `Tool` that makes a tool which runs in another way. */
export const derivers: Record<string, (tool: Subject) => Subject> = {
  wrap: Tool.wrap((execute) => execute),
  provide: Tool.provide(Layer.succeed(Nothing, {})),
  provideService: Tool.provideService(Nothing, {}),
  mapEffects: (tool) => Tool.mapEffects(tool, (effect) => Effect.withSpan(effect, "test")),
  strict: Tool.strict,
  nullAsAbsent: Tool.nullAsAbsent
}
