import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { packedParts, unpackLine } from '../plan/text.js';
import type { RunningProcess } from './running-process.js';

/** So much is printed before others have their turn: about a millisecond. */
const AT_ONCE = 1 << 15;

/**
 * The forwarding table, of which {@link planText} makes what `pointsman plan` prints: to print it here takes five times as long. What changes meanwhile is in
 * it as it was, or as it becomes.
 */
export function planStream(running: Pick<RunningProcess, 'families'>): Readable {
  return Readable.from(planTexts(running));
}

async function* planTexts({ families }: Pick<RunningProcess, 'families'>): AsyncGenerator<string, void, void> {
  let text = '';
  for (const { table } of families)
    for (const lines of packedParts(table)) {
      for (const line of lines) text += `${line}\n`;
      if (text.length < AT_ONCE) continue;
      yield text;
      text = '';
      await turn();
    }
  if (text !== '') yield text;
}

/** What `pointsman plan` prints, of an answer of {@link planStream}. */
export function planText(answer: string): string {
  const lines = answer.split('\n').flatMap((line) => (line === '' ? [] : unpackLine(line)));
  return `${lines.sort().join('\n')}\n`;
}
