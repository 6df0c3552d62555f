import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, FileSystem, Layer, PlatformError } from "effect"
import { TestClock } from "effect/testing"
import * as Recorder from "@agenttool/core/Recorder"
import * as RecorderFile from "@agenttool/core/RecorderFile"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolRecord from "@agenttool/core/ToolRecord"

const group = (pgid: number) => ToolRecord.make("shell:process-group", { pgid })
const inCall = (id: string) => Effect.provideService(ToolCall.ToolCall, ToolCall.make({ id, tool: "bash" }))
const read = (path: string) => FileSystem.FileSystem.use((files) => files.readFileString(path))
const data = (path: string) => Effect.map(RecorderFile.entries(path), (entries) => entries.map((entry) => entry.data))

/** A new path in a directory that goes with the test. */
const freshPath = Effect.map(
  FileSystem.FileSystem.use((files) => files.makeTempDirectoryScoped()),
  (directory) => `${directory}/records.jsonl`
)

/** The file system with each `File` changed. */
const withFile = (change: (file: FileSystem.File, path: string) => FileSystem.File) =>
  Effect.updateService(FileSystem.FileSystem, (files) => ({
    ...files,
    open: (path, options) => Effect.map(files.open(path, options), (file) => change(file, path))
  }))

/** A file that hands its operations on to another, some of them replaced. */
const fileOf = (
  file: FileSystem.File,
  changes: Partial<Pick<FileSystem.File, "writeAll" | "sync">>
): FileSystem.File => ({
  [FileSystem.FileTypeId]: FileSystem.FileTypeId,
  stat: file.stat,
  seek: (offset, from) => file.seek(offset, from),
  sync: changes.sync ?? file.sync,
  read: (buffer, options) => file.read(buffer, options),
  readAlloc: (size, options) => file.readAlloc(size, options),
  truncate: (length) => file.truncate(length),
  write: (buffer) => file.write(buffer),
  writeAll: changes.writeAll ?? ((buffer) => file.writeAll(buffer))
})

