// What the Node says, and what becomes of it while the process runs: behaviour §3.2, §3.3.
import { readFile, writeFile } from 'node:fs/promises';
import type { Test } from 'tap';
import t from 'tap';
import { inFull } from '../support/extent.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab, type HttpAnswer } from '../support/lab/lab.js';
import { node, type Manifest, type NodeOptions } from '../support/lab/objects.js';
import {
  checkRows,
  dualStack,
  FAMILY_VIEWS,
  IPV4,
  IPV6,
  type FamilyView,
  type Row,
} from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const REMOTE = ['remote-b'] as const;
const OWN: NodeOptions = { addresses: Object.values(ADDRESSES.node), podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'] };
const HERE = 'zone-here';
const THERE = 'zone-there';

/** One endpoint elsewhere, so that whoever counts as a pod keeps its address; and one by zones. */
const OBJECTS: readonly Manifest[] = [
  ...dualStack('web', { number: 41, type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }], endpoints: REMOTE }),
  ...dualStack('zoned', {
    number: 42,
    ports: [{ port: 80 }],
    endpoints: [
      { pod: 'remote-a', zoneHints: [HERE] },
      { pod: 'remote-b', zoneHints: [THERE] },
    ],
  }),
];

interface World {
  readonly lab: Lab;
  readonly plane: ControlPlane;
  readonly proxy: Proxy;
}

async function prepared(t: Test, config: Readonly<Record<string, unknown>>, own: NodeOptions): Promise<World> {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-a', 'remote-b'], [[80, 'TCP']]);
  const plane = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { config, node: node(NODE_NAME, own), cluster: plane });
  await proxy.write(OBJECTS);
  return { lab, plane, proxy };
}

/** Pod-a counts as a pod if `pod`, and as anybody else if not. */
function detectorRows(pod: boolean, views: readonly FamilyView[] = FAMILY_VIEWS): readonly Row[] {
  return views.map((view) => ({
    from: 'pod-a',
    to: endpoint(view.clusterIP(41), 80),
    expect: pod ? view.kept(REMOTE, 80) : view.masqueraded(REMOTE, 80),
  }));
}

t.test('ST-15, ST-16: NodeCIDR works once the Node appears and gets pod CIDRs', async (t) => {
  const config = { detectLocalMode: 'NodeCIDR', clusterCIDR: '' };
  const { lab, plane, proxy } = await prepared(t, config, { addresses: OWN.addresses });
  proxy.launch();
  await eventually('what it waits for in the log', () =>
    Promise.resolve(/Node node-1 has no podCIDRs.*nothing is programmed/.test(proxy.log) || null),
  );
  t.match(await lab.http('node', 'http://127.0.0.1:10256/healthz'), { status: 503 });
  t.equal(await lab.ruleset(), '', 'nothing is programmed by guess');
  await plane.put(node(NODE_NAME, OWN));
  await proxy.ready();
  await checkRows(t, lab, detectorRows(true));

  await plane.put(node(NODE_NAME, { ...OWN, podCIDRs: ['10.244.7.0/24', 'fd00:244:7::/64'] }));
  await followed(t, lab, detectorRows(false), 'other pod CIDRs');
  await plane.put(node(NODE_NAME, OWN));
  await followed(t, lab, detectorRows(true), 'and back');

  await plane.put(node(NODE_NAME, { addresses: OWN.addresses }));
  await eventually('a warning', () =>
    Promise.resolve(/no podCIDRs any more, the last known stay/.test(proxy.log) || null),
  );
  await checkRows(t, lab, detectorRows(true), 'a Node made anew');
  await plane.put(node(NODE_NAME, OWN));
  t.equal(await proxy.stop('SIGTERM'), 0);
});

