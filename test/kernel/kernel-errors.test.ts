// What the process does where the kernel refuses everything: it says so, harms nothing, and goes on when it can.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type Row } from '../support/lab/packet-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { Proxy } from '../support/lab/proxy.js';

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });
const ROWS: readonly Row[] = FAMILY_VIEWS.map((view) => ({
  from: 'pod-c',
  to: endpoint(view.clusterIP(41), 80),
  expect: view.kept(['pod-a'], 80),
}));

async function status(lab: Lab): Promise<number | null> {
  const answer = await lab.http('node', 'http://127.0.0.1:10256/healthz');
  return 'status' in answer ? answer.status : null;
}

function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

t.test('without CAP_NET_ADMIN', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await proxy.stop('SIGTERM');
  const rules = await lab.ruleset();
  proxy.launch({}, ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', '--']);
  await eventually('a second attempt', () => Promise.resolve(count(proxy.log, /"sync failed again"/g) >= 2 || null));
  t.equal(await status(lab), 503);
  t.match(proxy.log, /EPERM.*CAP_NET_ADMIN/, 'it says what is missing');
  t.equal(count(proxy.log, /"sync failed, will be retried"/g), 2, 'once for each family');
  t.match(proxy.log, /"cannot follow what others do to the ruleset/);
  const metrics = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  t.match(
    'body' in metrics ? metrics.body : '',
    /pointsman_native_failures_total\{errno="EPERM",ip_family="IPv4"\} \d+/,
  );
  t.equal(await lab.ruleset(), rules, 'the rules stay as they were');
  await checkRows(t, lab, ROWS);
  t.equal(await proxy.stop('SIGTERM'), 0, 'and it can be ended');
});

t.test('a kernel without nf_tables, and one that gets it', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const missing = join(t.testdir(), 'missing');
  await writeFile(missing, '');
  const refuse = {
    nftTransact: 'EOPNOTSUPP',
    nftList: 'EOPNOTSUPP',
    nftGeneration: 'EOPNOTSUPP',
    nftWatch: 'EOPNOTSUPP',
  };
  const proxy = await Proxy.prepare(t, lab, { env: faulty({ refuse, while: missing }) });
  await proxy.write(OBJECTS);
  proxy.launch();
  await eventually('a second attempt', () => Promise.resolve(count(proxy.log, /"sync failed again"/g) >= 2 || null));
  t.match(proxy.log, /EOPNOTSUPP/);
  t.equal(await status(lab), 503);
  await rm(missing);
  await proxy.ready();
  t.equal(await status(lab), 200);
  t.match(proxy.log, /"sync works again"/);
  await checkRows(t, lab, ROWS);
  await proxy.consistent();
});

t.test('a kernel without ctnetlink, and one that gets it', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'pod-b'], [[53, 'UDP']]);
  const missing = join(t.testdir(), 'missing');
  await writeFile(missing, '');
  const refuse = { conntrackList: 'EOPNOTSUPP', conntrackDelete: 'EOPNOTSUPP' };
  const dns = (pod: 'pod-a' | 'pod-b'): ReturnType<typeof dualStack> =>
    dualStack('dns', { number: 42, ports: [{ protocol: 'UDP', port: 53 }], endpoints: [pod] });
  const proxy = await Proxy.prepare(t, lab, { env: faulty({ refuse, while: missing }) });
  await proxy.write(dns('pod-a'));
  proxy.launch();
  await proxy.ready();
  t.equal(await status(lab), 200, 'rules do not depend on it');
  const client = await lab.open({ from: 'pod-c', to: endpoint(IPV4.clusterIP(42), 53), protocol: 'UDP' });
  const who = async (): Promise<string> => {
    const answer = await client.exchange({ timeoutMs: 300 });
    return 'name' in answer ? answer.name : answer.error;
  };
  t.equal(await who(), 'pod-a');
  await proxy.write(dns('pod-b'));
  await proxy.synced();
  t.equal(await who(), 'pod-a', 'the flow goes on as it was');
  t.equal(await status(lab), 200);
  t.equal(count(proxy.log, /"cannot remove stale flows, will be retried"/g), 2, 'said once for each family');
  t.equal(count(proxy.log, /"sync failed/g), 0);
  await rm(missing);
  await eventually('the flow to move', async () => ((await who()) === 'pod-b' ? true : null));
});
