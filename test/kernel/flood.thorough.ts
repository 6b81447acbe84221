// Ten thousand connections to the secured metrics address: nobody gets what is not for him, nothing runs out, and what the process is for goes on.
// needs: curl
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Authority } from '../support/certificates.js';
import type { FloodOptions, FloodReport } from '../support/flood.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { describeOutcomes, endpoint, eventually, Lab } from '../support/lab/lab.js';
import { dualStack, IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { slownessOfCore } from '../support/slowness.js';

const COUNT = 10_000;
const LOOK_MS = 100;
const NODE = ADDRESSES.node.IPv4;
const SCRIPT = fileURLToPath(new URL('../support/flood.js', import.meta.url));
/** As many connections as are kept, and those that come and go meanwhile. */
const MAX_DESCRIPTORS = 256 + 64;
const MAX_KILOBYTES = 160 * 1024;
/** CPU of the process for each connection: one that ends before a handshake, and one that gets an answer. The slower the flood comes the more of these there are. */
const MAX_CPU_MS = { closed: 0.5, answered: 6 };

const authority = new Authority();
t.teardown(() => {
  authority.remove();
});

/** What a process has open and has used. */
interface Usage {
  readonly descriptors: number;
  readonly kilobytes: number;
  readonly peakKilobytes: number;
  readonly cpuMs: number;
}

function usage(pid: number): Usage {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
  // proc(5): of what follows the name, utime and stime are the 12th and 13th, in hundredths of a second.
  const times = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11, 13) ?? [];
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    kilobytes: kilobytes('VmRSS'),
    peakKilobytes: kilobytes('VmHWM'),
    cpuMs: times.reduce((sum, ticks) => sum + Number(ticks) * 10, 0),
  };
}

t.test('a flood of connections', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const plane = await ControlPlane.start(t, lab);
  await plane.review({
    users: { 'a-token': { username: 'monitoring' } },
    rules: [{ who: 'monitoring', nonResourceURLs: ['/metrics'], verbs: ['get'] }],
  });
  const { certificateFile, keyFile } = authority.issue({ commonName: 'n', alternativeNames: [`IP:${NODE}`] });
  const web = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });
  const proxy = await Proxy.start(t, lab, {
    cluster: plane,
    flags: [
      ...['--tls-cert-file', certificateFile, '--tls-private-key-file', keyFile],
      ...['--authentication-token-webhook', '--authorization-mode', 'Webhook', '--anonymous-auth=false'],
    ],
    config: { metricsBindAddress: '0.0.0.0:10249' },
    objects: web,
  });
  const { pid } = proxy;
  if (pid === null) throw new Error('there is no process');
  /** Milliseconds until packets follow a change. */
  const change = async (): Promise<number> => {
    const started = Date.now();
    await proxy.write(web);
    await proxy.synced();
    return Date.now() - started;
  };
  const median = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[times.length >> 1] ?? 0;
  const scrape = ['-m', '60', '--cacert', authority.own.certificateFile, '-H', 'Authorization: Bearer a-token'];
  const scraped = async (): Promise<true | null> => {
    const { stdout } = await lab.run('remote-node', ['curl', '-s', ...scrape, `https://${NODE}:10249/metrics`]);
    return stdout.includes('kubeproxy_sync_proxy_rules_duration_seconds_count') || null;
  };
  t.ok(await scraped());
  const quiet = [await change(), await change(), await change()];
  const before = usage(pid);

  const flood: FloodOptions = {
    host: NODE,
    port: 10249,
    authority: authority.own.certificate,
    token: 'a-token',
    count: COUNT,
  };
  const traffic = await lab.watch({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80) }, 1, 50);
  const child = lab.spawn('remote-node', [process.execPath, SCRIPT, JSON.stringify(flood)]);
  let last: FloodReport = { made: 0, outcomes: null };
  let complaints = '';
  child.stderr.on('data', (text: Buffer) => (complaints += text.toString()));
  createInterface({ input: child.stdout }).on('line', (line) => (last = JSON.parse(line) as FloodReport));
  const reached = (made: number): Promise<true> => {
    const isThere = (): Promise<true | null> =>
      complaints === '' ? Promise.resolve(last.made >= made || null) : Promise.reject(new Error(complaints));
    return eventually(`${made} connections`, isThere, 200_000);
  };

  let descriptors = 0;
  const look = setInterval(() => (descriptors = Math.max(descriptors, usage(pid).descriptors)), LOOK_MS);
  t.teardown(() => {
    clearInterval(look);
  });
  const busy: number[] = [];
  for (let made = 1000; last.made < COUNT; made += 1000) {
    await reached(made);
    const taken = await change();
    t.match(await lab.http('remote-node', `http://${NODE}:10256/healthz`), { status: 200 }, 'health is open');
    if (last.made < COUNT) busy.push(taken);
  }
  t.ok(busy.length > 1, 'changes reach the kernel before the flood has ended');
  t.comment(`changes: ${quiet.join()} ms before, ${busy.join()} ms meanwhile`);
  t.ok(median(busy) < 10 * median(quiet) + 1000, 'and take little longer');
  t.same(describeOutcomes(await traffic.stop()), [endpoint(ADDRESSES['pod-a'].IPv4, 80)], 'every packet arrives');

  clearInterval(look);
  const outcomes = await eventually('the end of all', () => Promise.resolve(last.outcomes), 200_000);
  t.comment(`outcomes: ${JSON.stringify(outcomes)}`);
  t.same(Object.keys(outcomes).sort(), ['401', '403', '408', 'closed'], 'and nothing else');
  t.equal(
    Object.values(outcomes).reduce((sum, number) => sum + number, 0),
    COUNT,
  );
  const after = usage(pid);
  t.comment(`${descriptors} descriptors at most, before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
  t.ok(descriptors <= before.descriptors + MAX_DESCRIPTORS);
  t.ok(after.peakKilobytes - before.kilobytes < MAX_KILOBYTES);
  const { closed = 0 } = outcomes;
  const mostMs = slownessOfCore() * (MAX_CPU_MS.closed * closed + MAX_CPU_MS.answered * (COUNT - closed));
  t.ok(after.cpuMs - before.cpuMs < mostMs, `${after.cpuMs - before.cpuMs} ms of CPU, at most ${mostMs}`);
  const { reviews } = await plane.state();
  t.ok(
    (reviews['SubjectAccessReview'] ?? 0) < 20 && (reviews['TokenReview'] ?? 0) < 10,
    'nor is the API server flooded',
  );
  await eventually('descriptors that are given back', () =>
    Promise.resolve(usage(pid).descriptors <= before.descriptors + 8 || null),
  );
  await eventually('who may see metrics does', scraped);
});