t.test('a change to NodeCIDR without pod CIDRs programs nothing, and /healthz says so', async (t) => {
  const config = { nftables: { syncPeriod: '1s' }, iptables: { syncPeriod: '1s' } };
  const { lab, plane, proxy } = await prepared(t, config, { addresses: OWN.addresses });
  await proxy.restart();
  const get = (path: string): Promise<HttpAnswer> => lab.http('node', `http://127.0.0.1:10256${path}`);
  const becomes = (status: number, body: RegExp): Promise<boolean> =>
    eventually(`${status} ${String(body)}`, async () => {
      const answer = await get('/healthz?verbose');
      return ('status' in answer && answer.status === status && body.test(answer.body)) || null;
    });
  await becomes(200, /^(?!.*held)/);
  const written = JSON.parse(await readFile(proxy.configFile, 'utf8')) as object;
  await writeFile(proxy.configFile, JSON.stringify({ ...written, detectLocalMode: 'NodeCIDR' }));
  await becomes(503, /"held":"Node node-1 has no podCIDRs/);
  t.match(await get('/livez'), { status: 200 }, 'a new process would wait as well');
  await plane.put(node(NODE_NAME, OWN));
  await becomes(200, /^(?!.*held)/);
  await checkRows(t, lab, detectorRows(true));
});

t.test('ST-14, ST-21, WA-13: changed addresses and zone of the Node and its interfaces are used', async (t) => {
  const { lab, plane, proxy } = await prepared(t, { nodePortAddresses: ['primary'] }, OWN);
  await proxy.restart();
  const alternate = (view: FamilyView): string => view.nodePort(30001, 'alternate');
  const rows = (moved: boolean): readonly Row[] =>
    FAMILY_VIEWS.flatMap((view) => [
      { from: 'client', to: view.nodePort(30001), expect: moved ? 'refused' : view.masqueraded(REMOTE, 80) },
      { from: 'client', to: alternate(view), expect: moved ? view.masqueraded(REMOTE, 80) : 'refused' },
    ]);
  await checkRows(t, lab, rows(false));
  await plane.put(node(NODE_NAME, { ...OWN, addresses: Object.values(ADDRESSES.alternate) }));
  await followed(t, lab, rows(true), 'another address of the Node');
  await plane.put(node(NODE_NAME, OWN));
  await followed(t, lab, rows(false), 'and back');

  const added = { IPv4: '198.18.7.7', IPv6: '2001:db8:18::7' };
  await plane.put(node(NODE_NAME, { ...OWN, addresses: Object.values(added) }));
  for (const view of FAMILY_VIEWS)
    await lab.addAddress('node', 'lo', `${added[view.family]}/${view.family === 'IPv4' ? 32 : 128}`);
  const addedRows = FAMILY_VIEWS.map((view) => ({
    from: 'node',
    to: endpoint(added[view.family], 30001),
    expect: view.masqueraded(REMOTE, 80),
  }));
  await followed(t, lab, addedRows, 'an address that an interface gets later');
  await plane.put(node(NODE_NAME, OWN));
  await followed(t, lab, rows(false), 'and back once more');

  const zoned = (pods: readonly ('remote-a' | 'remote-b')[]): readonly Row[] =>
    FAMILY_VIEWS.map((view) => ({
      from: 'pod-b',
      to: endpoint(view.clusterIP(42), 80),
      expect: view.kept(pods, 80),
    }));
  await checkRows(t, lab, zoned(['remote-a', 'remote-b']), 'no zone');
  await plane.put(node(NODE_NAME, { ...OWN, zone: HERE }));
  await followed(t, lab, zoned(['remote-a']), 'in a zone');
  await plane.put(node(NODE_NAME, { ...OWN, zone: THERE }));
  await followed(t, lab, zoned(['remote-b']), 'in another');
  await plane.put(node(NODE_NAME, OWN));
  await followed(t, lab, zoned(['remote-a', 'remote-b']), 'in none');
  await proxy.consistent();
});

t.test('ST-20: bindAddress replaces the Node’s address of its family', inFull, async (t) => {
  const config = { nodePortAddresses: ['primary'], bindAddress: ADDRESSES.alternate.IPv4 };
  const { lab, proxy } = await prepared(t, config, OWN);
  await proxy.restart();
  await checkRows(t, lab, [
    { from: 'client', to: IPV4.nodePort(30001), expect: 'refused' },
    { from: 'client', to: IPV4.nodePort(30001, 'alternate'), expect: IPV4.masqueraded(REMOTE, 80) },
    { from: 'client', to: IPV6.nodePort(30001), expect: IPV6.masqueraded(REMOTE, 80) },
    { from: 'client', to: IPV6.nodePort(30001, 'alternate'), expect: 'refused' },
  ]);
});

t.test('ST-31, ST-33: a machine without IPv6 serves IPv4 only', async (t) => {
  const { lab, proxy } = await prepared(t, {}, OWN);
  await lab.sysctl('node', 'net/ipv6/conf/all/disable_ipv6', '1');
  proxy.launch();
  await eventually('healthy with one family', async () => {
    const answer = await lab.http('node', 'http://127.0.0.1:10256/healthz');
    return ('status' in answer && answer.status === 200) || null;
  });
  t.match(proxy.log, /"starting".* families="IPv4"/);
  await checkRows(t, lab, detectorRows(true, [IPV4]));
  t.notMatch(await lab.ruleset(), /table ip6/);
  t.equal(await proxy.stop('SIGTERM'), 0);
  const wrong = await prepared(t, { clusterCIDR: 'fd00::/64' }, OWN);
  await wrong.lab.sysctl('node', 'net/ipv6/conf/all/disable_ipv6', '1');
  wrong.proxy.launch();
  await eventually('the end', () => Promise.resolve(wrong.proxy.ended || null));
  t.equal(await wrong.proxy.stop(), 1, 'a detector that can never match');
  t.match(wrong.proxy.log, /clusterCIDR has nothing of IPv4/);
  t.equal(await wrong.lab.ruleset(), '', 'nothing was programmed');
});

/** Waits until the rows hold, each by one request, then checks them as always. */
async function followed(t: Test, lab: Lab, rows: readonly Row[], state: string): Promise<void> {
  for (const { from, to, expect } of rows) {
    await eventually(`${state}: ${from} to ${to}`, async () => {
      // Several times: one answer of the right endpoint may be chance while there are still two.
      const found = await lab.verdict({ from, to, timeoutMs: 900 });
      return found === expect || null;
    });
  }
  await checkRows(t, lab, rows, state);
}
