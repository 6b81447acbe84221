/** Tells whoever waits what a measurement is at. */
export function say(what: string): void {
  process.stderr.write(`  ${what} …\n`);
}
