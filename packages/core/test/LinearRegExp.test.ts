import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import * as LinearRegExp from "../src/internal/linearRegExp.ts"

const free = () => undefined

const compiled = (pattern: string, spend: (states: number) => void = free): LinearRegExp.LinearRegExp =>
  Result.getOrThrowWith(LinearRegExp.compile(pattern, spend), (reason) => new Error(`${pattern}: ${reason}`))

const refusal = (pattern: string): string | undefined =>
  Result.match(LinearRegExp.compile(pattern, free), { onSuccess: () => undefined, onFailure: (reason) => reason })

/** What the platform's own engine says, read as `linearRegExp` reads a pattern. */
const native = (pattern: string): RegExp =>
  Result.getOrElse(
    Result.try(() => new RegExp(pattern, "u")),
    () => new RegExp(pattern)
  )

// Patterns are put together from parts that are each complete, so that nearly every combination is one.
const atoms = [
  ...[
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    "\\d",
    "\\w",
    "\\W",
    "\\s",
    "-",
    "\\.",
    "😀",
    "[😀a]",
    "\\u{1F600}",
    "\\uD83D\\uDE00"
  ],
  ...["\\p{L}", "\\x61", "()", "(a|b)", "(?:ab|a)", "(?:(a*)*)", "(?:(a|ab)+?)", "(?:(?:a?){3})"],
  ...["^", "$", "\\b", "\\B", "(?=a)", "(?!ab)", "(?<=a)", "(?<!ba|😀)", "(?<=^a*)", "(?=(?!b).$)"]
] as const
const quantifiers = ["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{0,2}", "{1,}", "{0}"] as const
const isAssertion = (atom: string): boolean => /^(\^|\$|\\b|\\B|\(\?(=|!|<=|<!))/i.test(atom)

const Term = Schema.Struct({ atom: Schema.Literals(atoms), quantifier: Schema.Literals(quantifiers) })
const Branches = Schema.Array(Schema.Array(Term).check(Schema.isMaxLength(4))).check(Schema.isMaxLength(3))
const text = Schema.Array(Schema.Literals(["a", "b", "1", " ", "-", ".", "é", "\n", "😀", "\ud83d", "\ude00"])).check(
  Schema.isMaxLength(7)
)

describe("linearRegExp", () => {
  it.prop(
    "a pattern matches what it matches in the platform's own engine",
    { branches: Arbitrary.schema(Branches), texts: Arbitrary.schema(Schema.Array(text).check(Schema.isMinLength(4))) },
    ({ branches, texts }) => {
      const pattern = branches
        .map((terms) =>
          terms.map(({ atom, quantifier }) => (isAssertion(atom) ? atom : `${atom}${quantifier}`)).join("")
        )
        .join("|")
      const ours = compiled(pattern)
      const theirs = native(pattern)
      for (const parts of texts) {
        const value = parts.join("")
        assert.strictEqual(ours.test(value), theirs.test(value), `${pattern} on ${JSON.stringify(value)}`)
      }
    },
    { arbitrary: { runs: 1500 } }
  )

  it("patterns that are only valid without Unicode mode are read as they always were", () => {
    for (const pattern of ["^[\\w-.]+\\-$", "^a{,2}$", "^{$", "^\\_\\!$", "]", "^..$", "\\u{2}", "^\\x1$", "(?=a)*b"]) {
      const theirs = native(pattern)
      assert.strictEqual(theirs.flags, pattern === "^..$" || pattern === "\\u{2}" ? "u" : "", pattern)
      for (const value of ["", "a", "aa", "a.b-", "{", "_!", "a{,2}", "]", "😀", "x1", "\u0002", "b", "uu"]) {
        assert.strictEqual(compiled(pattern).test(value), theirs.test(value), `${pattern} on ${value}`)
      }
    }
  })

  it("real patterns with loops inside loops are served", () => {
    const semver =
      "^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$"
    assert.isTrue(compiled(semver).test("1.20.3-rc.1"))
    assert.isFalse(compiled(semver).test("1.20"))
    assert.isTrue(compiled("^(?<year>\\d{4})-(?<month>\\d\\d)$").test("2026-12"))
    const password = "^(?=.*[A-Z])(?=.*\\d).{8,64}$"
    assert.isTrue(compiled(password).test("Passw0rd"))
    assert.isFalse(compiled(password).test("password"))
  })

  it("what has no bound is refused, with the reason", () => {
    assert.strictEqual(refusal("(a)\\1"), "the pattern has a backreference")
    assert.strictEqual(refusal("(?<n>a)\\k<n>"), "the pattern has a backreference")
    assert.strictEqual(refusal("(?:a{1000}){1000}"), "the pattern is too large")
    assert.strictEqual(refusal("(?:(?:(?:a{999}){999}){999}){999}"), "the pattern is too large")
    assert.strictEqual(refusal(`${"(".repeat(500)}${")".repeat(500)}`), "the pattern nests more than 100 groups")
    assert.include(refusal("("), "Unterminated group")
    assert.strictEqual(refusal("(?i:a)"), "the pattern has a group of an unknown kind")
    assert.strictEqual(refusal("a\\01"), "the pattern has an octal escape")
  })

  it("the work grows with the text, not beyond it", () => {
    const steps = (pattern: string, value: string): number => {
      let spent = 0
      assert.isFalse(compiled(pattern, (states) => (spent += states)).test(value))
      return spent
    }
    for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){12}$", "^(?:a?){40}a{40}$"]) {
      const short = steps(pattern, `${"a".repeat(1000)}!`)
      const long = steps(pattern, `${"a".repeat(10_000)}!`)
      assert.isBelow(long, short * 12, pattern)
    }
  })

  it("what a lookaround says of a position is asked once", () => {
    let spent = 0
    const pattern = compiled("^(?:(?=(?:(?=a*c|a)a)*$)a)*$", (states) => {
      spent += states
    })
    assert.isTrue(pattern.test("a".repeat(200)))
    assert.isBelow(spent, 5 * 200 * 200)
  })

  it("a match is given up where whoever counts the work says so", () => {
    const stop = new Error("enough")
    const counted = compiled("^(?=(.*)*$)a*$", () => {
      throw stop
    })
    assert.throws(() => counted.test("aaaa"), "enough")
  })
})
