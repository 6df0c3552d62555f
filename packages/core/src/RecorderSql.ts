/**
 * A recorder that inserts into a table of the `SqlClient` it is given (SQLite, PostgreSQL, MySQL, SQL Server), each entry
 * committed before `write` returns.
 *
 * `effect/sql` is marked unstable: this module is the only one of the package that uses it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlError from "effect/sql/SqlError"
import * as Recorder from "./Recorder.ts"

/** `table`: the name of the table. Default `tool_records`. */
export interface Options {
  readonly table?: string | undefined
}

const defaultTable = "tool_records"

/**
 * Creates the table if there is none, and installs the recorder.
 *
 * An entry is committed on its own, also where the tool that writes it is inside a transaction of the same client: it
 * says what was begun, and must stay when the transaction is rolled back. A SQLite client has one connection, which an
 * open transaction holds: there such a write fails. Give the recorder a client of its own if tools need that.
 *
 * @example
 * ```ts
 * import * as RecorderSql from "@agenttool/core/RecorderSql"
 *
 * const Records = RecorderSql.layer({ table: "deploy_records" }) // needs SqlClient.SqlClient
 * ```
 */
export const layer = (options?: Options): Layer.Layer<never, Recorder.RecorderError, SqlClient.SqlClient> =>
  Layer.effect(Recorder.Recorder, make(options?.table ?? defaultTable))

/**
 * Reads all entries of the table, oldest first. Entries of one millisecond by two processes have no order between them.
 */
export const entries = (
  options?: Options
): Effect.Effect<ReadonlyArray<Recorder.Entry>, Recorder.RecorderError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const rows = yield* sql`SELECT recorded_at, call_id, tool, ns, data FROM ${sql(options?.table ?? defaultTable)}
      ORDER BY recorded_at, seq`
    return yield* Effect.forEach(rows, decodeRow)
  }).pipe(Effect.mapError(failed(options?.table ?? defaultTable)))

const failed = (table: string) => (cause: SqlError.SqlError | Schema.SchemaError) =>
  new Recorder.RecorderError({ message: `record table ${table}: ${cause.message}`, cause })

const make = (table: string): Effect.Effect<Recorder.RecorderService, Recorder.RecorderError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    yield* Effect.mapError(createTable(sql, table), failed(table))
    const outside = outsideTransaction(sql, table)
    // Orders the entries of one millisecond.
    let seq = 0
    return {
      write: (record) =>
        Effect.flatMap(Recorder.entry(record), (entry) => {
          const row = {
            recorded_at: entry.time,
            seq: seq++,
            call_id: entry.call,
            tool: entry.tool,
            ns: entry.ns,
            data: entry.data
          }
          return outside(Effect.mapError(sql`INSERT INTO ${sql(table)} ${sql.insert(row)}`, failed(table)))
        })
    }
  })

/** Runs an effect on a connection of its own, whatever transaction the caller is in. */
const outsideTransaction = (sql: SqlClient.SqlClient, table: string) => {
  const separately = <A>(effect: Effect.Effect<A, Recorder.RecorderError>): Effect.Effect<A, Recorder.RecorderError> =>
    Effect.updateContext(effect, Context.omit(sql.transactionService))
  return sql.onDialectOrElse({
    orElse: () => separately,
    // Waiting for the one connection, which the caller's own transaction holds, would never end.
    sqlite: () => (effect: Effect.Effect<unknown, Recorder.RecorderError>) =>
      Effect.flatMap(Effect.serviceOption(sql.transactionService), (open) =>
        open._tag === "None"
          ? effect
          : Effect.fail(
              new Recorder.RecorderError({
                message: `record table ${table}: a record cannot be made durable inside an open transaction of its own client`
              })
            )
      )
  })
}

// Text columns hold any length in every dialect, and keep the bytes of the JSON.
const createTable = (sql: SqlClient.SqlClient, table: string): Effect.Effect<unknown, SqlError.SqlError> =>
  sql.onDialectOrElse({
    orElse: () => sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (
      recorded_at BIGINT NOT NULL,
      seq BIGINT NOT NULL,
      call_id TEXT NOT NULL,
      tool TEXT NOT NULL,
      ns TEXT NOT NULL,
      data TEXT NOT NULL
    )`,
    mysql: () => sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (
      recorded_at BIGINT NOT NULL,
      seq BIGINT NOT NULL,
      call_id TEXT NOT NULL,
      tool TEXT NOT NULL,
      ns TEXT NOT NULL,
      data LONGTEXT NOT NULL
    )`,
    mssql: () => sql`IF OBJECT_ID(${table}, 'U') IS NULL CREATE TABLE ${sql(table)} (
      recorded_at BIGINT NOT NULL,
      seq BIGINT NOT NULL,
      call_id NVARCHAR(MAX) NOT NULL,
      tool NVARCHAR(MAX) NOT NULL,
      ns NVARCHAR(MAX) NOT NULL,
      data NVARCHAR(MAX) NOT NULL
    )`
  })

// Drivers give a BIGINT as number, text or bigint; a time in milliseconds fits a number.
const Row = Schema.Struct({
  recorded_at: Schema.Union([Schema.Finite, Schema.FiniteFromString, Schema.BigInt]),
  call_id: Schema.String,
  tool: Schema.String,
  ns: Schema.String,
  data: Schema.String
})

const decodeRow = (row: unknown): Effect.Effect<Recorder.Entry, Schema.SchemaError> =>
  Effect.map(Schema.decodeUnknownEffect(Row)(row), (decoded) => ({
    time: Number(decoded.recorded_at),
    call: decoded.call_id,
    tool: decoded.tool,
    ns: decoded.ns,
    data: decoded.data
  }))
