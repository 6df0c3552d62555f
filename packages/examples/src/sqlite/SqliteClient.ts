/**
 * The `SqlClient` of `effect/sql` over the SQLite that comes with Node (`node:sqlite`), so that examples and tests need no
 * driver package. A program of your own should take a driver that is published and kept up, such as `@effect/sql-sqlite-node`.
 *
 * One connection, used by one statement or transaction at a time; statements run on the thread of the program.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Scope from "effect/Scope"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type * as SqlConnection from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"

/**
 * - `filename`: the database file, created if there is none. Default `:memory:`: gone when the scope closes.
 * - `busyTimeout`: how many milliseconds to wait for another process's lock, blocking the thread. Default 5000.
 */
export interface Options {
  readonly filename?: string | undefined
  readonly busyTimeout?: number | undefined
}

/** Opens the database; it is closed with the scope. Commits are on disk when they return (`synchronous` stays `FULL`). */
export const make = (
  options?: Options
): Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const filename = options?.filename ?? ":memory:"
    const database = yield* Effect.acquireRelease(
      attempt("open", () => new DatabaseSync(filename, { timeout: options?.busyTimeout ?? 5000 })),
      (open) => Effect.sync(() => open.close())
    )
    yield* attempt("open", () => database.exec("PRAGMA journal_mode = WAL"))
    const semaphore = yield* Semaphore.make(1)
    return yield* SqlClient.make({
      ...SqlClient.makeSqliteAcquirers({
        connection: Effect.succeed(connectionOf(database)),
        semaphore,
        isTransaction: () => database.isTransaction
      }),
      compiler: Statement.makeCompilerSqlite(),
      driver: "node-sqlite",
      spanAttributes: [["db.system.name", "sqlite"]],
      // Two writers then wait for each other at the start, not in the middle, where SQLite would refuse one.
      beginTransaction: "BEGIN IMMEDIATE",
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`
    })
  })

/**
 * A database for everything under the layer.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { SqlClient } from "effect/sql"
 * import * as SqliteClient from "./SqliteClient.ts"
 *
 * const one = Effect.gen(function* () {
 *   const sql = yield* SqlClient.SqlClient
 *   return yield* sql`SELECT 1 AS one` // [{ one: 1 }]
 * }).pipe(Effect.provide(SqliteClient.layer()))
 * ```
 */
export const layer = (options?: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

const connectionOf = (database: DatabaseSync): SqlConnection.Connection => {
  const run = (sql: string, params: ReadonlyArray<unknown>, asArrays: boolean) =>
    Effect.withFiber((fiber) =>
      attempt("execute", () => {
        const statement = database.prepare(sql)
        statement.setReadBigInts(Context.get(fiber.context, SqlClient.SafeIntegers))
        statement.setReturnArrays(asArrays)
        return statement.all(...params.map(toInput))
      })
    )
  const execute: SqlConnection.Connection["execute"] = (sql, params, transformRows) =>
    Effect.map(run(sql, params, false), (rows) => (transformRows === undefined ? rows : transformRows(rows)))
  // With `setReturnArrays` each row is an array, which the types of node:sqlite do not say.
  const values = (sql: string, params: ReadonlyArray<unknown>) =>
    run(sql, params, true) as Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError> as Effect.Effect<
      ReadonlyArray<ReadonlyArray<unknown>>,
      SqlError.SqlError
    >
  return {
    execute,
    executeRaw: (sql, params) => run(sql, params, false),
    executeStream: (sql, params, transformRows) => Stream.fromIterableEffect(execute(sql, params, transformRows)),
    executeUnprepared: execute,
    executeValues: values,
    executeValuesUnprepared: values
  }
}

const toInput = (value: unknown): SQLInputValue => {
  if (value === undefined) return null
  if (typeof value === "boolean") return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  // SQLite refuses any other type itself, with an error that names it.
  return value as SQLInputValue
}

const attempt = <A>(operation: string, run: () => A): Effect.Effect<A, SqlError.SqlError> =>
  Effect.try({
    try: run,
    catch: (cause) => {
      const message = cause instanceof Error ? cause.message : String(cause)
      // The driver calls SQLite's own code `errcode`; the classifier looks for `errno`.
      const errno = typeof cause === "object" && cause !== null && "errcode" in cause ? cause.errcode : undefined
      return new SqlError.SqlError({
        reason: SqlError.classifySqliteError({ errno, message, cause }, { message, operation })
      })
    }
  })
