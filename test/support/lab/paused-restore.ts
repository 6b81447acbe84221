import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, type Scope } from './lab.js';

/** Found before the program of its name: what comes before the table nat is written at once, and the rest once the pause has ended. */
const PROGRAM = `#!/bin/sh
PATH=\${PATH#*:}
here=\${0%/*}
stream=$(cat)
rest=$(printf '%s\\n' "$stream" | sed -n '/^\\*nat$/,$p')
[ -n "$rest" ] && [ -e "$here/paused" ] || { printf '%s\\n' "$stream" | "\${0##*/}" "$@"; exit; }
before=$(printf '%s\\n' "$stream" | sed '/^\\*nat$/,$d')
[ -z "$before" ] || printf '%s\\n' "$before" | "\${0##*/}" "$@" || exit
touch "$here/reached"
while [ -e "$here/paused" ]; do sleep 0.2; done
printf '%s\\n' "$rest" | "\${0##*/}" "$@"
`;

/** Shows packets the moment between two tables of one stream, which the programs commit one after the other: for a process that runs in that of the test. */
export class PausedRestore {
  readonly #folder = mkdtempSync(join(tmpdir(), 'programs-'));

  /** @param program such as `iptables-nft-restore`. */
  constructor(t: Scope, program: string) {
    const { PATH = '' } = process.env;
    t.teardown(() => {
      process.env['PATH'] = PATH;
      rmSync(this.#folder, { recursive: true });
      return Promise.resolve();
    });
    writeFileSync(join(this.#folder, program), PROGRAM, { mode: 0o755 });
    writeFileSync(join(this.#folder, 'paused'), '');
    process.env['PATH'] = `${this.#folder}:${PATH}`;
  }

  /** Waits until all is written that comes before nat. */
  reached(timeoutMs: number): Promise<unknown> {
    const reached = async (): Promise<true | null> =>
      Promise.resolve(existsSync(join(this.#folder, 'reached')) || null);
    return eventually('everything before nat is written', reached, timeoutMs);
  }

  end(): void {
    rmSync(join(this.#folder, 'paused'));
  }
}
