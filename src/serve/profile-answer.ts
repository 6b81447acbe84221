import type { ServerResponse } from 'node:http';
import { Session } from 'node:inspector';
import { readSourcePlaces } from '../observe/source-places.js';
import { answerText } from './http-endpoint.js';
import {
  cpuStacks,
  encodeProfile,
  heapStacks,
  type Measure,
  type StackValue,
  type V8CpuProfile,
  type V8HeapNode,
} from './v8-profile.js';

const MAX_SECONDS = 600;
/** Microseconds between two looks at the stack, as V8 has it by default. */
const CPU_INTERVAL = 1000;
/** Bytes between two allocations that are looked at, on average; Go's. */
const HEAP_INTERVAL = 512 << 10;

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
    return cpuStacks(profile);
  },
};

const PROFILERS = {
  profile: CPU,
  heap: heapProfiler('heap.pb.gz', 'inuse_space', false),
  allocs: heapProfiler('allocs.pb.gz', 'alloc_space', true),
};

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
      return heapStacks(profile.head);
    },
  };
}

let profiling = false;

/** Samples the process for `seconds` of the query, or until the client goes away. One profile at a time. */
export async function answerProfile(
  kind: keyof typeof PROFILERS,
  query: URLSearchParams,
  response: ServerResponse,
): Promise<void> {
  const profiler = PROFILERS[kind];
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
  // A client may be gone by now, or go while the profiler is being started.
  const closed = response.destroyed
    ? Promise.resolve()
    : new Promise<void>((resolve) => response.once('close', resolve));
  try {
    const body = await takeProfile(profiler, query, () => untilClosed(closed, seconds));
    response.writeHead(200, { ...attachment(profiler.file), 'Content-Length': body.length }).end(body);
  } finally {
    profiling = false;
  }
}

async function takeProfile(profiler: Profiler, query: URLSearchParams, wait: () => Promise<void>): Promise<Buffer> {
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
