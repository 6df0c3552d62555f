import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type * as Calls from "@agenttool/server/Calls"
import * as RunState from "@agenttool/server/RunState"

const offers = { elicitation: {} }
const limits: RunState.Limits = { maxRequests: 10, maxQuestions: 100 }
const question = (id: string): Calls.InputRequest => ({
  id,
  method: "elicitation/create",
  params: { mode: "form", message: id }
})
const accept: Schema.Json = { action: "accept", content: {} }
const result: Schema.Json = { content: [] }
const stoppedResult: Schema.Json = { content: [], isError: true }

// ----- steps, from the beginning

/** The state after these events, and the actions of the last one. */
const after = (...events: ReadonlyArray<RunState.Event>): RunState.Step =>
  events.reduce<RunState.Step>(([state], event) => RunState.step(state, event, limits), [RunState.initial(offers), []])

const asks = (id: string): RunState.Event => ({ _tag: "Asks", question: question(id) })
const closes = (state: string, room = true): RunState.Event => ({ _tag: "Closes", state, room })
const returns = (...answered: ReadonlyArray<string>): RunState.Event => ({
  _tag: "Returns",
  responses: Object.fromEntries(answered.map((id) => [id, accept])),
  capabilities: offers
})
const ends: RunState.Event = { _tag: "Ends", result }
const cancels: RunState.Event = { _tag: "Cancels" }
const stops: RunState.Event = { _tag: "Stops", reason: "SessionEnded", result: stoppedResult }
const withdraws = (id: string): RunState.Event => ({ _tag: "Withdraws", id })

const parked = [asks("a"), closes("s1")]
const finished = [...parked, ends]

const phaseOf = ([{ phase }]: RunState.Step) => phase._tag
const actionsOf = ([, actions]: RunState.Step) => actions

