import { text } from '../config/flag.js';
import type { Given } from './given.js';

/** How a command prints: `table` and `text` for people, the others for programs. */
export const OUTPUT = text('output', 'text|json|yaml', 'output format', 'text', { short: 'o' });

const OUTPUT_FORMS = ['text', 'table', 'wide', 'json', 'yaml'] as const;
export type OutputForm = (typeof OUTPUT_FORMS)[number];

export function readOutput(given: Given<'output'>): OutputForm {
  return OUTPUT_FORMS.find((form) => form === given.text('output')) ?? 'text';
}
