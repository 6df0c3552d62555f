/**
 * Pages of a listing, their cursors and their hints.
 */
import { Tool } from "@agenttool/core"
import type { Settings } from "@agenttool/server"
import * as Listing from "@agenttool/server/Listing"
import { connect } from "@agenttool/server/testing"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { eras, failureOf } from "./hosts.ts"

const between = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** All pages, by following the cursors. */
const pagesOf = <A>(items: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> => {
  const pages: Array<ReadonlyArray<A>> = []
  let cursor: string | undefined
  do {
    const page = Listing.page(items, size, cursor)
    if (page === undefined) return assert.fail(`no page for ${cursor}`)
    pages.push(page.items)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

describe("pages", () => {
  it.prop(
    "M7: have every item once, in order, and only the last one may be short",
    [between(0, 60), between(1, 20)],
    ([count, size]) => {
      const items = Array.from({ length: count }, (_, i) => i)
      const pages = pagesOf(items, size)
      assert.deepStrictEqual(pages.flat(), items)
      assert.isTrue(pages.slice(0, -1).every(({ length }) => length === size))
      assert.isTrue(count === 0 || (pages.at(-1)?.length ?? 0) > 0)
    }
  )

  it("P72: a cursor that was never given out names none, the empty one included", () => {
    const items = [1, 2, 3, 4, 5]
    const cursor = Listing.page(items, 2, undefined)?.nextCursor ?? ""
    assert.deepStrictEqual(Listing.page(items, 2, cursor)?.items, [3, 4])
    const encoded = (text: string) => Buffer.from(text).toString("base64url")
    for (const wrong of [
      "",
      "2",
      "nonsense",
      `${cursor}=`,
      ` ${cursor}`,
      encoded("tools:0"),
      encoded("tools:-2"),
      encoded("tools:02"),
      encoded("tools:2.0"),
      encoded("tools:1"),
      encoded("tools:99999999999"),
      encoded("tools:2 "),
      encoded("other:2")
    ]) {
      assert.isUndefined(Listing.page(items, 2, wrong), wrong)
    }
  })

  it("P72: a list that has shrunk has nothing on a page that it had", () => {
    const cursor = Listing.page([1, 2, 3, 4, 5], 2, Listing.page([1, 2, 3, 4, 5], 2, undefined)?.nextCursor)?.nextCursor
    assert.deepStrictEqual(Listing.page([1], 2, cursor), { items: [], nextCursor: undefined })
  })
})

const many = Array.from({ length: 5 }, (_, i) => Tool.make(`tool_${i}`, { execute: () => Effect.void }))

const hintsOf = (result: unknown): ReadonlyArray<unknown> => {
  const { cacheScope, ttlMs } = result as { readonly cacheScope?: unknown; readonly ttlMs?: unknown } // JSON
  return [ttlMs, cacheScope]
}

for (const protocolVersion of eras) {
  /** What comes back for a listing, as it is on the wire. */
  const listing = (settings: Partial<Settings.Settings>) =>
    Effect.gen(function* () {
      const mcp = yield* connect({ tools: many, protocolVersion, ...settings })
      const { tools } = yield* Effect.promise(() => mcp.client.listTools())
      const results = (yield* mcp.messages).flatMap(({ from, message }) =>
        from === "server" && "result" in message && "tools" in message.result ? [message.result] : []
      )
      return { mcp, results, names: tools.map(({ name }) => name) }
    })

  describe(`${protocolVersion}: listing`, () => {
    it.effect("M7: comes in pages of the size that is set, which a client follows", () =>
      Effect.gen(function* () {
        const { names, results } = yield* listing({ toolsPerPage: 2 })
        assert.deepStrictEqual(
          names,
          many.map(({ name }) => name)
        )
        assert.deepStrictEqual(
          results.map(({ tools }) => (tools as ReadonlyArray<unknown>).length),
          [2, 2, 1]
        )
        assert.deepStrictEqual(
          results.map((result) => typeof result.nextCursor),
          ["string", "string", "undefined"]
        )
        const { results: whole } = yield* listing({})
        assert.deepStrictEqual(
          whole.map(({ tools }) => (tools as ReadonlyArray<unknown>).length),
          [5]
        )
      })
    )

    it.effect("M84: a page size that is none stands for the default", () =>
      Effect.gen(function* () {
        for (const toolsPerPage of [0, -1, 0.5, Number.NaN]) {
          const { names, results } = yield* listing({ toolsPerPage })
          assert.strictEqual(names.length, 5)
          assert.lengthOf(results, 1)
        }
        const { results } = yield* listing({ toolsPerPage: 2.9 })
        assert.lengthOf(results, 3)
      })
    )

    it.effect("P72: a cursor that was never given out is refused", () =>
      Effect.gen(function* () {
        const { mcp } = yield* listing({ toolsPerPage: 2 })
        for (const cursor of ["", "nonsense"]) {
          const error = yield* failureOf(() =>
            mcp.client.request(
              { method: "tools/list", params: { cursor } },
              Schema.toStandardSchemaV1(Schema.Record(Schema.String, Schema.Json))
            )
          )
          assert.strictEqual(error.code, -32602)
          assert.include(error.message, "invalid cursor")
        }
      })
    )

    it.effect(
      "P68, P117: says how long it may be cached at 2026-07-28, not at all by default, and nothing before",
      () =>
        Effect.gen(function* () {
          const modern = protocolVersion === "2026-07-28"
          const byDefault = yield* listing({ toolsPerPage: 3 })
          for (const result of byDefault.results) {
            assert.deepStrictEqual(hintsOf(result), modern ? [0, "private"] : [undefined, undefined])
          }
          const cached = yield* listing({ toolsPerPage: 3, listTtl: "5 minutes", listScope: "public" })
          assert.lengthOf(cached.results, 2)
          for (const result of cached.results) {
            assert.deepStrictEqual(hintsOf(result), modern ? [300_000, "public"] : [undefined, undefined])
          }
        })
    )
  })
}
