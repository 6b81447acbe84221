// Faults between the process and the API server: `status` names each in one step, with the answer seen and the remedy.
// needs: nft
import t, { type Test } from 'tap';
import { ControlPlane } from '../support/lab/control-plane.js';
import { Lab } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy, type ProxyOptions } from '../support/lab/proxy.js';
import { named, type Fault, type Scene } from './fault-scene.js';

interface ApiFault extends Pick<Fault, 'name' | 'says'> {
  readonly make: (cluster: ControlPlane) => Promise<unknown>;
  /** Absent: it cannot be undone. */
  readonly undo?: (cluster: ControlPlane) => Promise<unknown>;
}

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });

/** Answers of a real API server. */
const answer = (code: number, reason: string, message: string) => (cluster: ControlPlane) =>
  cluster.fault({ fault: { type: 'status', code, reason, message }, resource: null });

const freeze =
  (frozen: boolean) =>
  (cluster: ControlPlane): Promise<void> => {
    cluster.freeze(frozen);
    return Promise.resolve();
  };

const AWAY: ApiFault = {
  name: 'it is away',
  make: (cluster) => cluster.kill(),
  undo: (cluster) => cluster.launch(),
  says: [
    /services.* cannot be read from the API server, what was read stays in use: unavailable: .*ECONNREFUSED/,
    /remedy: check that it runs and is reachable from here: curl -k URL\/livez/,
  ],
};

const ANSWERS: readonly ApiFault[] = [
  {
    name: '401',
    make: answer(401, 'Unauthorized', 'Unauthorized'),
    says: [
      /services.* cannot be read from the API server, .*unauthorized: 401: Unauthorized/,
      /remedy: give clientConnection\.kubeconfig a token or certificate/,
    ],
  },
  {
    name: '403',
    make: answer(403, 'Forbidden', 'services is forbidden: User "me" cannot list resource "services"'),
    says: [
      /cannot be read from the API server, .*forbidden: 403: services is forbidden: User "me" cannot list/,
      /remedy: grant get, list and watch of it: bind the ClusterRole system:node-proxier/,
    ],
  },
];

const byStatus = (says: Fault['says']): Pick<Fault, 'command' | 'says'> => ({ command: ['status'], says });
const WELL = { ...byStatus([/\nhealthy\n/]), exit: 0 } as const;

async function scene(
  t: Test,
  options: ProxyOptions = {},
): Promise<{ readonly cluster: ControlPlane; readonly at: Scene }> {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const cluster = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { ...options, cluster });
  await proxy.write(OBJECTS);
  return { cluster, at: { lab, proxy } };
}

t.test('table of faults: API server faults from the start are named', async (t) => {
  const hanging: ApiFault = {
    name: 'it hangs',
    make: freeze(true),
    undo: freeze(false),
    says: [
      /services, endpointslices, nodes.* cannot be read .* silent: no answer in the \d+ s since the start/,
      /remedy: check that it runs and is reachable from here/,
    ],
  };
  for (const fault of [AWAY, hanging, ...ANSWERS])
    await t.test(fault.name, async (t) => {
      const { cluster, at } = await scene(t);
      await fault.make(cluster);
      at.proxy.launch();
      await named(t, at, byStatus(fault.says));
      await (fault.undo ?? (() => cluster.clearFaults()))(cluster);
      await at.proxy.ready();
      await named(t, at, WELL);
    });
});

t.test('table of faults: API server faults of a running proxy are named', async (t) => {
  const { cluster, at } = await scene(t);
  at.proxy.launch();
  await at.proxy.ready();
  await t.test(AWAY.name, async (t) => {
    await cluster.kill();
    await named(t, at, byStatus(AWAY.says));
    const { stdout } = await at.lab.run('node', ['curl', '-s', '-m', '60', 'http://127.0.0.1:10256/healthz?verbose']);
    t.match(stdout, /"observations":\[\{"kind":"api-server",.*ECONNREFUSED/, 'the reason is in /healthz?verbose');
    t.match(stdout, /"healthy":true/, 'which stays what load balancers need');
    await cluster.launch();
    await at.proxy.synced();
    await named(t, at, WELL);
  });
});

t.test('table of faults: a node name that the API server does not know is named', async (t) => {
  const { at } = await scene(t, { config: { hostnameOverride: 'node-9' } });
  at.proxy.launch();
  await named(
    t,
    at,
    byStatus([
      /there is no Node "node-9"/,
      /remedy: set --hostname-override to the name of this Node \(kubectl get nodes\)/,
    ]),
  );
});
