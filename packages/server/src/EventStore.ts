/**
 * What a 2025 client missed while its connection was broken: the messages of its session's streams, kept so that it can
 * resume by `Last-Event-ID` (P127).
 *
 * A reference without a default: unless a store is installed, nothing is kept and nothing can be resumed. Streams of
 * different sessions have different names; a client can only resume streams of its own session.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"

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
 * Keeps events in memory, of all sessions together at most `maxEvents` (default 10,000) and `maxBytes` of JSON (default 64
 * MiB): the oldest go first. A message that is larger than that is not kept.
 */
export const layerMemory = (
  options: { readonly maxEvents?: number; readonly maxBytes?: number } = {}
): Layer.Layer<never> =>
  Layer.sync(EventStore, () => {
    const { maxBytes = 64 * 1024 * 1024, maxEvents = 10_000 } = options
    // In the order in which they were added. As text: it takes less room, and its size is known.
    const events = new Map<string, { readonly stream: string; readonly text: string }>()
    let added = 0
    let bytes = 0

    const drop = (id: string): void => {
      bytes -= Buffer.byteLength(events.get(id)?.text ?? "")
      events.delete(id)
    }

    return {
      add: (stream, message) =>
        Effect.sync(() => {
          const id = String(++added)
          const text = JSON.stringify(message)
          events.set(id, { stream, text })
          bytes += Buffer.byteLength(text)
          for (const oldest of events.keys()) {
            if (events.size <= maxEvents && bytes <= maxBytes) break
            drop(oldest)
          }
          return id
        }),
      streamOf: (id) => Effect.sync(() => Option.map(Option.fromUndefinedOr(events.get(id)), ({ stream }) => stream)),
      after: (id) =>
        Effect.sync(() => {
          const from = events.get(id)
          return from === undefined
            ? []
            : Array.from(events)
                .filter(([other, { stream }]) => stream === from.stream && Number(other) > Number(id))
                .map(([other, { stream, text }]) => ({ id: other, stream, message: JSON.parse(text) }))
        }),
      forget: (prefix) =>
        Effect.sync(() => {
          for (const [id, { stream }] of events) if (stream.startsWith(prefix)) drop(id)
        })
    }
  })

/**
 * Keeps events in a table of whatever database the app's `SqlClient` is of. The table (default `mcp_events`) is made if it
 * is not there; several processes may share it. A message that a failing database does not keep is sent all the same, and
 * the log has a warning.
 *
 * The events of a session go when it ends; those of a process that was killed go when one starts and they are older than
 * `keepFor` (default one day).
 */
export const layerSql = (
  options: { readonly table?: string; readonly keepFor?: Duration.Input } = {}
): Layer.Layer<never, never, SqlClient.SqlClient> =>
  Layer.effect(
    EventStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const clock = yield* Clock.Clock
      const table = sql(options.table ?? "mcp_events")
      yield* Effect.orDie(
        sql`create table if not exists ${table} (id varchar(64) primary key, position bigint not null, stream varchar(255) not null, message text not null, stored bigint not null)`
      )
      const outdated = clock.currentTimeMillisUnsafe() - Duration.toMillis(options.keepFor ?? "1 day")
      yield* Effect.orDie(sql`delete from ${table} where stored < ${outdated}`)
      // A stream is of one session, and that of one process: positions are compared within a process only.
      const own = randomBytes(8).toString("hex")
      let position = 0
      return {
        add: (stream, message) =>
          Effect.suspend(() => {
            const next = ++position
            const id = `${own}-${next}`
            const stored = clock.currentTimeMillisUnsafe()
            const row = { id, position: next, stream, message: JSON.stringify(message), stored }
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
        forget: (prefix) =>
          Effect.orDie(
            Effect.asVoid(
              sql`delete from ${table} where stream like ${`${prefix.replace(/[!%_]/g, "!$&")}%`} escape '!'`
            )
          )
      }
    })
  )
