import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Session } from 'node:inspector';
import { pipeline } from 'node:stream/promises';
import { answerText } from './http-endpoint.js';

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 600;
const MAX_BODY_BYTES = 64;

export const PROFILING_INDEX = [
  '/debug/pprof/profile?seconds=N: CPU profile over N seconds, a .cpuprofile for V8 tools',
  '/debug/pprof/heap: heap snapshot, a .heapsnapshot for V8 tools; the process stands still while it is taken',
  '',
].join('\n');

let profiling = false;

/** Samples the process for `seconds` of the query, or until the client goes away. One profile at a time. */
export async function answerCpuProfile(query: URLSearchParams, response: ServerResponse): Promise<void> {
  const seconds = Number(query.get('seconds') ?? DEFAULT_SECONDS);
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    answerText(response, 400, `seconds: must be above 0 and at most ${MAX_SECONDS}\n`);
    return;
  }
  if (profiling) {
    answerText(response, 500, 'a CPU profile is being taken already\n');
    return;
  }
  profiling = true;
  try {
    const profile = await takeCpuProfile(() => untilClosed(response, seconds));
    response.writeHead(200, attachment('profile.cpuprofile')).end(JSON.stringify(profile));
  } finally {
    profiling = false;
  }
}

/** Modules for profiling are loaded when it is asked for: they cost memory, and most processes are never profiled. */
async function takeCpuProfile(wait: () => Promise<void>): Promise<unknown> {
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connect();
  try {
    await post(session, 'Profiler.enable');
    await post(session, 'Profiler.start');
    await wait();
    const result = await post(session, 'Profiler.stop');
    return typeof result === 'object' && result !== null && 'profile' in result ? result.profile : null;
  } finally {
    session.disconnect();
  }
}

function post(session: Session, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.post(method, (error, result) => {
      if (error === null) resolve(result);
      else reject(error);
    });
  });
}

function untilClosed(response: ServerResponse, seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    response.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export async function answerHeapSnapshot(response: ServerResponse): Promise<void> {
  const { getHeapSnapshot } = await import('node:v8');
  response.writeHead(200, attachment('heap.heapsnapshot'));
  await pipeline(getHeapSnapshot(), response);
}

function attachment(name: string): Record<string, string> {
  return {
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': `attachment; filename="${name}"`,
    'X-Content-Type-Options': 'nosniff',
  };
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
