import type { Test } from 'tap';
import { endpoint, type Connection, type Lab, type Traffic, type Watch } from './lab.js';
import { dualStack, FAMILY_VIEWS, type Row } from './packet-table.js';
import type { PeerService } from './peer-iptables.js';

/** Who serves what is asked of {@link OBJECTS}, by `lab.serveAll`. */
export const PODS = ['pod-a', 'remote-a'] as const;
export const SERVED = [
  [80, 'TCP'],
  [53, 'UDP'],
] as const;

/** Some Services; {@link PEER_SERVICES} are the same as kube-proxy's rules have them. */
export const OBJECTS = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ name: 'p80', port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', { number: 42, affinitySeconds: 10800, ports: [{ name: 'p80', port: 80 }], endpoints: PODS }),
  ...dualStack('empty', { number: 43, ports: [{ name: 'p80', port: 80 }], endpoints: [] }),
  ...dualStack('dns', { number: 44, ports: [{ name: 'dns', port: 53, protocol: 'UDP' }], endpoints: PODS }),
];

export const PEER_SERVICES: readonly PeerService[] = [
  { name: 'default/web:p80', protocol: 'tcp', number: 41, port: 80, nodePort: 30001, loadBalancer: 3, pods: PODS },
  { name: 'default/sticky:p80', protocol: 'tcp', number: 42, port: 80, affinitySeconds: 10800, pods: PODS },
  { name: 'default/empty:p80', protocol: 'tcp', number: 43, port: 80, pods: [] },
  { name: 'default/dns:dns', protocol: 'udp', number: 44, port: 53, pods: PODS },
];

/** Where requests to them go, whichever of the two is there. */
export const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-b', to: endpoint(view.clusterIP(44), 53), protocol: 'UDP', expect: view.kept(PODS, 53) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);

/** Those of them that are answered. */
export const TARGETS: readonly Traffic[] = ROWS.filter(({ expect }) => expect.includes(':')).map(
  ({ from, to, protocol = 'TCP' }) => ({ from, to, protocol }),
);

/** Requests without pause, and connections that stay open, until the end of a test. */
export class SteadyTraffic {
  private constructor(
    private readonly connections: readonly { readonly connection: Connection; readonly name: string }[],
    private readonly watches: readonly { readonly watch: Watch; readonly target: Traffic }[],
  ) {}

  /** @param pauseMs between two requests to one target; @param held targets to which connections stay open. */
  static async start(
    lab: Lab,
    targets: readonly Traffic[],
    { pauseMs = 1, timeoutMs = 3000, held = targets } = {},
  ): Promise<SteadyTraffic> {
    const connections = await Promise.all(
      held.map(async (target) => {
        const connection = await lab.open(target);
        const answer = await connection.exchange({ timeoutMs });
        return { connection, name: 'name' in answer ? answer.name : answer.error };
      }),
    );
    const watches = targets.map(async (target) => ({
      watch: await lab.watch({ ...target, timeoutMs }, 1, pauseMs),
      target,
    }));
    return new SteadyTraffic(connections, await Promise.all(watches));
  }

  async check(t: Test, timeoutMs = 3000): Promise<void> {
    const outcomes = await Promise.all(
      this.watches.map(async ({ watch, target }) => (await watch.stop()).map((outcome) => ({ ...outcome, target }))),
    );
    t.ok(outcomes.flat().length > 0);
    t.same(
      outcomes.flat().filter((outcome) => 'error' in outcome),
      [],
      'no request is lost',
    );
    await this.goesOn(t, timeoutMs);
  }

  async goesOn(t: Test, timeoutMs = 3000): Promise<void> {
    for (const { connection, name } of this.connections)
      t.match(await connection.exchange({ timeoutMs }), { name }, 'an established connection goes on');
  }
}
