/**
 * A recorder that appends to a file of JSON Lines, one entry per line, on disk before `write` returns.
 *
 * One file has one recorder at a time: lines of one process never mix, but nothing locks the file against another. The
 * file only grows; rotating it is the host's business, between two layers.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Recorder from "./Recorder.ts"

/**
 * Opens the file, creating it if there is none, and installs the recorder. The file is closed with the layer.
 *
 * A last line that a crash cut off stays as it is: the next entry starts on a line of its own.
 *
 * @example
 * ```ts
 * import * as RecorderFile from "@agenttool/core/RecorderFile"
 * import { NodeFileSystem } from "@effect/platform-node"
 * import { Layer } from "effect"
 *
 * const Records = RecorderFile.layer("records.jsonl").pipe(Layer.provide(NodeFileSystem.layer))
 * ```
 */
export const layer = (path: string): Layer.Layer<never, Recorder.RecorderError, FileSystem.FileSystem> =>
  Layer.effect(Recorder.Recorder, Effect.mapError(make(path), failed(path)))

/**
 * Reads the entries of a file, oldest first. Lines that are no entry (cut off by a crash, written by others) are left
 * out. The whole file is read into memory.
 */
export const entries = (
  path: string
): Effect.Effect<ReadonlyArray<Recorder.Entry>, Recorder.RecorderError, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((files) => files.readFileString(path)).pipe(
    Effect.mapError(failed(path)),
    Effect.map((text) => text.split("\n").flatMap((line) => Option.toArray(decodeLine(line))))
  )

const Line = Schema.fromJsonString(Recorder.Entry)
const decodeLine = Schema.decodeUnknownOption(Line)

const failed = (path: string) => (cause: PlatformError.PlatformError) =>
  new Recorder.RecorderError({ message: `record file ${path}: ${cause.message}`, cause })

const make = (
  path: string
): Effect.Effect<Recorder.RecorderService, PlatformError.PlatformError, FileSystem.FileSystem | Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const existed = yield* files.exists(path)
    const file = yield* files.open(path, { flag: "a+" })
    if (!existed) yield* syncDirectory(files, path)
    const turn = yield* Semaphore.make(1)
    const encoder = new TextEncoder()
    let torn = yield* endsInTheMiddle(file)
    // Not interruptible once it has begun: a write that goes on behind an interrupted caller would mix with the next one.
    const append = (line: string) =>
      Effect.suspend(() => {
        const bytes = encoder.encode(torn ? `\n${line}\n` : `${line}\n`)
        torn = true
        return Effect.andThen(file.writeAll(bytes), () => {
          torn = false
          return file.sync
        })
      }).pipe(Effect.uninterruptible, turn.withPermit, Effect.mapError(failed(path)))
    return {
      write: (record) => Effect.flatMap(Recorder.entry(record), (entry) => append(JSON.stringify(entry)))
    }
  })

const newline = 0x0a

const endsInTheMiddle = (file: FileSystem.File): Effect.Effect<boolean, PlatformError.PlatformError> =>
  Effect.gen(function* () {
    const size = ByteSize.toBigInt((yield* file.stat).size)
    if (size === 0n) return false
    const last = yield* file.readAlloc(1, { position: size - 1n })
    return Option.isSome(last) && last.value[0] !== newline
  })

// A new file outlives a power cut only when its directory is on disk too. Not every system can do that (Windows cannot
// open a directory): there the file is as durable as the system makes it.
const syncDirectory = (files: FileSystem.FileSystem, path: string): Effect.Effect<void> =>
  files.open(path.replace(/[^/\\]*$/, "") || ".", { flag: "r" }).pipe(
    Effect.flatMap((directory) => directory.sync),
    Effect.scoped,
    Effect.ignore
  )
