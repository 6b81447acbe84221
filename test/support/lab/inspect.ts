import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { PlanAndDump } from './difference.js';
import type { Lab } from './lab.js';

const ADDON_VARIABLES = ['POINTSMAN_ADDON', 'POINTSMAN_LEFT_OUT'] as const;

/** A process in the node's namespace that says what is to be there and what is; see inspector.ts. */
export class Inspector {
  readonly #process;
  readonly #lines;
  #errors = '';

  constructor(lab: Lab) {
    const program = fileURLToPath(new URL('inspector.js', import.meta.url));
    // The addon of this process, where it is another one than the program's.
    const variables = ADDON_VARIABLES.flatMap((name) =>
      process.env[name] === undefined ? [] : [`${name}=${process.env[name]}`],
    );
    this.#process = lab.spawn('node', ['env', ...variables, process.execPath, program]);
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.#process.stdin.on('error', () => undefined);
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** By the arguments of a command line, without the command. One call at a time. */
  async planAndDump(argv: readonly string[]): Promise<PlanAndDump> {
    this.#process.stdin.write(`${JSON.stringify(argv)}\n`);
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`the inspector has ended: ${this.#errors}`);
    const answer = JSON.parse(line.value) as PlanAndDump | { readonly error: string };
    if ('error' in answer) throw new Error(answer.error);
    return answer;
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const closed = once(this.#process, 'close');
    this.#process.kill('SIGKILL');
    await closed;
  }
}
