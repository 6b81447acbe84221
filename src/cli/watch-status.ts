import { setTimeout as sleep } from 'node:timers/promises';
import { printableText } from '../base/printable.js';
import type { OutputForm } from '../config/load.js';
import { STATUS_PAGE } from '../serve/status-pages.js';
import { ask } from './ask.js';

const EVERY_MS = 2000;
/** To the first line, and from there to the end of the screen; without the flicker of an empty one. */
const HOME = '\u001b[H';
const CLEAR_BELOW = '\u001b[J';
const CLEAR_LINE = '\u001b[K';

/**
 * Prints the status again and again, on a terminal in place of the one before.
 *
 * @param write where to.
 * @throws AskError when nobody answers.
 */
export async function watchStatus(
  socket: string | null,
  output: OutputForm,
  isTerminal: boolean,
  write: (text: string) => Promise<void>,
): Promise<never> {
  if (isTerminal) await write(`${HOME}${CLEAR_BELOW}`);
  for (;;) {
    const text = printableText(await ask(socket, `${STATUS_PAGE}?output=${output}`));
    await write(isTerminal ? redrawn(text) : `${text}\n`);
    await sleep(EVERY_MS);
  }
}

/** Text over what is on the screen. */
export function redrawn(text: string): string {
  return `${HOME}${text.replaceAll('\n', `${CLEAR_LINE}\n`)}${CLEAR_BELOW}`;
}
