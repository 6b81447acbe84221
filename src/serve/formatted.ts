import { printYaml } from '../base/print-yaml.js';
import { printableLine, printableText } from '../base/printable.js';

/** An answer in the form asked for. */
export function formatted<Answer>(
  answer: Answer,
  output: string | null,
  print: (answer: Answer) => readonly string[],
): string {
  if (output === 'yaml') return printableText(printYaml(answer));
  if (output === 'json') return printableText(`${JSON.stringify(answer, null, 1)}\n`);
  return print(answer)
    .map((line) => `${printableLine(line)}\n`)
    .join('');
}
