/**
 * Running calls, kept in the memory of this process: interprets `RunState`.
 *
 * Every run is a fiber of this layer's scope; closing it stops and awaits them all. Questions, clocks and the attachment
 * are fields of the run, not of a request. What a tool needs to ask is put together in `ServedElicitor`.
 */
import type { ToolResult } from "@agenttool/core"
import * as Elicitor from "@agenttool/core/Elicitor"
import * as Form from "@agenttool/core/Form"
import * as Progress from "@agenttool/core/Progress"
import * as Steps from "@agenttool/core/Steps"
import * as Tool from "@agenttool/core/Tool"
import * as ToolCall from "@agenttool/core/ToolCall"
import * as ToolError from "@agenttool/core/ToolError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { randomBytes } from "node:crypto"
import * as Asking from "./Asking.ts"
import * as CallJournal from "./CallJournal.ts"
import * as CallResult from "./CallResult.ts"
import * as Calls from "./Calls.ts"
import * as Capabilities from "./Capabilities.ts"
import * as ClientRequests from "./ClientRequests.ts"
import * as HostContext from "./HostContext.ts"
import * as McpSession from "./McpSession.ts"
import * as Parked from "./Parked.ts"
import * as Registry from "./Registry.ts"
import * as Repeats from "./Repeats.ts"
import * as Runs from "./Run.ts"
import * as RunJournal from "./RunJournal.ts"
import * as Running from "./Running.ts"
import * as RunState from "./RunState.ts"
import * as ServedElicitor from "./ServedElicitor.ts"
import * as Settings from "./Settings.ts"
import * as StateNames from "./StateNames.ts"
import * as StopReason from "./StopReason.ts"
import * as Telemetry from "./Telemetry.ts"
import * as Wire from "./Wire.ts"

