/**
 * The rule that the numbers of a request's progress notifications rise (P59).
 */

/** The number itself if it is above the last one sent, else the next number above that. */
export const above = (last: number | undefined, progress: number): number =>
  last === undefined || progress > last ? progress : nextAbove(last)

const nextAbove = (value: number): number => {
  const step = Math.max(Math.abs(value) * Number.EPSILON, Number.MIN_VALUE)
  return value + step
}
