import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import type { CredentialsDependencies } from '../../../src/sources/kubernetes/auth/credentials.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import { connect, scratch } from './connect.js';

export const V1 = 'client.authentication.k8s.io/v1';
export const V1BETA1 = 'client.authentication.k8s.io/v1beta1';

/** A plugin that answers with the file `answer` and notes each run; `answer` and the script may change while it is in use. */
export class Plugin {
  readonly directory: string;
  readonly command: string;

  constructor(
    t: Test,
    private readonly cluster: object,
    before = '',
  ) {
    this.directory = scratch(t);
    this.command = join(this.directory, 'plugin');
    const noted = 'echo run >>"$0.runs"; printf %s "$KUBERNETES_EXEC_INFO" >"$0.info"; echo "$EXTRA $*" >"$0.said"';
    writeFileSync(this.command, `#!/bin/sh\n${noted}\n${before}\ncat "$0.answer"\n`);
    chmodSync(this.command, 0o755);
  }

  answer(status: object, apiVersion = V1): this {
    writeFileSync(`${this.command}.answer`, JSON.stringify({ kind: 'ExecCredential', apiVersion, status }));
    return this;
  }

  says(text: string): this {
    writeFileSync(`${this.command}.answer`, text);
    return this;
  }

  get runs(): number {
    return existsSync(`${this.command}.runs`) ? this.read('runs').split('\n').length - 1 : 0;
  }

  /** Whether what it started itself runs, whose process it noted in `said`; it may be ended before it came to that. */
  runsMore(): boolean {
    return existsSync(`${this.command}.said`) && isRunning(this.read('said'));
  }

  /** Waits until nothing of that runs any more. */
  async ended(): Promise<void> {
    while (this.runsMore()) await sleep(5);
  }

  get input(): unknown {
    const input: unknown = JSON.parse(this.read('info'));
    return input;
  }

  read(what: 'runs' | 'info' | 'said'): string {
    return readFileSync(`${this.command}.${what}`, 'utf8');
  }

  connect(t: Test, exec: object = {}, dependencies: Partial<CredentialsDependencies> = {}): Promise<ApiConnection> {
    const user = { exec: { apiVersion: V1, interactiveMode: 'Never', command: this.command, ...exec } };
    return connect(t, { cluster: this.cluster, user }, { dependencies });
  }
}

/** A process that has ended may still wait for somebody to ask how. */
export function isRunning(pid: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid.trim()}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
