import { Worker } from 'node:worker_threads';
import { YamlError } from '../../base/yaml.js';
import type { Answer, Question } from './yaml-worker.js';

/** What the parser may take for one document: a hundred bytes and more for each byte of odd ones, a quarter of that for usual ones. */
const HEAP_MIB = 512;
const PARSER = new URL('./yaml-worker.js', import.meta.url);

/** Parses YAML where it does not keep the event loop waiting. Made for one text, one document at a time. */
export class YamlThread {
  private worker: Worker | null = null;

  /** @param stopped ends a running parse whose result is no longer needed. */
  constructor(private readonly stopped: AbortSignal) {}

  /**
   * @throws YamlError
   * @throws Error when it was stopped.
   */
  async parse(question: Question): Promise<{ readonly values: unknown[]; readonly free: number }> {
    this.worker ??= new Worker(PARSER, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB } });
    const answer = await ask(this.worker, question, this.stopped);
    if (answer.type === 'error') throw new YamlError(answer.reason, answer.line);
    // Text is cheaper to take over than objects are.
    return { values: JSON.parse(answer.json) as unknown[], free: answer.free };
  }

  async close(): Promise<void> {
    await this.worker?.terminate();
    this.worker = null;
  }
}

function ask(worker: Worker, question: Question, stopped: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      worker.off('message', receive);
      worker.off('error', fail);
      stopped.removeEventListener('abort', abort);
    };
    const abort = (): void => {
      settle();
      reject(new Error('was not read to its end'));
    };
    const fail = (error: Error): void => {
      settle();
      const isMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      reject(isMemory ? new YamlError(`takes more than ${HEAP_MIB} MiB of memory to parse: give it as JSON`) : error);
    };
    const receive = (answer: Answer): void => {
      settle();
      resolve(answer);
    };
    worker.on('message', receive);
    worker.on('error', fail);
    stopped.addEventListener('abort', abort);
    if (stopped.aborted) abort();
    else worker.postMessage(question);
  });
}
