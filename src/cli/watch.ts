import { setTimeout as sleep } from 'node:timers/promises';
import { CLEARED, redrawn } from '../base/redraw.js';

const EVERY_MS = 2000;

/**
 * Prints an answer again and again, on a terminal in place of the one before.
 *
 * @param look the answer; what it throws ends it.
 * @param write where to.
 */
export async function watch(
  look: () => Promise<string>,
  isTerminal: boolean,
  write: (text: string) => Promise<void>,
): Promise<never> {
  if (isTerminal) await write(CLEARED);
  for (;;) {
    const text = await look();
    await write(isTerminal ? redrawn(text) : `${text}\n`);
    await sleep(EVERY_MS);
  }
}
