import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import * as Recorder from "@agenttool/core/Recorder"
import * as RecorderSql from "@agenttool/core/RecorderSql"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolRecord from "@agenttool/core/ToolRecord"
import * as SqliteClient from "../../examples/src/sqlite/SqliteClient.ts"

const group = (pgid: number) => ToolRecord.make("shell:process-group", { pgid })
const inCall = (id: string) => Effect.provideService(ToolCall.ToolCall, ToolCall.make({ id, tool: "bash" }))
const data = Effect.map(RecorderSql.entries(), (entries) => entries.map((entry) => entry.data))
const layer = RecorderSql.layer().pipe(Layer.provideMerge(SqliteClient.layer()))
const freshPath = Effect.map(
  FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped()),
  (directory) => `${directory}/records.db`
)

/** A client of another dialect that opens a connection for each use, as one with a pool does. */
const pooled = (filename: string) =>
  Layer.effect(
    SqlClient.SqlClient,
    SqlClient.make({
      acquirer: SqliteClient.make({ filename }).pipe(
        Effect.flatMap((client) => client.reserve),
        Effect.provide(Reactivity.layer)
      ),
      compiler: Statement.makeCompiler({
        dialect: "pg",
        placeholder: () => "?",
        onIdentifier: Statement.defaultEscape('"'),
        onCustom: () => ["", []],
        onRecordUpdate: () => ["", []]
      }),
      driver: "test",
      spanAttributes: []
    })
  ).pipe(Layer.provide(Reactivity.layer))

