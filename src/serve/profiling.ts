import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerText, type Page } from './http-endpoint.js';

const MAX_BODY_BYTES = 64;

const INDEX = [
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

/** What is served at /debug with enableProfiling (behaviour §6.3). Nothing of it holds what is in the process's memory. */
export function profilingPages(setVerbosity: (verbosity: number) => void): readonly (readonly [string, Page])[] {
  const text =
    (status: number, body: () => string): Page =>
    (_request, response) => {
      answerText(response, status, body());
    };
  // What makes profiles is loaded when one is asked for: most processes are never profiled.
  const takes =
    (kind: 'profile' | 'heap' | 'allocs'): Page =>
    async (_request, response, query) =>
      (await import('./profile-answer.js')).answerProfile(kind, query, response);
  const index = text(200, () => INDEX);
  const absent = (what: string): Page => text(501, () => `Node.js has no ${what} profile\n`);
  return [
    ['/debug/pprof', index],
    ['/debug/pprof/', index],
    ['/debug/pprof/profile', takes('profile')],
    ['/debug/pprof/heap', takes('heap')],
    ['/debug/pprof/allocs', takes('allocs')],
    ['/debug/pprof/goroutine', text(200, printResources)],
    // The arguments may hold credentials.
    ['/debug/pprof/cmdline', text(200, () => 'pointsman')],
    // Profiles bring their names along.
    ['/debug/pprof/symbol', text(200, () => 'num_symbols: 0\n')],
    ['/debug/pprof/threadcreate', absent('thread creation')],
    ['/debug/pprof/block', absent('blocking')],
    ['/debug/pprof/mutex', absent('mutex')],
    ['/debug/pprof/trace', text(501, () => 'Node.js writes no trace that Go tools read\n')],
    ['/debug/flags', text(200, () => 'v\n')],
    ['/debug/flags/v', (request, response) => answerVerbosity(request, response, setVerbosity)],
  ];
}

/** Kinds of handles and requests that keep the process going, as Node names them. */
function printResources(): string {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const lines = [...counts].sort().map(([kind, count]) => `${count} ${kind}\n`);
  return `This process has no goroutines but an event loop, which waits for:\n${lines.join('')}`;
}

/** PUT of a number sets the log's verbosity. */
async function answerVerbosity(
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
