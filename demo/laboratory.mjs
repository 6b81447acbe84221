// @ts-check
import { spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const AGENT = fileURLToPath(new URL('../test/support/lab/agent.py', import.meta.url));

/**
 * Namespaces with servers and clients in them, held by one python3 process (test/support/lab/agent.py). Needs no rights: where the caller
 * may not make network namespaces, they are made in a user namespace.
 */
export class Laboratory {
  #process = spawn('python3', ['-B', AGENT], { stdio: ['pipe', 'pipe', 'pipe'] });
  /** @type {Map<number, { resolve: (result: unknown) => void, reject: (error: Error) => void }>} */
  #waiting = new Map();
  #lastId = 0;
  #errors = '';
  #pid = 0;
  /** @type {Record<string, number>} */
  #namespaces = {};
  /** @type {import('node:child_process').ChildProcess[]} */
  #programs = [];

  constructor() {
    this.#process.stderr.setEncoding('utf8').on('data', (text) => (this.#errors += text));
    this.#process.stdin.on('error', () => undefined);
    this.#process.once('error', (error) => (this.#errors += `python3: ${error.message}`));
    this.#process.once('close', () => {
      for (const { reject } of this.#waiting.values())
        reject(new Error(this.#errors.trim() || 'the laboratory has ended'));
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const { id, result, error } = JSON.parse(line);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(error));
    });
  }

  /**
   * @param {string} operation a method of the agent
   * @param {Record<string, unknown>} parameters
   * @returns {Promise<any>}
   */
  call(operation, parameters) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#process.stdin.write(`${JSON.stringify({ id, op: operation, ...parameters })}\n`);
    });
  }

  /** @param {object} network */
  async build(network) {
    const { pid, namespaces } = await this.call('build', { network, adopted: {} });
    this.#pid = pid;
    this.#namespaces = namespaces;
  }

  /**
   * Starts a program in a namespace; it is killed with the laboratory, and when this process ends.
   * @param {string} namespace
   * @param {readonly string[]} command
   */
  spawn(namespace, command) {
    const sameUser = readlinkSync('/proc/self/ns/user') === readlinkSync(`/proc/${this.#pid}/ns/user`);
    const user = sameUser ? [] : [`--user=/proc/${this.#pid}/ns/user`, '--preserve-credentials'];
    const enter = [...user, `--net=/proc/${this.#pid}/fd/${this.#namespaces[namespace]}`];
    const program = spawn('nsenter', [...enter, '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#programs.push(program);
    return program;
  }

  close() {
    for (const program of this.#programs) program.kill('SIGKILL');
    this.#process.stdin.end();
    this.#process.kill('SIGKILL');
  }
}
