// pointsman top: what goes through Services per second, from what the process counts.
// needs: nft
import t from 'tap';
import { busiest, printTop, ratesOf, type TopRow } from '../../src/cli/top.js';
import { eventually, Lab } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';

const row = (servicePort: string, connections: number, bytes: number, refused = 0): TopRow => ({
  servicePort,
  endpoint: null,
  connections,
  bytes,
  refused,
});
const byKey = (...rows: readonly TopRow[]): ReadonlyMap<string, TopRow> =>
  new Map(rows.map((each) => [each.servicePort, each]));

t.test('top computes rates, and sorts by them', (t) => {
  const before = byKey(row('a/a/TCP', 10, 1000), row('a/b/TCP', 5, 100), row('a/d/TCP', 900, 9));
  const now = byKey(row('a/a/TCP', 10, 5096), row('a/b/TCP', 25, 100), row('a/c/TCP', 2, 2, 8), row('a/d/TCP', 4, 9));
  const rates = ratesOf(before, now, 2);
  t.same(
    busiest(rates, 'connections'),
    [row('a/b/TCP', 10, 0), row('a/d/TCP', 2, 0), row('a/c/TCP', 1, 1, 4), row('a/a/TCP', 0, 2048)],
    'one that is new, and one that was set back, begin with nothing',
  );
  t.same(
    busiest(rates, 'bytes').map(({ servicePort }) => servicePort),
    ['a/a/TCP', 'a/c/TCP', 'a/b/TCP', 'a/d/TCP'],
  );
  t.same(busiest(ratesOf(now, now, 2), 'bytes'), [], 'without traffic there is nothing to show');
  t.same(printTop(busiest(rates, 'refused'), 1), [
    'SERVICE  CONNECTIONS/S  BYTES/S  REFUSED/S',
    'a/c/TCP  1.0            1        4.0',
    'and 3 more; --limit 0 lists all',
  ]);
  t.same(
    printTop([row('a/c/TCP', 1, 1), { ...row('a/c/TCP', 1, 1), endpoint: '10.1.1.1:80' }], 0),
    [
      'SERVICE  ENDPOINT     CONNECTIONS/S  BYTES/S  REFUSED/S',
      'a/c/TCP               1.0            1        0.0',
      'a/c/TCP  10.1.1.1:80  1.0            1        0.0',
    ],
    'a column for endpoints where there are any',
  );
  t.match(printTop([row('a/a/TCP', 0, 2048)], 0)[1], / 2\.0Ki /);
  t.same(printTop([], 0), ['no traffic']);
  t.end();
});

t.test('top prints rates of a running process', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
  const objects = [
    ...dualStack('web', { number: 41, ports: [{ name: 'http', port: 80, targetPort: 8080 }], endpoints: ['pod-a'] }),
    ...dualStack('empty', { number: 43, ports: [{ name: 'http', port: 80, targetPort: 8080 }], endpoints: [] }),
  ];
  const flags = ['--service-telemetry', '--service-telemetry-endpoints'];
  const proxy = await Proxy.start(t, lab, { objects, flags });
  const watched = await lab.watch({ from: 'pod-b', to: '10.96.0.41:80' }, 1, 5);
  const refused = await lab.watch({ from: 'pod-b', to: '10.96.0.43:80' }, 1, 20);
  const socket = ['--status-socket', proxy.statusSocket];
  const run = (...words: readonly string[]): Promise<string> =>
    lab.output('node', ['node', PROGRAM, 'top', '--seconds=1', ...words, ...socket]);
  const [web, endpoint] = await eventually('connections are counted', async () => {
    const rows = JSON.parse(await run('--count=1', '--endpoints', '-o', 'json')) as readonly TopRow[];
    const found = rows.filter((each) => each.servicePort === 'default/web:http/TCP');
    return found.length === 2 ? found.sort((one) => (one.endpoint === null ? -1 : 1)) : null;
  });
  t.ok((web?.connections ?? 0) > 1 && (web?.bytes ?? 0) > 100, JSON.stringify(web));
  t.match(endpoint, { endpoint: '10.244.1.10:8080', connections: web?.connections }, 'its endpoint, too');
  // On busy cores an interval may have none.
  await eventually('refused packets come first', async () => {
    const text = await run('--count=1', '--sort', 'refused');
    const first = /^SERVICE +CONNECTIONS\/S +BYTES\/S +REFUSED\/S\ndefault\/empty:http\/TCP +0\.0 +0 +[1-9]/;
    return first.test(text) ? text : null;
  });
  await Promise.all([watched.stop(), refused.stop()]);

  const silent = await Proxy.prepare(t, await Lab.start(t));
  await silent.write([]);
  await silent.restart();
  const off = await lab.run('node', ['node', PROGRAM, 'top', '--count=1', '--status-socket', silent.statusSocket]);
  t.match(off, { status: 2, stdout: '', stderr: /set --service-telemetry/ });
});