/** Makes an effect interruptible again where it was before. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** The layer. Reads `Settings` and `StateNames` when it is built. */
export const layer: Layer.Layer<Calls.Calls, never, Registry.Registry> = Layer.effect(
  Calls.Calls,
  Effect.gen(function* () {
    const settings = yield* Settings.Settings
    const names = yield* StateNames.StateNames
    const registry = yield* Registry.Registry
    const base = yield* HostContext.capture
    const hostOf = HostContext.make(base)
    const fibers = yield* FiberSet.make<unknown, unknown>()

    const journal = yield* CallJournal.CallJournal
    const compile = yield* Form.makeCompiler({ capacity: keptForms })
    const repeats = yield* Repeats.make
    const clock = yield* Clock.Clock
    const running = Running.make(settings)
    const runs = new Map<string, Runs.Run>()
    // A run that is over in the books may still be releasing what it holds.
    const alive = new Set<Runs.Run>()
    const parked = yield* Parked.make<Runs.Run>({
      abandonMillis: Duration.toMillis(settings.abandonAfter),
      max: settings.maxParked,
      maxPerOwner: settings.maxParkedPerSession,
      due: (run) => stop(run, "Abandoned")
    })
    let calls = 0

    const fork = (effect: Effect.Effect<unknown, unknown>, context: Context.Context<never>) => {
      const fiber = Effect.runForkWith(context)(effect)
      FiberSet.addUnsafe(fibers, fiber)
      return fiber
    }

    // ----- the state machine

    const dispatch = (run: Runs.Run, event: RunState.Event): void => {
      run.events.push(event)
      if (run.busy) return
      run.busy = true
      for (let next = run.events.shift(); next !== undefined; next = run.events.shift()) {
        const [state, actions] = RunState.step(run.state, next, settings)
        run.state = state
        for (const action of actions) perform(run, action)
      }
      run.busy = false
    }

    const perform = (run: Runs.Run, action: RunState.Action): void => {
      switch (action._tag) {
        case "Gather":
          fork(Effect.andThen(Effect.yieldNow, withJournal(run, close(run))), base)
          return
        case "Park":
          parked.add(action.state, Runs.ownerOf(run.request.binding), run)
          Telemetry.change(Telemetry.parked, 1, base)
          run.parkedAt = clock.currentTimeMillisUnsafe()
          run.attachment = undefined
          leave(run)
          return
        case "Unpark":
          parked.remove(action.state)
          Telemetry.change(Telemetry.parked, -1, base)
          run.waitedMillis += clock.currentTimeMillisUnsafe() - run.parkedAt
          return
        case "Reply": {
          const waiter = run.waiter
          run.waiter = undefined
          run.attachment = undefined
          if (run.spent !== undefined) repeats.given(run.spent)
          if (waiter !== undefined) Deferred.doneUnsafe(waiter, Exit.succeed(action.turn))
          return
        }
        case "Deliver":
          settle(run, action.id, Exit.succeed(Asking.response(action.response)))
          return
        case "Cancel":
          settle(run, action.id, Exit.succeed(Asking.unasked))
          return
        case "Refuse":
          settle(run, action.id, Exit.fail(Asking.refused(action.why, settings)))
          return
        case "Interrupt":
          // What the tool does on its way out reaches nobody: its client has its answer, or wants none.
          run.attachment = undefined
          if (run.fiber === undefined) run.interrupted = action.reason
          else StopReason.interrupt(run.fiber, action.reason)
          // What waits for an answer where it cannot be interrupted is told that none will come.
          if (run.replies.size > 0) fork(Effect.andThen(Effect.yieldNow, unask(run)), base)
          return
        case "Close":
          if (runs.get(run.id) === run) runs.delete(run.id)
          // Cancelled: there is no turn, for nobody.
          if (run.waiter !== undefined) {
            if (run.spent !== undefined) repeats.forget(run.spent)
            const result = CallResult.notWaiting(run.request.tool)
            Deferred.doneUnsafe(run.waiter, Exit.succeed({ _tag: "Done", result }))
          }
          return
      }
    }

    const place = (run: Runs.Run): void => {
      running.take(Runs.ownerOf(run.request.binding))
      run.placed = true
    }

    const leave = (run: Runs.Run): void => {
      if (run.placed) running.leave(Runs.ownerOf(run.request.binding))
      run.placed = false
    }

    const settle = (run: Runs.Run, id: string, exit: Exit.Exit<Asking.Reply, Asking.Refused>): void => {
      const reply = run.replies.get(id)
      run.replies.delete(id)
      if (reply !== undefined) Deferred.doneUnsafe(reply, exit)
    }

    const unask = (run: Runs.Run) =>
      Effect.sync(() => {
        for (const id of run.replies.keys()) settle(run, id, Exit.succeed(Asking.unasked))
      })

    /** A round is closed: sent to the client, or answered from the past of a run that was taken over. */
    const close = (run: Runs.Run): Effect.Effect<void> =>
      Effect.suspend(() => {
        const { journal, request, reviving, state } = run
        if (journal === undefined || state.phase._tag !== "Attached" || state.open.length === 0) return send(run)
        const questions = state.open.map(({ question }) => question)
        const past = journal.replay(questions)
        if (past._tag === "Diverged") {
          stop(run, "Diverged")
          return Effect.void
        }
        const ids = new Set(questions.map(({ id }) => id))
        if (past._tag === "Answers") {
          const live = past.last && reviving === undefined
          const capabilities = live ? run.offered : request.capabilities
          dispatch(run, { _tag: "Replays", ids, responses: past.responses, capabilities })
          return Effect.void
        }
        if (reviving === undefined) return Effect.andThen(journal.open, send(run))
        // Nobody is to be asked what the reply that is here already answers.
        run.reviving = undefined
        const { capabilities, responses } = reviving
        return Effect.map(record(run, state.round + 1, questions, reviving), (mine) => {
          if (mine) dispatch(run, { _tag: "Replays", ids, responses, capabilities })
        })
      })

    const send = (run: Runs.Run): Effect.Effect<void> =>
      Effect.sync(() => {
        // It was given time to end; nobody will be there to go on with it.
        if (run.stopping !== undefined) return stop(run, run.stopping)
        dispatch(run, {
          _tag: "Closes",
          state: names.issue(run.id, run.state.round + 1),
          room: parked.hasRoom(Runs.ownerOf(run.request.binding))
        })
      })

    // Recorded before it is delivered. A run that has been taken over meanwhile is not ours to go on with.
    const record = (
      run: Runs.Run,
      round: number,
      questions: ReadonlyArray<Calls.InputRequest>,
      { capabilities, responses }: Calls.CallReply
    ): Effect.Effect<boolean> => {
      if (run.journal === undefined) return Effect.succeed(true)
      const answers = questions.flatMap((question): ReadonlyArray<readonly [string, Schema.Json]> => {
        const response = Object.hasOwn(responses, question.id) ? responses[question.id] : undefined
        if (response !== undefined) return [[question.id, response]]
        // What this request can no longer carry is answered so, wherever the run goes on.
        return question.method === "elicitation/create" && !Capabilities.carries(capabilities, question)
          ? [[question.id, { action: "cancel" }]]
          : []
      })
      return Effect.map(run.journal.round(round, questions, Object.fromEntries(answers)), (mine) => {
        if (!mine) stop(run, "Superseded")
        return mine
      })
    }

    const sentBy = ({ state: { open } }: Runs.Run): ReadonlyArray<Calls.InputRequest> =>
      open.filter(({ sent }) => sent).map(({ question }) => question)

    /** A run whose journal dies ends, for another process to go on with. */
    const withJournal = <A, E>(run: Runs.Run, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.onError(effect, (cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.void
          : Effect.andThen(
              Effect.logError("the journal of a call could not be written", cause),
              Effect.sync(() => stop(run, "JournalFailed"))
            )
      )

    const stop = (run: Runs.Run, reason: StopReason.StopReason): void =>
      dispatch(run, {
        _tag: "Stops",
        reason,
        result: Runs.goesOnElsewhere.has(reason)
          ? CallResult.notWaiting(run.request.tool)
          : CallResult.stopped(run.request.tool, StopReason.text(reason))
      })

    const stopForGood = (run: Runs.Run, reason: StopReason.StopReason): Effect.Effect<never> =>
      Effect.suspend(() => {
        stop(run, reason)
        // Also from where nothing else may be interrupted: what is behind this must not run.
        return Effect.interruptible(Effect.never)
      })

    // ----- what a run does

    const ask = (run: Runs.Run, asked: Asking.Asked): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.suspend(() => {
        const id = asked.key ?? `elicit_${++run.asked}`
        if (run.replies.has(id)) return Effect.fail(Asking.keyInUse(id))
        if (asked.key !== undefined && Asking.looksCounted(id)) return Effect.fail(Asking.keyLooksCounted(id))
        const early = run.early.get(id)
        run.early.delete(id)
        if (early !== undefined && asked.fits(early)) return Effect.succeed(Asking.response(early))
        const question: Calls.InputRequest = { id, method: asked.method, params: asked.params }
        const reply = Deferred.makeUnsafe<Asking.Reply, Asking.Refused>()
        run.replies.set(id, reply)
        const push = run.attachment?.ask
        if (push !== undefined && run.replies.size > settings.maxQuestions) {
          run.replies.delete(id)
          return Effect.fail(Asking.refused("questions", settings))
        }
        return Effect.ensuring(
          push === undefined ? askByTurn(run, question, reply) : askByPush(run, push(question), reply),
          Effect.sync(() => {
            if (run.replies.get(id) === reply) run.replies.delete(id)
          })
        )
      })

    const askByTurn = (
      run: Runs.Run,
      question: Calls.InputRequest,
      reply: Deferred.Deferred<Asking.Reply, Asking.Refused>
    ): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.suspend(() => {
        dispatch(run, { _tag: "Asks", question })
        return Effect.onInterrupt(Deferred.await(reply), () =>
          Effect.sync(() => dispatch(run, { _tag: "Withdraws", id: question.id }))
        )
      })

    // The request stays open while the question is out, and the question is withdrawn when this is interrupted.
    const askByPush = (
      run: Runs.Run,
      push: Effect.Effect<Schema.Json, Calls.PushFailed>,
      unasked: Deferred.Deferred<Asking.Reply, Asking.Refused>
    ): Effect.Effect<Asking.Reply, Asking.Refused> =>
      Effect.raceFirst(
        Deferred.await(unasked),
        Effect.flatMap(
          Effect.mapError(Effect.timeoutOption(push, settings.abandonAfter), ({ message }) =>
            Asking.pushFailed(message)
          ),
          Option.match({
            onSome: (response) => Effect.succeed(Asking.response(response)),
            onNone: () => stopForGood(run, "Abandoned")
          })
        ).pipe(Effect.interruptible)
      )

    const report = (run: Runs.Run, update: ToolResult.ToolResult): Effect.Effect<void> =>
      Effect.suspend(() => {
        const count = ++run.updates
        const attachment = run.attachment
        return attachment === undefined ? Effect.void : attachment.progress(CallResult.progress(update, count))
      })

    const execute = (run: Runs.Run) =>
      Tool.runCall(run.served.tool, run.call).pipe(
        Effect.onExit((exit) =>
          Effect.flatMap(resultOf(run, exit), (result) => Effect.sync(() => dispatch(run, { _tag: "Ends", result })))
        )
      )

    const resultOf = (run: Runs.Run, exit: Exit.Exit<ToolResult.ToolResult, unknown>): Effect.Effect<Schema.Json> => {
      const { tool } = run.served
      const legacy = Runs.isLegacy(run.request.protocolVersion)
      const shown = (result: CallResult.CallResult): Schema.Json =>
        CallResult.bounded(tool.name, legacy ? CallResult.forLegacy(tool, result) : result, settings.maxResultBytes)
      if (Exit.isSuccess(exit)) return Effect.sync(() => shown(CallResult.success(tool, exit.value)))
      const failure = ToolError.failureOf(tool.name, exit.cause)
      run.outcome = "error"
      if (Option.isNone(failure)) {
        const reason = Option.getOrUndefined(StopReason.of(exit.cause))
        run.outcome = reason === "Cancelled" ? "cancelled" : reason === "Abandoned" ? "abandoned" : "stopped"
        return Effect.sync(() => CallResult.stopped(tool.name, StopReason.text(reason)))
      }
      const failed = failure.value
      if (failed instanceof ToolError.ToolDefect) run.outcome = "defect"
      if (!(failed instanceof ToolError.ToolDefect) || settings.showDefects) {
        return Effect.sync(() => shown(CallResult.failure(tool, failed)))
      }
      const reference = randomBytes(4).toString("hex")
      return Effect.as(
        Effect.logError(Wire.defectText(tool.name, reference), exit.cause),
        CallResult.defect(tool.name, reference)
      )
    }

    const contextOf = (run: Runs.Run, request: Context.Context<never>): Context.Context<never> => {
      const host = hostOf(run.served.context, request).pipe(
        Context.add(ToolCall.ToolCall, run.call),
        Context.add(Progress.Progress, { update: (update) => report(run, update) })
      )
      const { capabilities } = run.request
      const asking: Asking.Ask = (asked) => ask(run, asked)
      const whole = run.journal === undefined ? host : Context.add(host, Steps.Steps, run.journal.steps)
      const able = ClientRequests.provide(whole, capabilities, asking)
      return Capabilities.offersElicitation(capabilities)
        ? Context.add(able, Elicitor.Elicitor, ServedElicitor.make({ capabilities, compile, ask: asking }))
        : able
    }

    const waitForTurn = (run: Runs.Run, waiter: Deferred.Deferred<Calls.Turn>) =>
      Effect.onInterrupt(Deferred.await(waiter), () => Effect.sync(() => dispatch(run, { _tag: "Cancels" })))

    const attach = (run: Runs.Run, attachment: Calls.Attachment): Deferred.Deferred<Calls.Turn> => {
      const waiter = Deferred.makeUnsafe<Calls.Turn>()
      run.waiter = waiter
      run.attachment = attachment
      return waiter
    }

    const matches =
      (which: Calls.Which | "all") =>
      (run: Runs.Run): boolean => {
        if (which === "all") return true
        if ("session" in which) return run.request.binding.session === which.session
        if ("registration" in which) return run.served.registration === which.registration
        return parked.get(which.state) === run
      }

    const select = (which: Calls.Which | "all"): ReadonlyArray<Runs.Run> =>
      Array.from(runs.values()).filter(matches(which))

    const awaitFibers = (selected: ReadonlyArray<Runs.Run>) =>
      Effect.forEach(selected, (run) => (run.fiber === undefined ? Effect.void : Fiber.await(run.fiber)), {
        concurrency: "unbounded",
        discard: true
      })

    const nextId = () => `mcp_${++calls}`

    /** The turn of a call that was never started. */
    const refused = (
      { context }: Registry.Served,
      request: Calls.CallRequest,
      around: Context.Context<never>,
      { id, outcome, result }: Pick<Telemetry.CallEnd, "outcome"> & { id: string; result: CallResult.CallResult }
    ): Effect.Effect<Calls.Turn> =>
      Effect.succeed<Calls.Turn>({ _tag: "Done", result }).pipe(
        Telemetry.observe(Runs.infoOf(request, id, around), () => ({ outcome, rounds: 0, waitedMillis: 0 })),
        Effect.provideContext(hostOf(context, around))
      )

    const begin = (
      served: Registry.Served,
      request: Calls.CallRequest,
      attachment: Calls.Attachment,
      around: Context.Context<never>,
      restore: Restore,
      revived?: {
        readonly id: string
        readonly past: CallJournal.Past
        readonly reply: Calls.CallReply
        readonly round: number
      }
    ): Effect.Effect<Calls.Turn> => {
      const call = ToolCall.fromValue({ id: nextId(), tool: request.tool, value: request.arguments })
      const fault = Tool.faultOf(served.tool, call)
      if (fault !== undefined) {
        running.leave(Runs.ownerOf(request.binding))
        const result = CallResult.failure(served.tool, fault)
        return refused(served, request, around, { id: call.id, outcome: "error", result })
      }
      const journaled = journal !== CallJournal.none && request.binding.session === undefined
      const id = revived?.id ?? (journaled ? randomBytes(16).toString("hex") : String(calls))
      const run: Runs.Run = {
        id,
        request,
        served,
        call,
        journal: journaled
          ? RunJournal.make(
              journal,
              id,
              request,
              revived?.past,
              Effect.suspend(() => stopForGood(run, "Superseded"))
            )
          : undefined,
        replies: new Map(),
        early: new Map(Object.entries(request.responses)),
        events: [],
        state: RunState.initial(request.capabilities),
        busy: false,
        asked: 0,
        updates: 0,
        placed: true,
        outcome: "success",
        parkedAt: 0,
        waitedMillis: 0,
        stopping: undefined,
        spent: undefined,
        reviving: revived !== undefined && revived.round > Runs.roundsOf(revived.past) ? revived.reply : undefined,
        offered: revived?.reply.capabilities ?? request.capabilities,
        attachment: undefined,
        waiter: undefined,
        fiber: undefined,
        interrupted: undefined
      }
      const waiter = attach(run, attachment)
      if (revived !== undefined) spend(run, revived.reply, waiter)
      runs.set(run.id, run)
      alive.add(run)
      // What a tool needs was in the context of its registration: `McpServer.tools` has asked for it.
      const body = execute(run) as Effect.Effect<unknown, unknown>
      const context = contextOf(run, around)
      Context.get(around, McpSession.Kept)()
      run.fiber = fork(
        body.pipe(
          Effect.onExit((exit) => (run.journal === undefined ? Effect.void : Runs.endJournal(run.journal, exit))),
          Effect.ensuring(Effect.flatten(Effect.service(McpSession.Ended))),
          Telemetry.observe(Runs.infoOf(request, call.id, around), () => ({
            outcome: run.outcome,
            rounds: run.state.round,
            waitedMillis: run.waitedMillis
          }))
        ),
        context
      )
      if (run.interrupted !== undefined) StopReason.interrupt(run.fiber, run.interrupted)
      run.fiber.addObserver(() => {
        alive.delete(run)
        leave(run)
        // Whatever goes wrong here, nobody waits for ever.
        dispatch(run, { _tag: "Ends", result: CallResult.stopped(request.tool, StopReason.text(undefined)) })
      })
      return restore(waitForTurn(run, waiter))
    }

    /** The turn that is to come is that of this reply, should it be repeated. */
    const spend = (run: Runs.Run, reply: Calls.CallReply, waiter: Deferred.Deferred<Calls.Turn>): void => {
      if (run.spent !== undefined) repeats.forget(run.spent)
      run.spent = reply.state
      repeats.keep(reply, waiter)
    }

    const notWaiting = (reply: Calls.CallReply, why: Calls.NotWaiting["why"]) =>
      Effect.fail(new Calls.NotWaiting({ tool: reply.tool, why }))

    /** No run is parked here under this state: a repeat, a run of another process, a spent state, or none of ours. */
    const elsewhere = (
      reply: Calls.CallReply,
      attachment: Calls.Attachment,
      around: Context.Context<never>,
      restore: Restore
    ): Effect.Effect<Calls.Turn, Calls.NotWaiting> => {
      const repeated = repeats.find(reply)
      if (repeated !== undefined) return restore(Deferred.await(repeated))
      const name = Option.getOrUndefined(names.read(reply.state))
      if (name === undefined) return notWaiting(reply, "unknown")
      const { round, runId } = name
      const served = registry.get(reply.tool)
      if (runId === undefined || round === undefined || served === undefined) return notWaiting(reply, "spent")
      // Nothing is replayed while the run is here.
      if (runs.has(runId)) return notWaiting(reply, "spent")
      return Effect.flatMap(
        journal.claim(runId, round, reply.tool, reply.binding),
        Option.match({
          onNone: () => notWaiting(reply, "spent"),
          onSome: (past) => {
            const call = ToolCall.fromValue({ id: "", tool: reply.tool, value: past.request.arguments })
            if (Tool.faultOf(served.tool, call) !== undefined) {
              return Effect.andThen(journal.close(runId, past.epoch), notWaiting(reply, "diverged"))
            }
            running.take(Runs.ownerOf(past.request.binding))
            return begin(served, past.request, attachment, around, restore, { id: runId, past, reply, round })
          }
        })
      )
    }

    const service: Calls.Calls["Service"] = {
      start: (request, attachment) =>
        Effect.withFiber((fiber) => {
          const served = registry.get(request.tool)
          if (served === undefined) return Effect.fail(new Calls.UnknownTool({ tool: request.tool }))
          // A place that was taken is given back by the run that it was taken for.
          return Effect.uninterruptibleMask((restore) =>
            Effect.flatMap(running.enter(Runs.ownerOf(request.binding)), (entered) =>
              entered
                ? begin(served, request, attachment, fiber.context, restore)
                : refused(served, request, fiber.context, {
                    id: nextId(),
                    outcome: "busy",
                    result: CallResult.busy(request.tool)
                  })
            )
          )
        }),
      resume: (reply, attachment) =>
        Effect.withFiber((fiber) =>
          Effect.uninterruptibleMask((restore) => {
            const run = parked.get(reply.state)
            if (run === undefined) return elsewhere(reply, attachment, fiber.context, restore)
            if (run.request.tool !== reply.tool || !Runs.sameBinding(run.request.binding, reply.binding)) {
              return notWaiting(reply, "foreign")
            }
            // Spend, record, deliver: in this order, and not to be interrupted between.
            parked.remove(reply.state)
            const recorded =
              run.state.phase._tag === "Parked"
                ? withJournal(run, record(run, run.state.round, sentBy(run), reply))
                : Effect.void
            return Effect.flatMap(recorded, () => {
              if (!Runs.isWaiting(run, reply.state)) return notWaiting(reply, "spent")
              const waiter = attach(run, attachment)
              spend(run, reply, waiter)
              if (run.state.phase._tag === "Parked") place(run)
              dispatch(run, { _tag: "Returns", responses: reply.responses, capabilities: reply.capabilities })
              return restore(waitForTurn(run, waiter))
            })
          })
        ),
      interrupt: (which, reason) =>
        Effect.sync(() => {
          const selected = select(which)
          for (const run of selected) stop(run, reason)
          return selected.length
        }),
      drain: Effect.fnUntraced(function* (which, reason, grace) {
        const selected = Array.from(new Set([...runs.values(), ...alive])).filter(matches(which))
        for (const run of selected) {
          run.stopping = reason
          if (run.state.phase._tag !== "Attached") stop(run, reason)
        }
        yield* Effect.timeoutOption(awaitFibers(selected), grace)
        for (const run of selected) stop(run, reason)
        yield* awaitFibers(selected)
      }),
      count: Effect.map(FiberSet.size(fibers), (live) => ({
        ...Runs.countOf(Array.from(runs.values())),
        fibers: live
      })),
      countOf: (which) => Effect.sync(() => Runs.countOf(select(which)))
    }

    // Added after the fibers, so run before they are interrupted: each then ends for a reason.
    yield* Effect.addFinalizer(() => service.drain("all", "ServerClosed", 0))
    return service
  })
)

// Forms that are kept compiled: a tool that writes its form where it asks makes a new one in every call.
const keptForms = 256
