/**
 * The life of one run as a state machine: states and events to actions, pure. `CallsMemory` interprets the actions.
 *
 * A run is one execution of a tool that may outlive the request that started it. At most one request waits on it at any
 * time. Actions are carried out in order, after the new state has been put in place: answering a question may run the
 * tool on at once, and what it then asks is an event like any other.
 */
import type * as Schema from "effect/Schema"
import type * as Calls from "./Calls.ts"
import * as Capabilities from "./Capabilities.ts"
import type * as StopReason from "./StopReason.ts"

/**
 * - `Attached`: a request waits on the running tool.
 * - `Parked`: the questions of a round are with the client.
 * - `Finished`: the tool ended by itself while parked; the result waits to be collected.
 * - `Collected`: the result went back. - `Stopped`: interrupted; there will be no result.
 */
export type Phase =
  | { readonly _tag: "Attached" }
  | { readonly _tag: "Parked"; readonly state: string }
  | { readonly _tag: "Finished"; readonly state: string; readonly result: Schema.Json }
  | { readonly _tag: "Collected" }
  | { readonly _tag: "Stopped" }

/** A question without an answer; `sent` if it is part of the round that is with the client. */
export interface Open {
  readonly question: Calls.InputRequest
  readonly sent: boolean
}

/**
 * - `requests`: how many the client has made of this call.
 * - `round`: how many rounds have been sent.
 * - `gathering`: a round is about to be closed.
 * - `capabilities`: those of the waiting request, or of the last one.
 */
export interface RunState {
  readonly phase: Phase
  readonly requests: number
  readonly round: number
  readonly open: ReadonlyArray<Open>
  readonly gathering: boolean
  readonly capabilities: Schema.Json
}

/** As in `Settings`; a negative `maxRequests` is no limit. */
export interface Limits {
  readonly maxRequests: number
  readonly maxQuestions: number
}

export type Event =
  /** The tool asks. */
  | { readonly _tag: "Asks"; readonly question: Calls.InputRequest }
  /** Whoever asked no longer waits. */
  | { readonly _tag: "Withdraws"; readonly id: string }
  /** The round is closed; it goes out under this state, or its questions fail if there is no room to park. */
  | { readonly _tag: "Closes"; readonly state: string; readonly room: boolean }
  /** A round that was answered before is not sent again: these questions of it get their answers at once. */
  | {
      readonly _tag: "Replays"
      readonly ids: ReadonlySet<string>
      readonly responses: Readonly<Record<string, Schema.Json>>
      readonly capabilities: Schema.Json
    }
  /** The tool has ended, with a result as MCP has it. */
  | { readonly _tag: "Ends"; readonly result: Schema.Json }
  /** The client is back with answers. */
  | {
      readonly _tag: "Returns"
      readonly responses: Readonly<Record<string, Schema.Json>>
      readonly capabilities: Schema.Json
    }
  /** The waiting request was cancelled. */
  | { readonly _tag: "Cancels" }
  /** Something other than the client stops the run; the result is for a request that waits. */
  | { readonly _tag: "Stops"; readonly reason: StopReason.StopReason; readonly result: Schema.Json }

export type Action =
  /** Let the fibers that ask together get their questions in, then close the round. */
  | { readonly _tag: "Gather" }
  /** File the run under its state, and start the clock. */
  | { readonly _tag: "Park"; readonly state: string }
  /** The state is spent: stop the clock. */
  | { readonly _tag: "Unpark"; readonly state: string }
  /** Answer the waiting request. */
  | { readonly _tag: "Reply"; readonly turn: Calls.Turn }
  /** Hand a response of the client to whoever asked. */
  | { readonly _tag: "Deliver"; readonly id: string; readonly response: Schema.Json }
  /** Nobody can be asked any more: the question is answered `cancel`. */
  | { readonly _tag: "Cancel"; readonly id: string }
  /** Asking fails: one request too many, no room to park, or too many questions at once. */
  | { readonly _tag: "Refuse"; readonly id: string; readonly why: "requests" | "parked" | "questions" }
  /** Interrupt the tool. */
  | { readonly _tag: "Interrupt"; readonly reason: StopReason.StopReason }
  /** The run is over: forget it. */
  | { readonly _tag: "Close" }

export type Step = readonly [state: RunState, actions: ReadonlyArray<Action>]

/** A run whose first request waits. */
export const initial = (capabilities: Schema.Json): RunState => ({
  phase: { _tag: "Attached" },
  requests: 1,
  round: 0,
  open: [],
  gathering: false,
  capabilities
})

const stay = (state: RunState): Step => [state, []]

const isLast = (state: RunState, limits: Limits): boolean =>
  limits.maxRequests > 0 && state.requests >= limits.maxRequests

/** One event. */
export const step = (state: RunState, event: Event, limits: Limits): Step => {
  switch (event._tag) {
    case "Asks":
      return asks(state, event.question, limits)
    case "Withdraws":
      return stay({ ...state, open: state.open.filter(({ question }) => question.id !== event.id) })
    case "Closes":
      return closes(state, event)
    case "Replays":
      return replays(state, event, limits)
    case "Ends":
      return ends(state, event.result)
    case "Returns":
      return returns(state, event, limits)
    case "Cancels":
      return state.phase._tag === "Attached"
        ? [stopped(state), [{ _tag: "Interrupt", reason: "Cancelled" }, ...unanswered(state), { _tag: "Close" }]]
        : stay(state)
    case "Stops":
      return stops(state, event)
  }
}

const stopped = (state: RunState): RunState => ({ ...state, phase: { _tag: "Stopped" }, open: [], gathering: false })

