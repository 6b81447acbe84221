// needs: curl
import { networkInterfaces } from 'node:os';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { gateStates } from '../../src/config/gates.js';
import type { Loaded } from '../../src/config/load.js';
import { openAccessControl } from '../../src/cli/packages.js';
import { modeDefinition } from '../../src/dataplane/modes.js';
import { Progress } from '../../src/record/progress.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { HealthState } from '../../src/record/health.js';
import { ProxyMetrics } from '../../src/observe/metrics.js';
import { boundPort, listen, shut } from '../../src/serve/listener.js';
import { Listeners } from '../../src/serve/listeners.js';
import { servesPage } from '../../src/serve/page.js';
import { ClientShares } from '../../src/serve/client-shares.js';
import { systemClock } from '../../src/base/clock.js';
import { fromFile } from '../config/load-from.js';
import { curl } from '../support/curl.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

interface World {
  readonly listeners: Listeners;
  readonly log: RecordingLog;
  readonly clock: FakeClock;
  readonly fatal: string[];
}

function world(t: Test, loaded: Loaded): World {
  const clock = new FakeClock(0);
  const wallClock = (): bigint => 0n;
  const log = new RecordingLog();
  const fatal: string[] = [];
  const progress = new Progress(['IPv4'], clock, wallClock);
  const metrics = new ProxyMetrics({
    host: LINUX_HOST,
    mode: { metrics: modeDefinition('nftables').metrics, modeCounts: () => Promise.resolve(null) },
    progress,
    version: 'v1.37.2',
    features: gateStates({}),
    clock,
    wallClock,
    sources: () => [],
  });
  const listeners = new Listeners({
    loaded,
    shares: new ClientShares(systemClock, log),
    health: new HealthState(progress, 1, clock, wallClock),
    metrics,
    clock,
    wallClock,
    log,
    page: { answerNetwork: () => Promise.reject(new Error('nobody asks')) },
    openAccessControl,
    setVerbosity: () => undefined,
    localAddresses: () => [],
    observe: () => Promise.resolve([]),
    api: () => null,
    unheardMs: () => null,
    connect: () => Promise.reject(new Error('there are no webhooks')),
    onFatal: (reason) => fatal.push(reason),
  });
  t.teardown(() => listeners.close());
  return { listeners, log, clock, fatal };
}

/** A port that nobody has; the system gives it to nobody else soon. */
async function freePort(): Promise<number> {
  const { server, port } = await squat();
  await shut(server);
  return port;
}

async function squat(
  port = 0,
): Promise<{ readonly server: Awaited<ReturnType<typeof listen>>; readonly port: number }> {
  const socket = { address: parseAddress('127.0.0.1')!, port, dualStack: false };
  const server = await listen(
    socket,
    (_, response) => response.end('squatter'),
    (error) => t.fail(error.message),
  );
  return { server, port: boundPort(server)! };
}

/** The status of an answer; null when nobody answers. */
async function ask(port: number, path: string): Promise<number | null> {
  try {
    const { status, body } = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    await body?.cancel();
    return status;
  } catch {
    return null;
  }
}

async function configuration(health: string, metrics: string, more = ''): Promise<Loaded> {
  return Promise.resolve(
    fromFile(`mode: nftables\nhealthzBindAddress: ${health}\nmetricsBindAddress: ${metrics}\n${more}`),
  );
}

t.test('listeners that are closed before they start are not opened', async (t) => {
  const [health, metrics] = [await freePort(), await freePort()];
  const { listeners } = world(t, await configuration(`127.0.0.1:${health}`, `127.0.0.1:${metrics}`));
  await listeners.close();
  await listeners.start();
  t.same([await ask(health, '/livez'), await ask(metrics, '/configz')], [null, null]);
});

t.test('servers move when their address changes, and pages are switched live', async (t) => {
  const [first, second, third] = [await freePort(), await freePort(), await freePort()];
  const { listeners, log } = world(t, await configuration(`127.0.0.1:${first}`, `127.0.0.1:${second}`));
  await listeners.start();
  t.same([await ask(first, '/healthz'), await ask(second, '/configz')], [503, 200]);
  t.same([await ask(second, '/debug/pprof/'), await ask(second, '/flagz')], [404, 200]);

  const more = 'enableProfiling: true\nfeatureGates: {ComponentFlagz: false}';
  await listeners.follow(await configuration(`127.0.0.1:${third}`, `127.0.0.1:${second}`, more));
  t.same([await ask(first, '/livez'), await ask(third, '/livez')], [null, 200]);
  t.same([await ask(second, '/debug/pprof/'), await ask(second, '/flagz')], [200, 404]);
  const shown = (await (await fetch(`http://127.0.0.1:${second}/configz`)).json()) as object;
  t.match(shown, { 'kubeproxy.config.k8s.io': { enableProfiling: true } }, 'what is in force now');

  await listeners.follow(await configuration(`0.0.0.0:${third}`, `127.0.0.1:${second}`));
  t.equal(await ask(third, '/livez'), 200, 'an address and the wildcard that has it exclude each other');
  await listeners.follow(await configuration(`"[::]:${third}"`, `127.0.0.1:${second}`));
  t.equal(log.lines.filter((line) => line.includes('serving health checks')).length, 3, 'both wildcards are one');
});

