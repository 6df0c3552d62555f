/**
 * Patterns of a JSON Schema, matched in time that grows with text × pattern and never faster: the states of the pattern
 * are followed side by side instead of being tried one after the other, so that `^(a+)+$` cannot hang a server.
 *
 * ECMA-262 syntax, in Unicode mode, or without it where a pattern is only valid so. Lookarounds are supported, and their
 * outcome is kept per position. Backreferences are refused: no bound can be given for them. Only asks *whether* a text
 * matches; there are no captures. What one character class means is asked of the platform's own engine.
 */
import * as Result from "effect/Result"
import * as Parser from "./patternParser.ts"

/** States a pattern may compile to: `[a-z]{1,64}` takes 128. */
const maxStates = 20_000

/** Told of the work done, in states looked at. Throws to give up a match. */
export type Spend = (states: number) => void

/** A compiled pattern. `toString` tells two patterns apart. */
export interface LinearRegExp {
  readonly test: (text: string) => boolean
  readonly toString: () => string
}

type State =
  | { readonly _tag: "Match" }
  | { readonly _tag: "Step"; readonly accepts: (char: number) => boolean; readonly next: number }
  | { readonly _tag: "Fork"; first: number; second: number }
  | { readonly _tag: "Assert"; readonly holds: Holds; readonly next: number }

type Holds = (run: Run, position: number) => boolean

/** One test of one text: what the lookarounds said, by position. */
interface Run {
  readonly text: string
  readonly unicode: boolean
  readonly spend: Spend
  readonly seen: Map<Program, Map<number, boolean>>
}

interface Program {
  readonly states: ReadonlyArray<State>
  readonly start: number
  readonly behind: boolean
}

/**
 * Compiles a pattern, or says why it is refused.
 *
 * @param spend called with the number of states looked at, at every character
 */
export const compile = (pattern: string, spend: Spend): Result.Result<LinearRegExp, string> =>
  Result.flatMap(Parser.parse(pattern), ({ node, unicode }) => {
    const compiled = program(node, false)
    if (compiled === undefined) return Result.fail("the pattern is too large")
    return Result.succeed({
      test: (text) => matches({ text, unicode, spend, seen: new Map() }, compiled, 0, true),
      toString: () => JSON.stringify(pattern)
    })
  })

/** Lays the states out from the end to the start, so that each knows the one that follows it. */
const program = (root: Parser.Node, behind: boolean): Program | undefined => {
  const states: Array<State> = []
  let tooLarge = false
  const add = (state: State): number => {
    if (states.length >= maxStates) tooLarge = true
    else states.push(state)
    return states.length - 1
  }
  const emit = (node: Parser.Node, next: number): number => {
    if (tooLarge) return next
    switch (node._tag) {
      case "Char":
        return add({ _tag: "Step", accepts: node.accepts, next })
      case "Edge":
        return add({ _tag: "Assert", holds: edges[node.edge], next })
      case "Look": {
        const inner = program(node.body, node.behind)
        if (inner === undefined) {
          tooLarge = true
          return next
        }
        return add({ _tag: "Assert", holds: (run, position) => look(run, inner, position) !== node.negated, next })
      }
      case "Sequence":
        // A lookbehind reads its text backwards, so its last item is met first.
        return behind
          ? node.items.reduce((after, item) => emit(item, after), next)
          : node.items.reduceRight((after, item) => emit(item, after), next)
      case "Choice":
        return node.items
          .map((item) => emit(item, next))
          .reduceRight((second, first) => add({ _tag: "Fork", first, second }))
      case "Repeat":
        return repeat(node, next)
    }
  }
  const repeat = (node: Extract<Parser.Node, { readonly _tag: "Repeat" }>, next: number): number => {
    let entry = next
    if (node.max === Number.POSITIVE_INFINITY) {
      const loop: State = { _tag: "Fork", first: next, second: next }
      entry = add(loop)
      loop.first = emit(node.body, entry)
    } else {
      // `x{0,3}` as `(x(x(x)?)?)?`: a state is then reached in one way only, and long counts stay cheap to follow.
      for (let count = node.min; count < node.max && !tooLarge; count++) {
        entry = add({ _tag: "Fork", first: emit(node.body, entry), second: next })
      }
    }
    for (let count = 0; count < node.min && !tooLarge; count++) entry = emit(node.body, entry)
    return entry
  }
  const start = emit(root, add({ _tag: "Match" }))
  return tooLarge ? undefined : { states, start, behind }
}

const look = (run: Run, inner: Program, position: number): boolean => {
  let known = run.seen.get(inner)
  if (known === undefined) {
    known = new Map()
    run.seen.set(inner, known)
  }
  const before = known.get(position)
  if (before !== undefined) return before
  const found = matches(run, inner, position, false)
  known.set(position, found)
  return found
}

/** Whether the program matches from `from`; `anywhere` also lets it start at every later position. */
const matches = (run: Run, { behind, start, states }: Program, from: number, anywhere: boolean): boolean => {
  const marks = new Int32Array(states.length)
  const pending: Array<number> = []
  let generation = 0
  let current: Array<number> = []
  let following: Array<number> = []
  let found = false
  let looked = 1 + states.length / 64 // the marks are laid out anew for every run

  // Follows everything that takes no character from `entry`, each state once per position.
  const reach = (entry: number, position: number, into: Array<number>): void => {
    pending.push(entry)
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      if (marks[index] === generation) continue
      marks[index] = generation
      looked++
      const state = states[index]
      if (state === undefined) continue
      if (state._tag === "Match") found = true
      else if (state._tag === "Step") into.push(index)
      else if (state._tag === "Fork") pending.push(state.second, state.first)
      else if (state.holds(run, position)) pending.push(state.next)
    }
  }

  generation++
  reach(start, from, current)
  let position = from
  while (!found) {
    const char = charAt(run, position, behind)
    if (char === undefined || (current.length === 0 && !anywhere)) return false
    position += behind ? -widthOf(char, run.unicode) : widthOf(char, run.unicode)
    generation++
    run.spend(looked)
    looked = 1
    for (const index of current) {
      const state = states[index]
      if (state?._tag === "Step" && state.accepts(char)) reach(state.next, position, following)
      if (found) return true
    }
    if (anywhere) reach(start, position, following)
    const done = current
    current = following
    following = done
    following.length = 0
  }
  return true
}

/** The character after a position, or before it where the text is read backwards. */
const charAt = ({ text, unicode }: Run, position: number, behind: boolean): number | undefined => {
  if (!behind) {
    if (position >= text.length) return undefined
    return unicode ? text.codePointAt(position) : text.charCodeAt(position)
  }
  if (position <= 0) return undefined
  const last = text.charCodeAt(position - 1)
  if (!unicode || position < 2 || last < 0xdc00 || last > 0xdfff) return last
  const pair = text.codePointAt(position - 2) ?? last
  return pair > 0xffff ? pair : last
}

const widthOf = (char: number, unicode: boolean): number => (unicode && char > 0xffff ? 2 : 1)

const isWord = (text: string, position: number): boolean => {
  const char = text.charCodeAt(position)
  return (
    (char >= 48 && char <= 57) || (char >= 65 && char <= 90) || (char >= 97 && char <= 122) || char === 95 // 0-9 A-Z a-z _
  )
}

const atWordEdge: Holds = ({ text }, position) => isWord(text, position - 1) !== isWord(text, position)

const edges: { readonly [edge in Parser.Edge]: Holds } = {
  start: (_run, position) => position === 0,
  end: ({ text }, position) => position === text.length,
  word: atWordEdge,
  notWord: (run, position) => !atWordEdge(run, position)
}