// A fiber that waits on, because it was detached or is not to be interrupted, is not to wait for ever.
const unanswered = ({ open }: RunState): ReadonlyArray<Action> =>
  open.map(({ question }) => ({ _tag: "Cancel", id: question.id }))

const asks = (state: RunState, question: Calls.InputRequest, limits: Limits): Step => {
  if (state.open.length >= limits.maxQuestions) return [state, [{ _tag: "Refuse", id: question.id, why: "questions" }]]
  const asked: RunState = { ...state, open: [...state.open, { question, sent: false }] }
  switch (state.phase._tag) {
    case "Attached":
      if (!Capabilities.carries(state.capabilities, question)) return [state, [{ _tag: "Cancel", id: question.id }]]
      if (isLast(state, limits)) return [state, [{ _tag: "Refuse", id: question.id, why: "requests" }]]
      return state.gathering ? stay(asked) : [{ ...asked, gathering: true }, [{ _tag: "Gather" }]]
    case "Parked":
      return stay(asked)
    default:
      // A fiber that outlived its tool asks: there is nobody to ask for it.
      return [state, [{ _tag: "Cancel", id: question.id }]]
  }
}

const closes = (state: RunState, event: { readonly state: string; readonly room: boolean }): Step => {
  const closed: RunState = { ...state, gathering: false }
  if (state.phase._tag !== "Attached" || !state.gathering || state.open.length === 0) return stay(closed)
  if (!event.room) {
    return [
      { ...closed, open: [] },
      state.open.map(({ question }) => ({ _tag: "Refuse", id: question.id, why: "parked" }))
    ]
  }
  return [
    {
      ...closed,
      phase: { _tag: "Parked", state: event.state },
      round: state.round + 1,
      open: state.open.map(({ question }) => ({ question, sent: true }))
    },
    [
      { _tag: "Park", state: event.state },
      {
        _tag: "Reply",
        turn: { _tag: "Asked", state: event.state, questions: state.open.map(({ question }) => question) }
      }
    ]
  ]
}

const replays = (
  state: RunState,
  event: {
    readonly ids: ReadonlySet<string>
    readonly responses: Readonly<Record<string, Schema.Json>>
    readonly capabilities: Schema.Json
  },
  limits: Limits
): Step => {
  if (state.phase._tag !== "Attached" || !state.gathering) return stay(state)
  const sent: RunState = {
    ...state,
    phase: { _tag: "Parked", state: "" },
    round: state.round + 1,
    open: state.open.map(({ question }) => ({ question, sent: event.ids.has(question.id) }))
  }
  // As if the round had been with the client, save that nobody was parked.
  const [next, actions] = returns(sent, event, limits)
  return [next, actions.filter(({ _tag }) => _tag !== "Unpark")]
}

const ends = (state: RunState, result: Schema.Json): Step => {
  switch (state.phase._tag) {
    case "Attached":
      return [
        { ...state, phase: { _tag: "Collected" }, open: [], gathering: false },
        [{ _tag: "Reply", turn: { _tag: "Done", result } }, ...unanswered(state), { _tag: "Close" }]
      ]
    case "Parked":
      return [{ ...state, phase: { _tag: "Finished", state: state.phase.state, result }, open: [] }, unanswered(state)]
    default:
      return stay(state)
  }
}

const returns = (
  state: RunState,
  event: { readonly responses: Readonly<Record<string, Schema.Json>>; readonly capabilities: Schema.Json },
  limits: Limits
): Step => {
  if (state.phase._tag === "Finished") {
    return [
      { ...state, phase: { _tag: "Collected" }, requests: state.requests + 1, open: [] },
      [
        { _tag: "Unpark", state: state.phase.state },
        { _tag: "Reply", turn: { _tag: "Done", result: state.phase.result } },
        { _tag: "Close" }
      ]
    ]
  }
  if (state.phase._tag !== "Parked") return stay(state)
  const back: RunState = {
    ...state,
    phase: { _tag: "Attached" },
    requests: state.requests + 1,
    capabilities: event.capabilities
  }
  const last = isLast(back, limits)
  const open: Array<Open> = []
  const answers: Array<Action> = []
  for (const { question, sent } of state.open) {
    const response = Object.hasOwn(event.responses, question.id) ? event.responses[question.id] : undefined
    if (sent && response !== undefined) answers.push({ _tag: "Deliver", id: question.id, response })
    else if (!Capabilities.carries(event.capabilities, question)) answers.push({ _tag: "Cancel", id: question.id })
    else if (!last) open.push({ question, sent: false })
    else if (sent) answers.push({ _tag: "Cancel", id: question.id })
    else answers.push({ _tag: "Refuse", id: question.id, why: "requests" })
  }
  const gathering = open.length > 0
  return [
    { ...back, open, gathering },
    [{ _tag: "Unpark", state: state.phase.state }, ...answers, ...(gathering ? [{ _tag: "Gather" } as const] : [])]
  ]
}

const stops = (
  state: RunState,
  event: { readonly reason: StopReason.StopReason; readonly result: Schema.Json }
): Step => {
  const { reason } = event
  switch (state.phase._tag) {
    case "Attached":
      return [
        stopped(state),
        [
          { _tag: "Interrupt", reason },
          { _tag: "Reply", turn: { _tag: "Done", result: event.result } },
          ...unanswered(state),
          { _tag: "Close" }
        ]
      ]
    case "Parked":
      return [
        stopped(state),
        [
          { _tag: "Unpark", state: state.phase.state },
          { _tag: "Interrupt", reason },
          ...unanswered(state),
          { _tag: "Close" }
        ]
      ]
    case "Finished":
      return [stopped(state), [{ _tag: "Unpark", state: state.phase.state }, { _tag: "Close" }]]
    default:
      return stay(state)
  }
}
