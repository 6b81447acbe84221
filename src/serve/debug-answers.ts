import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerText } from './http-endpoint.js';

const MAX_BODY_BYTES = 64;

export const INDEX = [
  'profile?seconds=30  what the processor was used for',
  'heap?seconds=10     memory allocated meanwhile that is still in use; with gc=1 after a garbage collection',
  'allocs?seconds=10   memory allocated meanwhile, freed or not',
  'goroutine           what the process waits for, in text: Node.js has no goroutines',
  'cmdline             the name of the program; its flags are on /flagz',
  '',
  'Profiles are for `go tool pprof`, one at a time. They name functions and files and hold no contents of the memory.',
  'A heap snapshot does, with every credential: `pointsman status --heap-snapshot FILE`, on the node, by the user of the process.',
  '',
].join('\n');

/** Kinds of handles and requests that keep the process going, as Node names them. */
export function printResources(): string {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const lines = [...counts].sort().map(([kind, count]) => `${count} ${kind}\n`);
  return `This process has no goroutines but an event loop, which waits for:\n${lines.join('')}`;
}

/** PUT of a number sets the log's verbosity. */
export async function answerVerbosity(
  request: IncomingMessage,
  response: ServerResponse,
  setVerbosity: (verbosity: number) => void,
): Promise<void> {
  if (request.method !== 'PUT') {
    answerText(response, 406, 'only PUT sets the verbosity\n');
    return;
  }
  const text = (await readBody(request)).trim();
  const verbosity = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(verbosity < 2 ** 31)) {
    answerText(response, 400, `failed to set klog.logging.verbosity ${JSON.stringify(text)}: must be a whole number\n`);
    return;
  }
  setVerbosity(verbosity);
  answerText(response, 200, `successfully set klog.logging.verbosity to ${text}`);
}

/** The first of a body's bytes, more than any right one has. */
async function readBody(request: AsyncIterable<Buffer>): Promise<string> {
  let body = '';
  for await (const chunk of request) {
    body += chunk.toString('latin1');
    if (body.length > MAX_BODY_BYTES) break;
  }
  return body.slice(0, MAX_BODY_BYTES);
}