describe("RecorderSql", () => {
  it.effect("keeps time, call, tool and the data byte for byte, in the order written", () =>
    Effect.gen(function* () {
      const pretty = '{\n  "n": 1e2,\n  "n": 12345678901234567890\n}'
      yield* Recorder.write(group(1))
      yield* Recorder.write(group(2)).pipe(inCall("call_1"))
      yield* TestClock.setTime(1_800_000_000_000)
      yield* Recorder.write(ToolRecord.fromJson("a:b", pretty)).pipe(inCall("call_2"))
      assert.deepStrictEqual(yield* RecorderSql.entries(), [
        { time: 0, call: "", tool: "", ns: "shell:process-group", data: '{"pgid":1}' },
        { time: 0, call: "call_1", tool: "bash", ns: "shell:process-group", data: '{"pgid":2}' },
        { time: 1_800_000_000_000, call: "call_2", tool: "bash", ns: "a:b", data: pretty }
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("C117.4: a record is committed before the write returns: another connection sees it", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      yield* Effect.gen(function* () {
        yield* Recorder.write(group(1))
        const other = Effect.provide(data, Layer.fresh(SqliteClient.layer({ filename: path })))
        assert.deepStrictEqual(yield* other, ['{"pgid":1}'])
      }).pipe(Effect.provide(RecorderSql.layer().pipe(Layer.provide(SqliteClient.layer({ filename: path })))))
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("the table is created once and added to", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const client = SqliteClient.layer({ filename: path })
      for (const pgid of [1, 2]) {
        yield* Effect.provide(Recorder.write(group(pgid)), Layer.fresh(Layer.provide(RecorderSql.layer(), client)))
      }
      assert.deepStrictEqual(yield* Effect.provide(data, Layer.fresh(client)), ['{"pgid":1}', '{"pgid":2}'])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a table name is an identifier, whatever is in it", () =>
    Effect.gen(function* () {
      const table = 'odd "name"; DROP TABLE x'
      const records = RecorderSql.layer({ table }).pipe(Layer.provideMerge(SqliteClient.layer()))
      const entries = yield* Effect.provide(
        Effect.andThen(Recorder.write(group(1)), RecorderSql.entries({ table })),
        records
      )
      assert.strictEqual(entries.length, 1)
    })
  )

  it.effect("C118: writers of several calls at once are all kept", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 20 }, (_, n) => `call_${n}`)
      yield* Effect.forEach(ids, (id) => inCall(id)(Recorder.write(group(1))), { concurrency: "unbounded" })
      assert.sameMembers(
        (yield* RecorderSql.entries()).map((entry) => entry.call),
        ids
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("inside a transaction of its own SQLite client a write fails instead of waiting for ever", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const error = yield* Effect.flip(sql.withTransaction(Recorder.write(group(1))))
      assert.strictEqual(error._tag, "RecorderError")
      assert.match(error.message, /^record table tool_records: .* transaction/)
      yield* Recorder.write(group(2))
      assert.deepStrictEqual(yield* data, ['{"pgid":2}'])
    }).pipe(Effect.provide(layer))
  )

  it.effect("with a client of its own it keeps the record of a transaction that is rolled back", () =>
    Effect.gen(function* () {
      const records = yield* Layer.build(layer)
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE work (n INTEGER)`
        const tool = Effect.gen(function* () {
          yield* sql`INSERT INTO work VALUES (1)`
          yield* Recorder.write(group(1))
          return yield* Effect.fail("gave up")
        })
        yield* Effect.ignore(sql.withTransaction(tool))
        assert.deepStrictEqual(yield* sql`SELECT * FROM work`, [])
      }).pipe(
        Effect.provide(Layer.fresh(SqliteClient.layer())),
        Effect.provideService(Recorder.Recorder, Context.get(records, Recorder.Recorder))
      )
      assert.deepStrictEqual(yield* Effect.provideContext(data, records), ['{"pgid":1}'])
    })
  )

  it.effect(
    "C117.4: on a client with several connections a record is committed even inside a transaction that is rolled back",
    () =>
      Effect.gen(function* () {
        const path = yield* freshPath
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const tool = Effect.gen(function* () {
            yield* sql`SELECT 1`
            yield* Recorder.write(group(1))
            return yield* Effect.fail("gave up")
          })
          yield* Effect.ignore(sql.withTransaction(tool))
          assert.deepStrictEqual(yield* data, ['{"pgid":1}'])
        }).pipe(Effect.provide(RecorderSql.layer().pipe(Layer.provideMerge(pooled(path)))))
      }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("entries of one millisecond keep their order, however the database stores them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const n of [1, 2, 3]) yield* Recorder.write(group(n))
      yield* sql`CREATE TABLE other AS SELECT * FROM tool_records ORDER BY data DESC`
      const entries = yield* RecorderSql.entries({ table: "other" })
      assert.deepStrictEqual(
        entries.map((entry) => entry.data),
        ['{"pgid":1}', '{"pgid":2}', '{"pgid":3}']
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("what the database refuses is a RecorderError", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`DROP TABLE tool_records`
      const written = yield* Effect.flip(Recorder.write(group(1)))
      assert.strictEqual(written._tag, "RecorderError")
      assert.match(written.message, /^record table tool_records: .*no such table/)
      assert.strictEqual((yield* Effect.flip(RecorderSql.entries()))._tag, "RecorderError")
    }).pipe(Effect.provide(layer))
  )

  it.effect("a table that cannot be created fails the layer with a RecorderError", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`PRAGMA query_only = ON`
      const error = yield* Effect.flip(Effect.provide(Effect.void, RecorderSql.layer()))
      assert.strictEqual(error._tag, "RecorderError")
    }).pipe(Effect.provide(SqliteClient.layer()))
  )
})

describe("SqliteClient", () => {
  it.effect("a transaction that fails is rolled back, a savepoint in it on its own", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE t (n INTEGER)`
      const insert = (n: number) => sql`INSERT INTO t VALUES (${n})`
      yield* Effect.ignore(sql.withTransaction(Effect.andThen(insert(1), Effect.fail("no"))))
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* insert(2)
          yield* Effect.ignore(sql.withTransaction(Effect.andThen(insert(3), Effect.fail("no"))))
          yield* sql.withTransaction(insert(4))
        })
      )
      assert.deepStrictEqual(yield* sql`SELECT n FROM t ORDER BY n`.values, [[2], [4]])
    }).pipe(Effect.provide(SqliteClient.layer()))
  )

  it.effect("statements wait while a transaction of another fiber is open", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE t (who TEXT)`
      const twice = (who: string) =>
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO t VALUES (${who})`
            yield* Effect.yieldNow
            yield* sql`INSERT INTO t VALUES (${who})`
          })
        )
      yield* Effect.all([twice("a"), twice("b"), sql`INSERT INTO t VALUES ('c')`], { concurrency: "unbounded" })
      const order = (yield* sql`SELECT who FROM t ORDER BY rowid`.values).map(([who]) => who).join("")
      assert.include(order, "aa")
      assert.include(order, "bb")
      assert.strictEqual(order.length, 5)
    }).pipe(Effect.provide(SqliteClient.layer()))
  )

  it.effect("errors are classified", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE t (n INTEGER UNIQUE)`
      yield* sql`INSERT INTO t VALUES (1)`
      const error = yield* Effect.flip(sql`INSERT INTO t VALUES (1)`)
      assert.strictEqual(error.reason._tag, "UniqueViolation")
    }).pipe(Effect.provide(SqliteClient.layer()))
  )
})
