/**
 * Which regular expressions may be shown as a `pattern`: JSON Schema reads one as JavaScript does with the flag `u`.
 */
import * as Result from "effect/Result"

/** Compiles a pattern as a validator does. */
export const compile = (source: string): Result.Result<RegExp, unknown> => Result.try(() => new RegExp(source, "u"))

/**
 * Whether an expression that was written without the flag `u`, and compiles with it, accepts the same texts with it. Errs
 * on the side of no.
 *
 * Without the flag a character beyond U+FFFF is two units, so that `^..$` accepts one emoji and `^[^a]$` none. Safe is what
 * never counts such characters: a wildcard (`.`, a negated class, `\S`, `\W`, `\D`) may stand only where it repeats
 * without end, and "at least one" only where something that is not a wildcard, or the end, follows.
 */
export const meansTheSameUnicode = (source: string, flags: string): boolean => {
  // Other flags change what is matched; these two only how a match is reported.
  if (!/^[dg]*$/.test(flags) || !safeText.test(source)) return false
  const tokens = source.match(token) ?? []
  return tokens.every((text, index) => !isWildcard(text) || repeatsSafely(tokens, index))
}

// Plain characters and escapes that mean the same in both readings. Not: surrogates, `\p`, `\u{`, `\k`, `\c`, and `\B`,
// which holds between the two units of a character too.
const safeText = /^(?:[^\\\ud800-\udfff]|\\(?:u(?!\{|[dD][89a-fA-F])|[^pPkcuB]))*$/

// An escape, a class, a quantifier with braces, or one character.
const token = /\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|\[(?:\\.|[^\]\\])*\]|\{[\d,]+\}|./gis

const isWildcard = (text: string): boolean =>
  text === "." || /^\\[SWD]$/.test(text) || text.startsWith("[^") || (text.startsWith("[") && /\\[SWD]/.test(text))

const repeatsSafely = (tokens: ReadonlyArray<string>, index: number): boolean => {
  const quantifier = tokens[index + 1]
  const next = index + (tokens[index + 2] === "?" ? 3 : 2)
  return quantifier === "*" || (quantifier === "+" && isFirm(tokens, next))
}

/** Whether what stands here is the end, or one character that must be there and is not a wildcard. */
const isFirm = (tokens: ReadonlyArray<string>, index: number): boolean => {
  const here = tokens[index]
  if (here === undefined || here === "$") return true
  if (/^[.()[\]{}*+?|^]$/.test(here) || isWildcard(here) || /^\\[bB1-9]$/.test(here)) return false
  const quantifier = tokens[index + 1]
  return quantifier === undefined || !/^[*?{]/.test(quantifier)
}
