import { setTimeout as sleep } from 'node:timers/promises';
import { printableText } from '../base/printable.js';
import { CLEARED, redrawn } from '../base/redraw.js';
import type { OutputForm } from '../config/load.js';
import { STATUS_PAGE } from '../serve/status-pages.js';
import { ask } from './ask.js';

const EVERY_MS = 2000;

/**
 * Prints the status again and again, on a terminal in place of the one before.
 *
 * @param write where to.
 * @throws AskError without an answer.
 */
export async function watchStatus(
  socket: string | null,
  output: OutputForm,
  isTerminal: boolean,
  write: (text: string) => Promise<void>,
): Promise<never> {
  if (isTerminal) await write(CLEARED);
  for (;;) {
    const text = printableText((await ask(socket, `${STATUS_PAGE}?output=${output}`)).text);
    await write(isTerminal ? redrawn(text) : `${text}\n`);
    await sleep(EVERY_MS);
  }
}