t.test('the page is served on loopback, and to other clients behind access control', (t) => {
  const serves = (metrics: string, ...flags: readonly string[]): boolean =>
    servesPage(fromFile(`mode: nftables\nmetricsBindAddress: "${metrics}:1"`, flags).config);
  const pair = ['--tls-cert-file=a', '--tls-private-key-file=b'];
  for (const address of ['127.0.0.1', '127.3.2.1', '[::1]']) t.ok(serves(address), address);
  for (const address of ['0.0.0.0', '192.0.2.1', '[::]']) {
    t.notOk(serves(address), address);
    t.notOk(serves(address, ...pair), 'every client may use TLS');
    t.notOk(serves(address, ...pair, '--client-ca-file=c'), 'who shows no certificate is let in, too');
    t.ok(serves(address, ...pair, '--client-ca-file=c', '--anonymous-auth=false'));
    t.ok(serves(address, ...pair, '--authorization-config=f'));
  }
  t.end();
});

t.test('a new address that cannot be opened leaves the listeners as they were', async (t) => {
  const [first, second, third] = [await freePort(), await freePort(), await freePort()];
  const { server, port: taken } = await squat();
  t.teardown(() => shut(server));
  for (const hardFail of [false, true]) {
    const hard = `bindAddressHardFail: ${hardFail}`;
    const { listeners, fatal } = world(t, await configuration(`127.0.0.1:${first}`, `127.0.0.1:${second}`, hard));
    await listeners.start();
    for (const [health, metrics] of [
      [taken, third],
      [third, taken],
    ]) {
      const wanted = await configuration(
        `127.0.0.1:${health}`,
        `127.0.0.1:${metrics}`,
        `${hard}\nenableProfiling: true`,
      );
      await t.rejects(listeners.follow(wanted), {
        message: /^cannot serve .* on 127\.0\.0\.1 port \d+: listen EADDRINUSE/,
      });
      t.same([await ask(first, '/livez'), await ask(second, '/proxyMode')], [200, 200]);
      t.same([await ask(third, '/livez'), await ask(second, '/debug/pprof/')], [null, 404]);
    }
    t.same(fatal, [], 'what runs goes on');
    await listeners.close();
  }
});

t.test('a listener that waits for its address waits for a changed one instead', async (t) => {
  const [free, other] = [await freePort(), await freePort()];
  const { server, port: taken } = await squat();
  const { listeners, clock } = world(t, await configuration(`127.0.0.1:${taken}`, `127.0.0.1:${other}`));
  await listeners.start();
  t.equal(clock.waiting, 1);
  await listeners.follow(await configuration(`127.0.0.1:${free}`, `127.0.0.1:${other}`));
  t.equal(await ask(free, '/livez'), 200);
  await shut(server);
  await clock.advance(20_000);
  t.equal(await ask(taken, '/livez'), null);
});

t.test('a request over loopback has to name an address, whatever address metrics are bound to', async (t) => {
  const status = async (host: string, port: number, ...more: readonly string[]): Promise<number> =>
    (await curl(`${more.length > 0 ? 'https' : 'http'}://${host}:${port}/proxyMode`, ...more, '-H', 'Host: a.example'))
      .status;
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.internal === false && each.family === 'IPv4')?.address;
  for (const address of ['0.0.0.0', '[::]', '127.0.0.1']) {
    const port = await freePort();
    const { listeners } = world(t, await configuration(`127.0.0.1:${await freePort()}`, `"${address}:${port}"`));
    await listeners.start();
    t.equal(await status('127.0.0.1', port), 421, address);
    t.equal(await ask(port, '/proxyMode'), 200, address);
    if (address === '127.0.0.1') continue;
    t.equal(await status('127.0.0.9', port), 421, address);
    if (outside === undefined) t.comment('this machine has no address beside loopback');
    else t.equal(await status(outside, port), 200, `${outside} is for the network, which may use names`);
  }
  const port = await freePort();
  const tls = ['--metrics-tls', `--cert-dir=${t.testdir()}`];
  const { listeners } = world(t, fromFile(`metricsBindAddress: 127.0.0.1:${port}\n`, tls));
  await listeners.start();
  t.equal(await status('127.0.0.1', port, '--insecure'), 200, 'over TLS the certificate names this machine');
});
