import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Session } from 'node:inspector';
import { readSourcePlaces } from '../observe/source-places.js';
import { answerText, type Page } from './http-endpoint.js';
import type { Measure, StackValue, V8CpuProfile, V8HeapNode } from './v8-profile.js';

const MAX_SECONDS = 600;
const MAX_BODY_BYTES = 64;
/** Microseconds between two looks at the stack, as V8 has it by default. */
const CPU_INTERVAL = 1000;
/** Bytes between two allocations that are looked at, on average; Go's. */
const HEAP_INTERVAL = 512 << 10;

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
  const index = text(200, () => INDEX);
  const absent = (what: string): Page => text(501, () => `Node.js has no ${what} profile\n`);
  return [
    ['/debug/pprof', index],
    ['/debug/pprof/', index],
    ['/debug/pprof/profile', (_request, response, query) => answerProfile(CPU, query, response)],
    ['/debug/pprof/heap', (_request, response, query) => answerProfile(HEAP, query, response)],
    ['/debug/pprof/allocs', (_request, response, query) => answerProfile(ALLOCATIONS, query, response)],
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

interface Profiler {
  readonly file: string;
  readonly seconds: number;
  readonly measure: Measure;
  readonly start: (session: Session) => Promise<void>;
  readonly stop: (session: Session, query: URLSearchParams) => Promise<readonly StackValue[]>;
}

const CPU: Profiler = {
  file: 'profile.pb.gz',
  seconds: 30,
  measure: { type: 'cpu', unit: 'nanoseconds', period: CPU_INTERVAL * 1000 },
  start: async (session) => {
    await post(session, 'Profiler.enable');
    await post(session, 'Profiler.setSamplingInterval', { interval: CPU_INTERVAL });
    await post(session, 'Profiler.start');
  },
  stop: async (session) => {
    const { profile } = await post<{ profile: V8CpuProfile }>(session, 'Profiler.stop');
    return (await import('./v8-profile.js')).cpuStacks(profile);
  },
};

const HEAP = heapProfiler('heap.pb.gz', 'inuse_space', false);
const ALLOCATIONS = heapProfiler('allocs.pb.gz', 'alloc_space', true);

/** @param freed whether what was collected meanwhile counts. */
function heapProfiler(file: string, type: string, freed: boolean): Profiler {
  return {
    file,
    seconds: 10,
    measure: { type, unit: 'bytes', period: HEAP_INTERVAL },
    start: async (session) => {
      await post(session, 'HeapProfiler.startSampling', {
        samplingInterval: HEAP_INTERVAL,
        includeObjectsCollectedByMajorGC: freed,
        includeObjectsCollectedByMinorGC: freed,
      });
    },
    stop: async (session, query) => {
      if (query.get('gc') === '1') await post(session, 'HeapProfiler.collectGarbage');
      const { profile } = await post<{ profile: { head: V8HeapNode } }>(session, 'HeapProfiler.stopSampling');
      return (await import('./v8-profile.js')).heapStacks(profile.head);
    },
  };
}

let profiling = false;

/** Samples the process for `seconds` of the query, or until the client goes away. One profile at a time. */
async function answerProfile(profiler: Profiler, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const seconds = Number(query.get('seconds') ?? profiler.seconds);
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    answerText(response, 400, `seconds: must be above 0 and at most ${MAX_SECONDS}\n`);
    return;
  }
  if (profiling) {
    answerText(response, 500, 'a profile is being taken already\n');
    return;
  }
  profiling = true;
  // Listened for from here on: a client may go away while the profiler is being started.
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  try {
    const body = await takeProfile(profiler, query, () => untilClosed(closed, seconds));
    response.writeHead(200, { ...attachment(profiler.file), 'Content-Length': body.length }).end(body);
  } finally {
    profiling = false;
  }
}

/** Modules for profiling are loaded when it is asked for: they cost memory, and most processes are never profiled. */
async function takeProfile(profiler: Profiler, query: URLSearchParams, wait: () => Promise<void>): Promise<Buffer> {
  const { Session } = await import('node:inspector');
  const { encodeProfile } = await import('./v8-profile.js');
  const session = new Session();
  session.connect();
  try {
    const startedAt = Date.now();
    const began = performance.now();
    await profiler.start(session);
    await wait();
    const stacks = await profiler.stop(session, query);
    const durationMs = performance.now() - began;
    // Of the program, and not of the file that makes profiles.
    return await encodeProfile(stacks, profiler.measure, startedAt, durationMs, readSourcePlaces());
  } finally {
    session.disconnect();
  }
}

/** The result is what the protocol says of the method (https://chromedevtools.github.io/devtools-protocol/v8/). */
function post<Result = unknown>(session: Session, method: string, parameters: object = {}): Promise<Result> {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => {
      if (error === null) resolve(result as Result);
      else reject(error);
    });
  });
}

function untilClosed(closed: Promise<void>, seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    void closed.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function attachment(name: string): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${name}"`,
    'X-Content-Type-Options': 'nosniff',
  };
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
