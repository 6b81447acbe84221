// What the process does where the kernel refuses everything, or one frontend: it says so, harms nothing, and goes on when it can.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { packFrontend } from '../../src/dataplane/nftables/keys.js';
import { ControlPlane } from '../support/lab/control-plane.js';
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

t.test('a proxy without CAP_NET_ADMIN reports it', async (t) => {
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
  t.match(proxy.log, /"cannot watch the ruleset/);
  const metrics = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  t.match(
    'body' in metrics ? metrics.body : '',
    /pointsman_native_failures_total\{errno="EPERM",ip_family="IPv4"\} \d+/,
  );
  t.equal(await lab.ruleset(), rules, 'the rules stay as they were');
  await checkRows(t, lab, ROWS);
  t.equal(await proxy.stop('SIGTERM'), 0, 'and it can be ended');
});

t.test('a kernel without nf_tables is reported, and used once it has it', async (t) => {
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
  // The sync ends after its rules are in the kernel, which is what health waits for.
  await eventually('the log says so', () => Promise.resolve(/"sync works again"/.test(proxy.log) || null));
  await checkRows(t, lab, ROWS);
  await proxy.consistent();
});

t.test('a kernel without ctnetlink is reported, and used once it has it', async (t) => {
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
    const answer = await client.exchange();
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

t.test('a frontend that the kernel refuses is quarantined, and all others are served', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'pod-b'], [[80, 'TCP']]);
  const refusing = join(t.testdir(), 'refusing');
  await writeFile(refusing, '');
  const frontend = `${IPV4.clusterIP(42)}:80/TCP`;
  const spoil = { set: 'frontends', key: Buffer.from(packFrontend(frontend), 'latin1').toString('hex') };
  const cluster = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { env: faulty({ spoil, while: refusing }), cluster });
  const web = (number: number, pod: 'pod-a' | 'pod-b'): ReturnType<typeof dualStack> =>
    dualStack(`web-${number}`, { number, ports: [{ port: 80 }], endpoints: [pod] });
  const row = (number: number, view: typeof IPV4, pod: 'pod-a' | 'pod-b'): Row => ({
    from: 'pod-c',
    to: endpoint(view.clusterIP(number), 80),
    expect: view.kept([pod], 80),
  });
  const refused = async (): Promise<string> => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    return (
      /pointsman_quarantined_frontends\{ip_family="IPv4"\} (\d+)/.exec('body' in answer ? answer.body : '')?.[1] ?? ''
    );
  };
  const healthz = async (): Promise<string> => {
    const answer = await lab.http('node', 'http://127.0.0.1:10256/healthz?verbose');
    return 'body' in answer ? answer.body : '';
  };
  await proxy.write([...web(41, 'pod-a'), ...web(42, 'pod-a')]);
  await proxy.restart();
  t.match(JSON.parse(await healthz()), { quarantined: [{ frontend, servicePort: 'default/web-42' }] });
  t.equal(await refused(), '1');
  const { families } = await proxy.status();
  t.match(
    families.map(({ quarantined }) => quarantined.map((quarantined) => [quarantined.frontend, quarantined.reason])),
    [[[frontend, /ENOENT/]], []],
  );
  t.match(await proxy.explain('external', frontend), { refusedByKernel: /ENOENT/ });
  const events = async (): Promise<number> =>
    (await cluster.state()).events.filter(({ reason }) => reason === 'ProgrammingFailed').length;
  await eventually('the event', async () => ((await events()) === 1 ? true : null));
  t.equal(count(proxy.log, /"the kernel refuses a frontend, which is quarantined/g), 1);
  t.equal(count(proxy.log, /"sync failed/g), 0);

  const compared = count(proxy.log, /"synced".*full=true/g);
  await proxy.write([...web(41, 'pod-b'), ...web(42, 'pod-a')]);
  const [, ipv6 = IPV4] = FAMILY_VIEWS;
  for (const view of [IPV4, ipv6])
    await eventually('the other endpoint', async () => {
      const answer = await lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) });
      return 'name' in answer && answer.name === 'pod-b' ? true : null;
    });
  await checkRows(t, lab, [row(41, IPV4, 'pod-b'), row(41, ipv6, 'pod-b'), row(42, ipv6, 'pod-a')]);
  t.equal(compared, 2, 'once for each family');
  t.equal(count(proxy.log, /"synced".*full=true/g), compared, 'the change was incremental');

  await rm(refusing);
  await eventually('the frontend', async () => ((await refused()) === '0' ? true : null));
  await checkRows(t, lab, [row(42, IPV4, 'pod-a')]);
  t.notMatch(await healthz(), /quarantined/);
  t.match(proxy.log, /"a frontend is no longer quarantined"/);
  t.equal(await events(), 1, 'reported once');
  t.equal(count(proxy.log, /"synced".*full=true/g), compared);
  await proxy.consistent();
});
