/**
 * What every transport serves from: the table of tools, the running calls, and the settings of both.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Calls from "./Calls.ts"
import * as CallsMemory from "./CallsMemory.ts"
import * as Registry from "./Registry.ts"
import * as Settings from "./Settings.ts"

/** The table of tools, and the running calls. */
export type Services = Registry.Registry | Calls.Calls

/** Both, in memory. */
export const layer: Layer.Layer<Services> = Layer.provideMerge(CallsMemory.layer, Registry.layer)

/** The settings that are given, over those that are set around, over the defaults. */
export const settings = (options: Partial<Settings.Settings>): Layer.Layer<never> =>
  Layer.effect(
    Settings.Settings,
    Effect.map(Effect.service(Settings.Settings), (around) => Settings.make(options, around))
  )
