import { setTimeout as sleep } from 'node:timers/promises';
import { printableText } from '../base/printable.js';
import { CLEARED, redrawn } from '../base/redraw.js';
import type { Output, OutputParts } from './commands.js';

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

/** Prints what a command answers again and again; problems go to the log. */
export async function watchOutput(
  look: () => Promise<Output>,
  { log, isTerminal, write }: OutputParts & { readonly isTerminal: boolean },
): Promise<never> {
  const answer = async (): Promise<string> => {
    const { text, errors } = await look();
    for (const error of errors) log.error(null, error);
    return printableText(text);
  };
  return await watch(answer, isTerminal, write);
}
