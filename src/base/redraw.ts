/** Moves to the first line, and clears from there to the end of the screen; without the flicker of an empty one. */
const HOME = '\u001b[H';
const CLEAR_BELOW = '\u001b[J';
const CLEAR_LINE = '\u001b[K';

/** An empty screen. */
export const CLEARED = `${HOME}${CLEAR_BELOW}`;

/** Text over what is on the screen. */
export function redrawn(text: string): string {
  return `${HOME}${text.replaceAll('\n', `${CLEAR_LINE}\n`)}${CLEAR_BELOW}`;
}
