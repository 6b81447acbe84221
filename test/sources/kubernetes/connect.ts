import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { systemClock } from '../../../src/base/clock.js';
import type { Clock } from '../../../src/base/clock.js';
import { systemDependencies, type CredentialsDependencies } from '../../../src/sources/kubernetes/auth/credentials.js';
import { connectToApi, type ConnectionOptions } from '../../../src/sources/kubernetes/connect/transport.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import type { AuthServer } from '../../support/auth-server.js';
import type { FakeClock } from '../../support/fake-clock.js';
import { RecordingLog } from '../../support/recording-log.js';

/** A directory that goes with the test. */
export function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'pointsman-auth-'));
  t.teardown(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}

export interface KubeconfigParts {
  readonly cluster: object;
  readonly user?: object;
}

/** A kubeconfig with one context; JSON is YAML. */
export function kubeconfigText({ cluster, user }: KubeconfigParts): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'ours', ...(user === undefined ? {} : { user: 'me' }) } }],
    clusters: [{ name: 'ours', cluster }],
    users: user === undefined ? [] : [{ name: 'me', user }],
  });
}

export interface ConnectOptions extends Partial<Omit<ConnectionOptions, 'dependencies'>> {
  readonly dependencies?: Partial<CredentialsDependencies>;
}

/** A connection that is closed with the test, by a kubeconfig in the test's own directory. */
export async function connect(t: Test, parts: KubeconfigParts, options: ConnectOptions = {}): Promise<ApiConnection> {
  const kubeconfig = join(scratch(t), 'kubeconfig');
  writeFileSync(kubeconfig, kubeconfigText(parts));
  return connectBy(t, { kubeconfig, ...options });
}

export async function connectBy(t: Test, options: ConnectOptions): Promise<ApiConnection> {
  const log = options.log ?? new RecordingLog();
  const { dependencies, ...given } = options;
  const connection = await connectToApi({
    kubeconfig: '',
    master: '',
    qps: -1,
    burst: 10,
    userAgent: 'test',
    clock: systemClock,
    log,
    ...given,
    dependencies: { ...systemDependencies(log, systemClock), env: { PATH: process.env['PATH'] }, ...dependencies },
  });
  t.teardown(() => {
    connection.close();
  });
  return connection;
}

/** Status and text of one GET. */
export async function fetchText(connection: ApiConnection, path = '/version'): Promise<string> {
  const response = await connection.get(path, {}, { accept: 'application/json', signal: new AbortController().signal });
  const chunks: Buffer[] = [];
  for await (const chunk of response.body as AsyncIterable<Buffer>) chunks.push(chunk);
  return `${response.status} ${Buffer.concat(chunks).toString()}`;
}

/** A clock for those who only ask for the time. */
export function clockOf(now: () => number): Clock {
  return { now, callAt: () => () => undefined };
}

export interface OpenWatch {
  /** All that it said, once it has ended well. */
  readonly text: Promise<string>;
  /** Lets time pass until it ends. */
  endAfter(clock: FakeClock): Promise<string>;
}

/** A watch that the server leaves open after its first word. */
export async function openWatch(t: Test, server: AuthServer, connection: ApiConnection): Promise<OpenWatch> {
  const { handler } = server;
  server.handler = (_, response) => response.write('begun');
  const controller = new AbortController();
  t.teardown(() => {
    controller.abort();
  });
  const { body } = await connection.get('/', { watch: '1' }, { accept: '*/*', signal: controller.signal });
  server.handler = handler;
  const text = body.toArray().then((chunks) => chunks.map(String).join(''));
  const endAfter = async (clock: FakeClock): Promise<string> => {
    while (!body.closed) {
      // While credentials are read the watch waits for no time: on busy cores days would pass.
      if (clock.waiting > 0) await clock.advance(15_000);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return text;
  };
  return { text, endAfter };
}

/** Of the connection to a port: the kind of its timer (01: something is sent again, 02: keep-alive) and hundredths of a second until it ends, as proc(5) has it. */
export function tcpTimer(port: number): { readonly kind: string; readonly left: string } {
  const lines = readFileSync('/proc/self/net/tcp', 'utf8').split('\n');
  const ours = ([, , remote = '', state]: readonly string[]): boolean =>
    parseInt(remote.split(':')[1] ?? '', 16) === port && state === '01';
  const [kind = '', left = ''] = (lines.map((line) => line.trim().split(/\s+/)).find(ours)?.[5] ?? '').split(':');
  return { kind, left };
}