describe("RecorderFile", () => {
  it.effect("writes one line of JSON per record, with its time, call, tool and data byte for byte", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const pretty = '{\n  "n": 1e2,\n  "n": 12345678901234567890\n}'
      yield* Effect.gen(function* () {
        yield* TestClock.setTime(1500)
        yield* Recorder.write(ToolRecord.fromJson("a:b", pretty)).pipe(inCall("call_1"))
        yield* Recorder.write(group(4242))
      }).pipe(Effect.provide(RecorderFile.layer(path)))
      const lines = (yield* read(path)).split("\n")
      assert.strictEqual(lines.length, 3)
      assert.deepStrictEqual(JSON.parse(lines[0] ?? ""), {
        time: 1500,
        call: "call_1",
        tool: "bash",
        ns: "a:b",
        data: pretty
      })
      assert.deepStrictEqual(yield* data(path), [pretty, '{"pgid":4242}'])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("C117.4: the line is on disk before the write returns", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const log: Array<string> = []
      yield* Recorder.write(group(1)).pipe(
        Effect.tap(() => Effect.sync(() => log.push("returned"))),
        Effect.provide(RecorderFile.layer(path)),
        withFile((file, opened) =>
          fileOf(file, {
            writeAll: (bytes) => Effect.tap(file.writeAll(bytes), () => Effect.sync(() => log.push("written"))),
            sync: Effect.tap(file.sync, () =>
              Effect.sync(() => log.push(opened === path ? "synced" : "directory synced"))
            )
          })
        )
      )
      assert.deepStrictEqual(log, ["directory synced", "written", "synced", "returned"])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a file that is there already is added to", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      for (const pgid of [1, 2]) yield* Effect.provide(Recorder.write(group(pgid)), RecorderFile.layer(path))
      assert.deepStrictEqual(yield* data(path), ['{"pgid":1}', '{"pgid":2}'])
      assert.isTrue((yield* read(path)).endsWith("}\n"))
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a last line that a crash cut off does not spoil the next entry", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      yield* Effect.provide(Recorder.write(group(1)), RecorderFile.layer(path))
      yield* FileSystem.FileSystem.use((files) => files.writeFileString(path, '{"time":0,"ca', { flag: "a" }))
      yield* Effect.gen(function* () {
        yield* Recorder.write(group(2))
        yield* Recorder.write(group(3))
      }).pipe(Effect.provide(RecorderFile.layer(path)))
      assert.strictEqual((yield* read(path)).split("\n")[1], '{"time":0,"ca')
      assert.deepStrictEqual(yield* data(path), ['{"pgid":1}', '{"pgid":2}', '{"pgid":3}'])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a write that failed in the middle does not spoil the next entry", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const full = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "writeAll" })
      let broken = true
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(Recorder.write(group(1)))
        assert.strictEqual(error._tag, "RecorderError")
        assert.isTrue(error.message.startsWith(`record file ${path}: `))
        broken = false
        yield* Recorder.write(group(2))
      }).pipe(
        Effect.provide(RecorderFile.layer(path)),
        withFile((file) =>
          fileOf(file, {
            writeAll: (bytes) =>
              broken ? Effect.andThen(file.writeAll(bytes.subarray(0, 9)), Effect.fail(full)) : file.writeAll(bytes)
          })
        )
      )
      assert.deepStrictEqual(yield* data(path), ['{"pgid":2}'])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("C118: writers of several calls take turns, each line whole", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const inFile: Array<string> = []
      const ids = Array.from({ length: 20 }, (_, n) => `call_${n}`)
      yield* Effect.forEach(ids, (id) => inCall(id)(Recorder.write(group(1))), { concurrency: "unbounded" }).pipe(
        Effect.provide(RecorderFile.layer(path)),
        withFile((file) =>
          fileOf(file, {
            // In two halves with a pause between them: without turns they would mix.
            writeAll: (bytes) =>
              Effect.gen(function* () {
                inFile.push("begin")
                yield* file.writeAll(bytes.subarray(0, 5))
                yield* Effect.yieldNow
                yield* file.writeAll(bytes.subarray(5))
                inFile.push("end")
              })
          })
        )
      )
      assert.deepStrictEqual(
        inFile,
        ids.flatMap(() => ["begin", "end"])
      )
      const entries = yield* RecorderFile.entries(path)
      assert.sameMembers(
        entries.map((entry) => entry.call),
        ids
      )
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a writer that is interrupted finishes its line; one that waits for its turn writes nothing", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const begun = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const first = yield* Effect.forkChild(Recorder.write(group(1)), { startImmediately: true })
        yield* Deferred.await(begun)
        const second = yield* Effect.forkChild(Recorder.write(group(2)), { startImmediately: true })
        yield* Fiber.interrupt(second)
        first.interruptUnsafe()
        yield* Deferred.succeed(gate, undefined)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(first)))
        yield* Recorder.write(group(3))
      }).pipe(
        Effect.provide(RecorderFile.layer(path)),
        withFile((file) =>
          fileOf(file, {
            writeAll: (bytes) =>
              Deferred.succeed(begun, undefined).pipe(
                Effect.andThen(Deferred.await(gate)),
                Effect.andThen(file.writeAll(bytes))
              )
          })
        )
      )
      assert.deepStrictEqual(yield* data(path), ['{"pgid":1}', '{"pgid":3}'])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("a file that cannot be opened or read is a RecorderError", () =>
    Effect.gen(function* () {
      const path = `${yield* freshPath}/below/a/file`
      const opened = yield* Effect.flip(Effect.provide(Effect.void, RecorderFile.layer(path)))
      assert.strictEqual(opened._tag, "RecorderError")
      assert.isTrue(opened.message.startsWith(`record file ${path}: `))
      assert.strictEqual((yield* Effect.flip(RecorderFile.entries(path)))._tag, "RecorderError")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("the file is closed with the layer", () =>
    Effect.gen(function* () {
      const path = yield* freshPath
      const recorder = yield* Effect.provide(Recorder.Recorder, RecorderFile.layer(path))
      const late = yield* Effect.flip(recorder.write({ ns: "a:b", data: "{}" }))
      assert.strictEqual(late._tag, "RecorderError")
      assert.strictEqual(yield* read(path), "")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("layers of two files keep apart", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* freshPath, yield* freshPath]
      const write = (path: string, pgid: number) =>
        Effect.provide(Recorder.write(group(pgid)), Layer.fresh(RecorderFile.layer(path)))
      yield* Effect.all([write(one, 1), write(two, 2)], { concurrency: "unbounded" })
      assert.deepStrictEqual([yield* data(one), yield* data(two)], [['{"pgid":1}'], ['{"pgid":2}']])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )
})
