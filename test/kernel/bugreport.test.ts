// pointsman bugreport: one archive that tar(1) reads, which says what is in it and holds no credential.
// needs: nft
import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Lab } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PROGRAM } from '../support/program.js';

const SECRET = 'token-of-the-environment-7f3a';

t.test('bugreport writes an archive of the node', async (t) => {
  const lab = await Lab.start(t);
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }];
  const objects = [
    ...dualStack('empty', { number: 43, ports, endpoints: [] }),
    ...dualStack('web', { number: 44, ports, endpoints: ['pod-a', 'pod-b'] }),
  ];
  const env = { REGISTRY_TOKEN: SECRET };
  const proxy = await Proxy.start(t, lab, { objects, mode: 'nftables', env });
  await lab.output(
    'node',
    ['nft', '-f', '-'],
    'table inet wall { chain f { type filter hook forward priority 10; ip daddr 10.9.9.9 drop; }; }',
  );
  const file = join(t.testdir(), 'report.tar.gz');
  const argv = ['node', PROGRAM, 'bugreport', '--file', file, '--status-socket', proxy.statusSocket];
  const { status, stdout } = await lab.run('node', argv);
  t.equal(status, 0, 'traffic that is not counted is not missing');
  t.match(stdout, /^ {2}traffic\.json: .*; could not be read: .*set --service-telemetry,/m);
  t.equal(statSync(file).mode & 0o777, 0o600);
  const extract = (name: string): Promise<string> =>
    lab.output('node', ['tar', '-xzOf', file, `pointsman-node-1/${name}`]);
  const names = (await lab.output('node', ['tar', '-tzf', file])).split('\n').filter((name) => name !== '');
  const about = await extract('README');
  for (const name of names.slice(1))
    t.match(about, new RegExp(`^${name.replace('pointsman-node-1/', '')}: `, 'm'), name);
  t.match(JSON.parse(await extract('status.json')), { node: 'node-1', mode: 'nftables' });
  t.match(JSON.parse(await extract('problems.json')), { rows: [{ key: 'default/empty', problems: ['no-endpoints'] }] });
  const plan = await extract('plan.txt');
  t.match(plan, /^IPv4 frontend \S+\.44:80\/TCP endpoint \S+:8080\nIPv4 frontend \S+\.44:80\/TCP endpoint \S+:8080\n/m);
  t.equal(plan, await extract('dump.txt'), 'both have one form');
  t.match(await extract('foreign-rules.txt'), /^chain f\n {2}1: \[.*0a090909.*\[immediate dreg 0 value drop\]$/m);
  t.match(await extract('sysctls.txt'), /^net\.ipv4\.ip_forward = 1$/m);
  const all = await lab.output('node', ['tar', '-xzOf', file]);
  t.match(all, /manifests-header/, 'flags are in it');
  t.notMatch(all, SECRET, 'credentials are not');
  t.match(await lab.run('node', argv), { status: 2, stderr: /report\.tar\.gz: EEXIST/ }, 'what is there stays');
  const [node = '', program = '', command = '', , , ...rest] = argv;
  for (const flags of [[], ['--file', '-']]) {
    const piped = ['sh', '-c', '"$@" 2>&3 | tar -tz 3>&-', 'sh', node, program, command, ...flags, ...rest];
    const listed = await lab.run('node', ['sh', '-c', 'exec "$@" 3>&2', 'sh', ...piped]);
    t.equal(listed.stdout.split('\n').filter((name) => name !== '').length, names.length, 'no terminal: the archive');
    t.match(listed.stderr, /^standard output:\n {2}version\.txt: /);
  }
  const lost = [
    'node',
    PROGRAM,
    'bugreport',
    '--file',
    '/nowhere/report.tar.gz',
    '--status-socket',
    proxy.statusSocket,
  ];
  t.match(await lab.run('node', lost), { status: 2, stderr: /\/nowhere\/report\.tar\.gz: ENOENT/ });
});
