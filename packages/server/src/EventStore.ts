/**
 * What a 2025 client missed while its connection was broken: the messages of its session's streams, kept so that it can
 * resume by `Last-Event-ID` (P127).
 *
 * A reference without a default: unless a store is installed, nothing is kept and nothing can be resumed. Streams of
 * different sessions have different names; a client can only resume streams of its own session.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"

/** A message of a stream. An empty object is the marker with which a stream begins. */
export interface StoredEvent {
  readonly id: string
  readonly stream: string
  readonly message: Schema.Json
}

/**
 * A store.
 *
 * - `add` gives the event's id, unique in the store. - `streamOf` gives the stream of an event.
 * - `after` gives the later events of the same stream, in order.
 * - `forget` drops every stream whose name begins with this: a session has ended.
 */
export interface EventStoreService {
  readonly add: (stream: string, message: Schema.Json) => Effect.Effect<string>
  readonly streamOf: (id: string) => Effect.Effect<Option.Option<string>>
  readonly after: (id: string) => Effect.Effect<ReadonlyArray<StoredEvent>>
  readonly forget: (prefix: string) => Effect.Effect<void>
}

/** The reference that holds the store. */
export const EventStore: Context.Reference<EventStoreService | undefined> = Context.Reference<
  EventStoreService | undefined
>("@agenttool/server/EventStore", { defaultValue: () => undefined })

/**
 * Keeps events in memory, at most `maxEvents` of all sessions together (default 10,000): the oldest go first.
 */
export const layerMemory = (options: { readonly maxEvents?: number } = {}): Layer.Layer<never> =>
  Layer.sync(EventStore, () => {
    const maxEvents = options.maxEvents ?? 10_000
    const events = new Map<string, StoredEvent>()
    let added = 0
    return {
      add: (stream, message) =>
        Effect.sync(() => {
          const id = String(++added)
          events.set(id, { id, stream, message })
          const [oldest] = events.keys()
          if (events.size > maxEvents && oldest !== undefined) events.delete(oldest)
          return id
        }),
      streamOf: (id) => Effect.sync(() => Option.map(Option.fromUndefinedOr(events.get(id)), ({ stream }) => stream)),
      after: (id) =>
        Effect.sync(() => {
          const from = events.get(id)
          return from === undefined
            ? []
            : Array.from(events.values()).filter(
                (event) => event.stream === from.stream && Number(event.id) > Number(id)
              )
        }),
      forget: (prefix) =>
        Effect.sync(() => {
          for (const [id, { stream }] of events) if (stream.startsWith(prefix)) events.delete(id)
        })
    }
  })

/**
 * Keeps events in a table of whatever database the app's `SqlClient` is of. The table (default `mcp_events`) is made if it
 * is not there. A failing database fails the message with a defect, which the server logs.
 */
export const layerSql = (options: { readonly table?: string } = {}): Layer.Layer<never, never, SqlClient.SqlClient> =>
  Layer.effect(
    EventStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const table = sql(options.table ?? "mcp_events")
      yield* Effect.orDie(
        sql`create table if not exists ${table} (id varchar(64) primary key, position bigint not null, stream varchar(255) not null, message text not null)`
      )
      const last = yield* Effect.orDie(
        sql<{ last: number | string | null }>`select max(position) as last from ${table}`
      )
      let position = Number(last[0]?.last ?? 0)
      return {
        add: (stream, message) =>
          Effect.suspend(() => {
            const next = ++position
            const id = `${next}`
            const row = { id, position: next, stream, message: JSON.stringify(message) }
            return Effect.orDie(Effect.as(sql`insert into ${table} ${sql.insert(row)}`, id))
          }),
        streamOf: (id) =>
          Effect.orDie(
            Effect.map(sql<{ stream: string }>`select stream from ${table} where id = ${id}`, (rows) =>
              Option.map(Option.fromUndefinedOr(rows[0]), ({ stream }) => stream)
            )
          ),
        after: (id) =>
          Effect.orDie(
            Effect.map(
              sql<{ id: string; stream: string; message: string }>`
                select later.id, later.stream, later.message from ${table} later, ${table} seen
                where seen.id = ${id} and later.stream = seen.stream and later.position > seen.position
                order by later.position`,
              (rows) => rows.map((row) => ({ id: row.id, stream: row.stream, message: JSON.parse(row.message) }))
            )
          ),
        forget: (prefix) => Effect.orDie(Effect.asVoid(sql`delete from ${table} where stream like ${`${prefix}%`}`))
      }
    })
  )