describe("RunState", () => {
  it("M52: a call starts attached, with its first request counted", () => {
    const [state] = after()
    assert.deepStrictEqual([state.phase._tag, state.requests, state.round], ["Attached", 1, 0])
  })

  it("M52: a tool that returns answers the request", () => {
    const step = after(ends)
    assert.strictEqual(phaseOf(step), "Collected")
    assert.deepStrictEqual(actionsOf(step), [{ _tag: "Reply", turn: { _tag: "Done", result } }, { _tag: "Close" }])
  })

  it("M52, M53: questions asked together are gathered, and go out in one round that parks the call", () => {
    assert.deepStrictEqual(actionsOf(after(asks("a"))), [{ _tag: "Gather" }])
    assert.deepStrictEqual(actionsOf(after(asks("a"), asks("b"))), [])
    const step = after(asks("a"), asks("b"), closes("s1"))
    assert.deepStrictEqual(step[0].phase, { _tag: "Parked", state: "s1" })
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Park", state: "s1" },
      { _tag: "Reply", turn: { _tag: "Asked", state: "s1", questions: [question("a"), question("b")] } }
    ])
  })

  it("M53: a question that was withdrawn before its round is closed is not sent, and a round of none is not closed", () => {
    const [, [, reply]] = after(asks("a"), asks("b"), withdraws("a"), closes("s1"))
    assert.deepStrictEqual(reply, {
      _tag: "Reply",
      turn: { _tag: "Asked", state: "s1", questions: [question("b")] }
    })
    const none = after(asks("a"), withdraws("a"), closes("s1"))
    assert.deepStrictEqual([phaseOf(none), actionsOf(none)], ["Attached", []])
    // What is asked then is gathered anew.
    assert.deepStrictEqual(actionsOf(after(asks("a"), withdraws("a"), closes("s1"), asks("b"))), [{ _tag: "Gather" }])
  })

  it("M57: on the last request asking fails, and the call stays attached", () => {
    let events: ReadonlyArray<RunState.Event> = []
    for (let request = 1; request < 10; request++) {
      events = [...events, asks(`q${request}`), closes(`s${request}`), returns(`q${request}`)]
    }
    const step = after(...events, asks("last"))
    assert.deepStrictEqual([step[0].requests, phaseOf(step)], [10, "Attached"])
    assert.deepStrictEqual(actionsOf(step), [{ _tag: "Refuse", id: "last", why: "requests" }])
  })

  it("M62: without room asking fails, for all questions of the round", () => {
    const step = after(asks("a"), asks("b"), closes("s1", false))
    assert.strictEqual(phaseOf(step), "Attached")
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Refuse", id: "a", why: "parked" },
      { _tag: "Refuse", id: "b", why: "parked" }
    ])
  })

  it("M50: a question that the client cannot be asked is answered cancel, without a round", () => {
    const [state, actions] = RunState.step(RunState.initial({}), asks("a"), limits)
    assert.deepStrictEqual([state.phase._tag, actions], ["Attached", [{ _tag: "Cancel", id: "a" }]])
  })

  it("M28, M52: a cancelled request interrupts the tool; one that was answered already changes nothing", () => {
    const step = after(cancels)
    assert.deepStrictEqual(
      [phaseOf(step), actionsOf(step)],
      ["Stopped", [{ _tag: "Interrupt", reason: "Cancelled" }, { _tag: "Close" }]]
    )
    const late = after(...parked, cancels)
    assert.deepStrictEqual([phaseOf(late), actionsOf(late)], ["Parked", []])
  })

  it("M28, M52: what stops an attached call answers its request in words", () => {
    const step = after(stops)
    assert.strictEqual(phaseOf(step), "Stopped")
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Interrupt", reason: "SessionEnded" },
      { _tag: "Reply", turn: { _tag: "Done", result: stoppedResult } },
      { _tag: "Close" }
    ])
  })

  it("M52, M58: a client that comes back spends the state, gives its answers, and is attached", () => {
    const step = after(...parked, returns("a", "unasked"))
    assert.deepStrictEqual([phaseOf(step), step[0].requests], ["Attached", 2])
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Unpark", state: "s1" },
      { _tag: "Deliver", id: "a", response: accept }
    ])
  })

  it("M51: an answer that is left out is asked for again, under its id", () => {
    const step = after(asks("a"), asks("b"), closes("s1"), returns("b"))
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Unpark", state: "s1" },
      { _tag: "Deliver", id: "b", response: accept },
      { _tag: "Gather" }
    ])
    const [state] = after(asks("a"), asks("b"), closes("s1"), returns("b"), closes("s2"))
    assert.deepStrictEqual(state.open, [{ question: question("a"), sent: true }])
  })

  it("M51, M57: on the last request an answer that is left out is cancel, and what was asked meanwhile is refused", () => {
    let events: ReadonlyArray<RunState.Event> = []
    for (let request = 1; request < 9; request++) {
      events = [...events, asks(`q${request}`), closes(`s${request}`), returns(`q${request}`)]
    }
    const step = after(...events, asks("q9"), closes("s9"), asks("meanwhile"), returns())
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Unpark", state: "s9" },
      { _tag: "Cancel", id: "q9" },
      { _tag: "Refuse", id: "meanwhile", why: "requests" }
    ])
  })

  it("M46: a client that comes back without what it offered gets no round: the question is answered cancel", () => {
    const back: RunState.Event = { _tag: "Returns", responses: {}, capabilities: {} }
    assert.deepStrictEqual(actionsOf(after(...parked, back)), [
      { _tag: "Unpark", state: "s1" },
      { _tag: "Cancel", id: "a" }
    ])
  })

  it("M52: what stops a parked call frees its state and interrupts the tool", () => {
    const step = after(...parked, stops)
    assert.strictEqual(phaseOf(step), "Stopped")
    assert.deepStrictEqual(
      actionsOf(step).filter(({ _tag }) => _tag !== "Cancel"),
      [{ _tag: "Unpark", state: "s1" }, { _tag: "Interrupt", reason: "SessionEnded" }, { _tag: "Close" }]
    )
  })

  it("M52: what a parked tool asks from another fiber waits for the next request, then joins a round", () => {
    assert.deepStrictEqual(actionsOf(after(...parked, asks("b"))), [])
    const back = after(...parked, asks("b"), returns("a"))
    assert.deepStrictEqual(actionsOf(back), [
      { _tag: "Unpark", state: "s1" },
      { _tag: "Deliver", id: "a", response: accept },
      { _tag: "Gather" }
    ])
    const [, [, reply]] = after(...parked, asks("b"), returns("a"), closes("s2"))
    assert.deepStrictEqual(reply, { _tag: "Reply", turn: { _tag: "Asked", state: "s2", questions: [question("b")] } })
  })

  it("M52: a parked tool that ends keeps its result for the client, whatever that answers", () => {
    const kept = after(...finished)
    assert.deepStrictEqual(kept[0].phase, { _tag: "Finished", state: "s1", result })
    const step = after(...finished, returns("a"))
    assert.strictEqual(phaseOf(step), "Collected")
    assert.deepStrictEqual(actionsOf(step), [
      { _tag: "Unpark", state: "s1" },
      { _tag: "Reply", turn: { _tag: "Done", result } },
      { _tag: "Close" }
    ])
  })

  it("M52: a result that nobody fetches is dropped", () => {
    const step = after(...finished, stops)
    assert.deepStrictEqual(
      [phaseOf(step), actionsOf(step)],
      ["Stopped", [{ _tag: "Unpark", state: "s1" }, { _tag: "Close" }]]
    )
  })

  it("M52: nothing brings a call back that is over", () => {
    for (const over of [[ends], [cancels], [...parked, stops]]) {
      const [before] = after(...over)
      for (const event of [ends, cancels, stops, returns("a"), closes("s9"), withdraws("a")]) {
        const [state, actions] = RunState.step(before, event, limits)
        assert.deepStrictEqual([state.phase, actions], [before.phase, []])
      }
      assert.deepStrictEqual(actionsOf(after(...over, asks("late"))), [{ _tag: "Cancel", id: "late" }])
    }
  })

  it("M52: whoever still waits for an answer when the call is over gets cancel, so that no fiber waits for ever", () => {
    for (const over of [ends, cancels, stops]) {
      for (const before of [
        [asks("a"), asks("b")],
        [asks("a"), closes("s1"), asks("b")]
      ]) {
        if (over === cancels && before.length === 3) continue // no request waits
        const cancelled = actionsOf(after(...before, over)).filter(({ _tag }) => _tag === "Cancel")
        assert.deepStrictEqual(cancelled, [
          { _tag: "Cancel", id: "a" },
          { _tag: "Cancel", id: "b" }
        ])
      }
    }
  })

  it("M51: too many questions at once are refused", () => {
    const [, actions] = RunState.step(after(asks("a"), asks("b"))[0], asks("c"), { ...limits, maxQuestions: 2 })
    assert.deepStrictEqual(actions, [{ _tag: "Refuse", id: "c", why: "questions" }])
  })
})

