// Ten thousand connections to one removed endpoint: docs/when-endpoints-die.md.
// needs: nft
import { createInterface } from 'node:readline';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { eventually, Lab } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { silence } from './silence.js';

const COUNT = 10_000;
const MOST_A_SECOND = 5000;
/** For a change of another Service, while connections are reset. */
const CHANGE_MS = 2000;
/** Without a reset an idle connection lasts for ever. */
const ALL_MS = 60_000;
const SCRIPT = projectFile('test/support/lab/many.py');

interface Report {
  readonly serving?: number;
  readonly connected?: number;
  readonly first?: boolean;
  readonly ended?: number;
  readonly resets?: number;
  readonly challenges?: number;
  readonly most?: number;
}

/** What such a process reports from now on, all together. */
function many(lab: Lab, namespace: string, ...args: readonly string[]): { report: Report; end: () => void } {
  const child = lab.spawn(namespace, ['python3', '-B', SCRIPT, ...args]);
  const found: { report: Report; end: () => void } = { report: {}, end: () => child.kill('SIGKILL') };
  createInterface({ input: child.stdout }).on('line', (line) => {
    found.report = { ...found.report, ...(JSON.parse(line) as Report) };
  });
  child.stderr.on('data', (text: Buffer) => {
    t.comment(text.toString());
  });
  return found;
}

function objects(endpoints: readonly ('remote-a' | 'remote-b')[], others: number): Manifest[] {
  return [
    ...dualStack('web', {
      number: 41,
      ports: [{ port: 80 }],
      endpoints: endpoints.map((pod) => ({ pod, targetKind: 'Pod' })),
    }),
    ...dualStack('other', { number: 42, ports: [{ port: 80 + others }], endpoints: ['pod-a'] }),
  ];
}

for (const view of FAMILY_VIEWS)
  t.test(`ten thousand connections to a removed endpoint are reset: ${view.family}`, async (t) => {
    const lab = await Lab.start(t);
    const proxy = await Proxy.start(t, lab, { objects: objects(['remote-b'], 0) });
    const server = many(lab, 'remote-b', 'serve', '80');
    await eventually('a server', () => Promise.resolve(server.report.serving ?? null));
    const client = many(lab, 'pod-c', 'connect', view.clusterIP(41), '80', String(COUNT));
    await eventually('all connections', () => Promise.resolve(client.report.connected ?? null), 200_000);

    await silence(lab, 'remote-b');
    const removedAt = Date.now();
    await proxy.write(objects([], 0));
    await eventually('the first reset', () => Promise.resolve(client.report.first ?? null), ALL_MS);
    const firstAfter = Date.now() - removedAt;
    const changedAt = Date.now();
    await proxy.write(objects([], 1));
    await proxy.synced();
    const taken = Date.now() - changedAt;
    const isBusy = client.report.ended === undefined;
    await eventually('the end of all', () => Promise.resolve(client.report.ended ?? null), ALL_MS);
    const { resets = 0, challenges = 0, most = 0 } = client.report;
    t.comment(
      `first after ${firstAfter} ms, all after ${Date.now() - removedAt} ms; ${challenges} challenges, ` +
        `${most} within a second at most; another Service's change took ${taken} ms`,
    );
    t.equal(resets, COUNT, 'all learn by a reset');
    t.ok(challenges >= COUNT && challenges <= 2 * COUNT, `${challenges} challenges`);
    t.ok(most <= MOST_A_SECOND, `${most} challenges within a second`);
    t.ok(isBusy, 'connections are still being reset when another Service has changed');
    t.ok(taken <= CHANGE_MS, `a change of another Service takes ${taken} ms`);
    const metrics = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    t.match(
      'body' in metrics ? metrics.body : '',
      `pointsman_reset_connections_total{ip_family="${view.family}"} ${COUNT}`,
    );
    server.end();
  });
