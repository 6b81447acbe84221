/** The least of any number of numbers: `Math.min(...numbers)` puts them all on the stack. Infinity where there is none. */
export function least(numbers: Iterable<number>): number {
  let result = Infinity;
  for (const number of numbers) result = Math.min(result, number);
  return result;
}

/** The greatest, likewise; -Infinity where there is none. */
export function greatest(numbers: Iterable<number>): number {
  let result = -Infinity;
  for (const number of numbers) result = Math.max(result, number);
  return result;
}
