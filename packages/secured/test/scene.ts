import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parseAddress } from '../../../src/base/ip.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import type { AccessControl } from '../../../src/serve/access-control.js';
import { systemClock } from '../../../src/base/clock.js';
import { ClientShares } from '../../../src/serve/client-shares.js';
import { MetricsServer } from '../../../src/serve/metrics-server.js';
import { openAccessControl, type SecuredAccessParts } from '../src/access-control.js';
import { loaded } from '../../../test/config/load-from.js';
import { curl, type CurlAnswer } from '../../../test/support/curl.js';
import { FakeClock } from '../../../test/support/fake-clock.js';
import { RecordingLog } from '../../../test/support/recording-log.js';

/** A metrics server behind access control, by flags. */
export interface Scene {
  readonly port: number;
  readonly clock: FakeClock;
  readonly log: RecordingLog;
  /** Of the observer. */
  readonly received: string[];
  readonly time: { now: number };
  /** Asks for a path by the name `localhost`. */
  readonly ask: (path: string, ...options: readonly string[]) => Promise<CurlAnswer>;
  /** Makes access control look at its files. */
  readonly look: () => Promise<void>;
  /** With what pages are to fail; null: they do not. */
  fail: Error | null;
}

const LOCAL = parseAddress('127.0.0.1')!;

/** A directory that goes when the test does. */
export function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'pointsman-secured-'));
  t.teardown(() => {
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** @param now milliseconds since the epoch, at the start. */
export async function scene(
  t: Test,
  flags: readonly string[],
  more: Partial<SecuredAccessParts> = {},
  now = Date.now(),
): Promise<Scene> {
  const clock = new FakeClock();
  const log = new RecordingLog();
  const received: string[] = [];
  const time = { now };
  const opened = await open(flags, { clock, log, observer: observer(received), now: () => time.now, ...more });
  if ('problem' in opened) throw new Error(opened.problem);
  const server = new MetricsServer({
    bind: { address: LOCAL, port: 0, hardFail: true },
    accessControl: () => opened,
    shares: new ClientShares(systemClock, log),
    clock,
    log,
    mode: 'a mode',
    flags: [],
    status: null,
    metrics: {
      scrape: () => (made.fail === null ? Promise.resolve('scraped\n') : Promise.reject(made.fail)),
    },
    configuration: () => ({ kind: 'KubeProxyConfiguration' }),
    page: (request, response) => {
      response.end(`page ${request.url ?? ''}\n`);
      return Promise.resolve();
    },
    setVerbosity: () => undefined,
    onFatal: (error) => {
      throw error;
    },
  });
  await server.start();
  t.teardown(async () => {
    await opened.close();
    await server.close();
  });
  const port = server.port() ?? 0;
  const made: Scene = {
    fail: null,
    port,
    clock,
    log,
    received,
    time,
    ask: (path, ...options) => curl(`https://localhost:${port}${path}`, ...options),
    look: async () => {
      await clock.advance(5000);
      // The timer is set again when everything has been looked at.
      while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
    },
  };
  return made;
}

/** Opens access control by flags, or answers why not. */
export function open(
  flags: readonly string[],
  more: Partial<SecuredAccessParts>,
): Promise<AccessControl | { readonly problem: string }> {
  const { secured } = loaded(['--master=http://127.0.0.1:1', ...flags]).config;
  if (secured === null) throw new Error('the flags ask for nothing');
  return openAccessControl({
    config: secured,
    nodeName: 'worker-1',
    addresses: () => [parseAddress('192.0.2.7')!],
    api: () => null,
    connect: () => Promise.reject(new Error('there are no webhooks')),
    clock: new FakeClock(),
    log: new RecordingLog(),
    observer: observer([]),
    now: Date.now,
    ...more,
  });
}

function observer(received: string[]): AccessObserver {
  return {
    reloaded: (flag, result) => received.push(`${flag} ${result}`),
    certificateEnds: () => undefined,
    audited: (result, count) => {
      for (let each = 0; each < count; each++) received.push(`audited ${result}`);
    },
    authenticated: (result) => received.push(`authenticated ${result}`),
    authorized: (result) => received.push(`authorized ${result}`),
    reviewed: (kind, result) => received.push(`${kind} ${result}`),
  };
}
