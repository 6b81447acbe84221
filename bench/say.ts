/** Reports the progress of a measurement. */
export function say(what: string): void {
  process.stderr.write(`  ${what} …\n`);
}
