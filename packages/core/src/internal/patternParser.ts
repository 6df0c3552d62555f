/**
 * Reads a regular expression of ECMA-262 into a tree, for `linearRegExp`.
 *
 * The platform's engine has judged the syntax before anything is read here, so this only has to find where each part
 * ends. Without Unicode mode the old leniencies hold (`\-`, a lone `{`), as they do in the schemas one meets.
 */
import * as Result from "effect/Result"

/** Groups inside groups. */
const maxDepth = 100

export type Edge = "start" | "end" | "word" | "notWord"

export type Node =
  | { readonly _tag: "Char"; readonly accepts: (char: number) => boolean }
  | { readonly _tag: "Edge"; readonly edge: Edge }
  | { readonly _tag: "Look"; readonly body: Node; readonly behind: boolean; readonly negated: boolean }
  | { readonly _tag: "Sequence"; readonly items: ReadonlyArray<Node> }
  | { readonly _tag: "Choice"; readonly items: ReadonlyArray<Node> }
  | { readonly _tag: "Repeat"; readonly body: Node; readonly min: number; readonly max: number }

export interface Pattern {
  readonly node: Node
  /** Whether the pattern is read by code point (as JSON Schema asks), or by UTF-16 unit. */
  readonly unicode: boolean
}

/** The tree of a pattern, or why it has none. */
export const parse = (pattern: string): Result.Result<Pattern, string> => {
  const unicode = Result.isSuccess(native(pattern, "u"))
  const judged = unicode ? Result.succeed(undefined) : native(pattern, "")
  return Result.flatMap(judged, () => {
    const reader = makeReader(pattern, unicode)
    const node = reader.choice(0)
    const refused = reader.refused()
    return refused === undefined ? Result.succeed({ node, unicode }) : Result.fail(refused)
  })
}

const native = (pattern: string, flags: string): Result.Result<RegExp, string> =>
  Result.try({
    try: () => new RegExp(pattern, flags),
    catch: (error) => (error instanceof Error ? error.message : String(error))
  })

const quantifier = /\{(\d+)(,(\d*))?\}/y
const group = /\((?:\?(?:(:)|(=)|(!)|(<=)|(<!)|<[^>]*>)|(?!\?))/y
const hex4 = /^[\da-fA-F]{4}$/

const makeReader = (source: string, unicode: boolean) => {
  let at = 0
  let refusal: string | undefined
  const classes = new Map<string, (char: number) => boolean>()
  const nothing: Node = { _tag: "Sequence", items: [] }

  const refuse = (reason: string): Node => {
    refusal ??= reason
    at = source.length
    return nothing
  }

  const choice = (depth: number): Node => {
    if (depth > maxDepth) return refuse(`the pattern nests more than ${maxDepth} groups`)
    const items = [sequence(depth)]
    while (source[at] === "|") {
      at++
      items.push(sequence(depth))
    }
    return items.length === 1 && items[0] !== undefined ? items[0] : { _tag: "Choice", items }
  }

  const sequence = (depth: number): Node => {
    const items: Array<Node> = []
    while (at < source.length && source[at] !== "|" && source[at] !== ")") items.push(repeated(term(depth)))
    return { _tag: "Sequence", items }
  }

  const repeated = (body: Node): Node => {
    const range = bounds()
    if (range === undefined) return body
    if (source[at] === "?") at++ // lazy or greedy is the same question here
    return { _tag: "Repeat", body, min: range[0], max: range[1] }
  }

  const bounds = (): readonly [number, number] | undefined => {
    const mark = source[at]
    if (mark === "*" || mark === "+" || mark === "?") {
      at++
      return [mark === "+" ? 1 : 0, mark === "?" ? 1 : Number.POSITIVE_INFINITY]
    }
    if (mark !== "{") return undefined
    quantifier.lastIndex = at
    const found = quantifier.exec(source)
    if (found === null) return undefined
    at += found[0].length
    const min = Number(found[1])
    if (found[2] === undefined) return [min, min]
    return [min, found[3] === "" ? Number.POSITIVE_INFINITY : Number(found[3])]
  }

  const term = (depth: number): Node => {
    const mark = source[at]
    if (mark === "^") return edge("start", 1)
    if (mark === "$") return edge("end", 1)
    if (mark === "(") return grouped(depth)
    if (mark === "[") return bracket()
    if (mark === ".") {
      at++
      return { _tag: "Char", accepts: (char) => char !== 10 && char !== 13 && char !== 0x2028 && char !== 0x2029 }
    }
    if (mark === "\\") return escaped()
    const char = unicode ? (source.codePointAt(at) ?? 0) : source.charCodeAt(at)
    at += char > 0xffff ? 2 : 1
    return { _tag: "Char", accepts: (other) => other === char }
  }

  const edge = (name: Edge, width: number): Node => {
    at += width
    return { _tag: "Edge", edge: name }
  }

  const grouped = (depth: number): Node => {
    group.lastIndex = at
    const found = group.exec(source)
    if (found === null) return refuse("the pattern has a group of an unknown kind")
    at += found[0].length
    const body = choice(depth + 1)
    at++ // the closing parenthesis: the syntax has been judged
    const [, , ahead, notAhead, behind, notBehind] = found
    return ahead || notAhead || behind || notBehind
      ? { _tag: "Look", body, behind: Boolean(behind || notBehind), negated: Boolean(notAhead || notBehind) }
      : body
  }

  const bracket = (): Node => {
    const from = at
    at++
    while (at < source.length && source[at] !== "]") at += source[at] === "\\" ? 2 : 1
    at++
    return charClass(source.slice(from, at))
  }

  const escaped = (): Node => {
    const mark = source[at + 1] ?? ""
    if (mark === "b") return edge("word", 2)
    if (mark === "B") return edge("notWord", 2)
    if ((mark >= "1" && mark <= "9") || mark === "k") return refuse("the pattern has a backreference")
    if (mark === "0" && /\d/.test(source[at + 2] ?? "")) return refuse("the pattern has an octal escape")
    if (mark === "c" && !/[a-zA-Z]/.test(source[at + 2] ?? "")) return refuse("the pattern has an incomplete escape")
    const from = at
    at += escapeWidth(mark)
    return charClass(source.slice(from, at))
  }

  const escapeWidth = (mark: string): number => {
    const rest = source.slice(at + 2, at + 12)
    if (mark === "c") return 3
    if (mark === "x") return /^[\da-fA-F]{2}/.test(rest) ? 4 : 2
    if (unicode && (mark === "p" || mark === "P")) return source.indexOf("}", at) + 1 - at
    if (mark === "u") {
      if (unicode && rest.startsWith("{")) return source.indexOf("}", at) + 1 - at
      if (!hex4.test(rest.slice(0, 4))) return 2
      // Two escapes that are one character.
      return unicode && /^[dD][89abAB]..\\u[dD][c-fC-F]/.test(rest) ? 12 : 6
    }
    return unicode && (source.codePointAt(at + 1) ?? 0) > 0xffff ? 3 : 2
  }

  /** Asks the platform about one character, and remembers its answer for ASCII. */
  const charClass = (text: string): Node => {
    let accepts = classes.get(text)
    if (accepts === undefined) {
      const single = new RegExp(`^${text}$`, unicode ? "u" : "")
      const ascii = Array.from({ length: 128 }, (_, char) => single.test(String.fromCharCode(char)))
      const toText = unicode ? String.fromCodePoint : String.fromCharCode
      accepts = (char) => ascii[char] ?? single.test(toText(char))
      classes.set(text, accepts)
    }
    return { _tag: "Char", accepts }
  }

  return { choice, refused: () => refusal }
}
