import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { service, slice, type EndpointText } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Destinations of UDP and SCTP, whose flows end with them. */

const PORTS = [{ port: 53, protocol: 'UDP' }] as const;
const DNS = service('dns', { clusterIPs: ['10.96.0.53'], ports: PORTS });
const REF = { kind: 'Service', namespace: 'default', name: 'dns' } as const;
const SERVING = { state: 'st' } as const;
const STOPPED = { state: 't' } as const;

function dns(endpoints: readonly EndpointText[]): Row {
  return slice('dns', endpoints, { ports: PORTS });
}

/** As many connections to each destination. */
function connections(rig: Rig, count: number): void {
  for (const { destinations } of rig.kernel.addon.ipvs.services.values())
    for (const destination of destinations.values()) destination.connections = count;
}

const [ONE, OTHER, THIRD] = ['10.0.2.1', '10.0.2.2', '10.0.2.3'].map((address) => ({ address, node: 'other' })) as [
  EndpointText,
  EndpointText,
  EndpointText,
];

async function started(): Promise<Rig> {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, DNS, dns([ONE, OTHER])]);
  await rig.sync();
  connections(rig, 1);
  return rig;
}

t.test('UDP destinations are removed at once; a removed UDP Service is reported for its flows', async (t) => {
  const rig = await started();
  rig.commit([dns([OTHER])]);
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -d -u 10.96.0.53:53 -r 10.0.2.1:53']);
  rig.restart();
  rig.commit([], [REF]);
  await rig.sync();
  t.same([...rig.dataplane.goneFlows()], ['10.96.0.53:53/UDP'], 'a process that starts anew knows it by the kernel');
  t.equal(rig.kernel.addon.ipvs.services.size, 0);
});

t.test('a terminating endpoint that serves keeps its UDP flows and gets no new ones', async (t) => {
  const rig = await started();
  rig.commit([dns([{ ...ONE, ...SERVING }, OTHER])]);
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -e -u 10.96.0.53:53 -r 10.0.2.1:53 -m -w 0']);
  t.same(await rig.difference(), [], 'it is no difference');
  rig.restart();
  t.same(await rig.during(() => rig.sync()), [], 'also after a restart');
  rig.commit([dns([{ ...ONE, ...STOPPED }, OTHER])]);
  t.same(await rig.during(() => rig.sync()), ['ipvsadm -d -u 10.96.0.53:53 -r 10.0.2.1:53'], 'until it does not serve');

  rig.commit([dns([{ ...ONE, ...SERVING }, { ...OTHER, ...SERVING }, THIRD])]);
  await rig.sync();
  connections(rig, 0);
  rig.now += 10_000;
  t.same(
    await rig.during(() => rig.sync()),
    ['ipvsadm -d -u 10.96.0.53:53 -r 10.0.2.2:53'],
    'or has no flows; one without a place is given none',
  );
});

t.test('a removed UDP Service does not wait for flows to a serving endpoint', async (t) => {
  for (const restarted of [false, true]) {
    const rig = await started();
    rig.commit([dns([{ ...ONE, ...SERVING }, OTHER])]);
    await rig.sync();
    if (restarted) rig.restart();
    rig.commit([], [REF]);
    await rig.sync();
    t.equal(rig.kernel.addon.ipvs.services.size, 0);
  }
});
