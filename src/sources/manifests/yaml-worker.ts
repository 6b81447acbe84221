import { parentPort } from 'node:worker_threads';
import { ExpansionBudget, readYaml, YamlError } from '../../base/yaml.js';

/** A thread of its own: answers each text with its documents. */

export interface Question {
  readonly text: string;
  /** The first line of the text in its file. */
  readonly firstLine: number;
  /** What is left of the file's expansion budget. */
  readonly free: number;
}

export type Answer =
  | { readonly type: 'documents'; readonly json: string; readonly free: number }
  | { readonly type: 'error'; readonly reason: string; readonly line: number | null };

parentPort?.on('message', (question: Question) => {
  parentPort?.postMessage(answer(question));
});

function answer({ text, firstLine, free }: Question): Answer {
  try {
    const budget = new ExpansionBudget(free);
    const documents = readYaml(text, budget, undefined, firstLine);
    return { type: 'documents', json: JSON.stringify(documents), free: budget.remaining };
  } catch (error) {
    if (error instanceof YamlError) return { type: 'error', reason: error.reason, line: error.line };
    throw error;
  }
}