// ----- every order of events

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Play = Schema.Struct({
  maxRequests: Schema.Literals([-1, 1, 2, 3, 10]),
  events: Schema.Array(
    Schema.Struct({
      what: Schema.Literals(["ask", "ask", "close", "close", "answer", "answer", "withdraw", "cancel", "stop", "end"]),
      /** Which question, and which of them are answered. */
      pick: between(0, 7),
      able: Schema.Literals([true, true, true, true, false])
    })
  ).check(Schema.isMaxLength(40))
})

/** Carries actions out as `CallsMemory` does, and holds what must hold at every step. */
const play = ({ events, maxRequests }: typeof Play.Type) => {
  const bounds: RunState.Limits = { maxRequests, maxQuestions: 5 }
  let state = RunState.initial(offers)
  let waiting = true
  let gathers = 0
  let closed = false
  let interrupted = false
  let states = 0
  let asked = 0
  const filed = new Set<string>()
  const open = new Set<string>()
  const settled: Array<string> = []

  const feed = (event: RunState.Event): void => {
    const [next, actions] = RunState.step(state, event, bounds)
    state = next
    for (const action of actions) {
      if (closed) assert.strictEqual(action._tag, "Cancel", "after the run is over nothing but late questions happens")
      switch (action._tag) {
        case "Gather":
          gathers++
          break
        case "Park":
          assert.isFalse(filed.has(action.state), "a state is used once")
          assert.strictEqual(filed.size, 0, "a run is parked once at a time")
          filed.add(action.state)
          break
        case "Unpark":
          assert.isTrue(filed.delete(action.state), "what is freed was filed")
          break
        case "Reply":
          assert.isTrue(waiting, "a request that waits is answered, once")
          waiting = false
          if (action.turn._tag === "Asked") {
            assert.isNotEmpty(action.turn.questions)
            assert.isTrue(filed.has(action.turn.state), "a round goes out under a state that is filed")
            assert.isTrue(maxRequests < 0 || state.requests < maxRequests, "there is a request left for the answers")
            for (const { id } of action.turn.questions) assert.isTrue(open.has(id), "only open questions are sent")
          }
          break
        case "Deliver":
        case "Cancel":
        case "Refuse":
          assert.isTrue(open.delete(action.id), `the question ${action.id} is settled once, and was not withdrawn`)
          settled.push(action.id)
          break
        case "Interrupt":
          assert.isFalse(interrupted)
          interrupted = true
          break
        case "Close":
          closed = true
          break
      }
    }
    const { phase } = state
    assert.strictEqual(filed.size, phase._tag === "Parked" || phase._tag === "Finished" ? 1 : 0)
    assert.strictEqual(waiting, phase._tag === "Attached" || (phase._tag === "Stopped" && waiting))
    for (const { question } of state.open) assert.isTrue(open.has(question.id))
  }

  for (const { able, pick, what } of events) {
    switch (what) {
      case "ask": {
        const id = `q${++asked}`
        open.add(id)
        feed({ _tag: "Asks", question: question(id) })
        break
      }
      case "close":
        if (gathers === 0) break
        gathers--
        feed({ _tag: "Closes", state: `s${++states}`, room: able })
        break
      case "answer": {
        // A request that names a state which is filed: the others never come this far.
        if (filed.size === 0) break
        assert.isFalse(waiting, "one request at most holds the run")
        waiting = true
        const ids = Array.from({ length: 3 }, (_, i) => `q${(pick + i) % (asked + 2)}`)
        const all = pick % 2 === 0 ? [...open, ...ids] : ids
        feed({
          _tag: "Returns",
          responses: Object.fromEntries(all.map((id) => [id, accept])),
          capabilities: able ? offers : {}
        })
        break
      }
      case "withdraw": {
        const id = [...open][pick]
        if (id === undefined) break
        open.delete(id)
        feed({ _tag: "Withdraws", id })
        break
      }
      case "cancel":
        // Only a request that waits can be cancelled; the runtime no longer waits then.
        if (!waiting) break
        feed(cancels)
        waiting = false
        break
      case "stop":
        feed(stops)
        break
      case "end":
        if (!interrupted) feed(ends)
        break
    }
  }
  feed({ _tag: "Stops", reason: "ServerClosed", result: stoppedResult })
  assert.isFalse(waiting, "no request is left without an answer")
  assert.isTrue(closed)
  assert.strictEqual(filed.size, 0, "nothing is left parked")
  assert.deepStrictEqual([...open], [], "every question was settled or withdrawn")
  assert.strictEqual(new Set(settled).size, settled.length)
}

describe("RunState, in any order", () => {
  it.prop(
    "M52-M59: whatever happens in whatever order, each request gets one turn and each question one answer",
    { drawn: Play },
    ({ drawn }) => play(drawn),
    { timeout: 60_000, arbitrary: { runs: 20_000 } }
  )
})
