// Configuration of this project itself passes check: the files that it ships, and what --write-config-to writes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { check } from '../src/command.js';
import { HEADER, KUBEADM, LINUX, loaded, WINDOWS } from '../../../test/config/load-from.js';
import { projectFile } from '../../../test/support/lab/agent.js';

/** Documents with a kind; those of the chart are for Helm. */
const SHIPPED = ['deploy', 'demo'].flatMap((folder) =>
  readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yaml') && !name.startsWith('chart'))
    .map((name) => join(folder, name))
    .filter((name) => /^apiVersion:/m.test(readFileSync(projectFile(name), 'utf8'))),
);

t.test('no shipped file has an error', async (t) => {
  t.ok(SHIPPED.includes('deploy/windows/configmap.yaml') && SHIPPED.length > 20, `${SHIPPED.length} files`);
  for (const name of SHIPPED) {
    const { stdout, stderr, status } = await check([name], () => readFileSync(projectFile(name), 'utf8'));
    t.same([status, stderr], [0, ''], `${name}: ${stdout}`);
  }
});

t.test('a misspelt field in each shipped configuration of a proxy is found', async (t) => {
  const holding = SHIPPED.filter((name) =>
    readFileSync(projectFile(name), 'utf8').includes('kind: KubeProxyConfiguration'),
  );
  t.ok(holding.length > 4, `${holding.length} files`);
  for (const name of holding) {
    const text = readFileSync(projectFile(name), 'utf8').replace(
      /^( *)kind: KubeProxyConfiguration\n/m,
      '$&$1Mode: x\n',
    );
    const { stdout, status } = await check([name], () => text);
    t.equal(status, 1, name);
    t.match(stdout, /KubeProxyConfiguration.Mode: has the wrong case/, name);
  }
});

t.test('files that --write-config-to writes pass check, in every mode', async (t) => {
  const bodies = [
    '',
    KUBEADM.slice(HEADER.length),
    'nodePortAddresses: [10.0.0.0/8, "::1/128"]\nbindAddress: "::"',
    ...['iptables', 'ipvs', 'nftables'].map((section) => `${section}: {syncPeriod: 7s, minSyncPeriod: 3s}`),
    'conntrack: {maxPerCore: 0}\nlogging: {format: json, verbosity: 3}\nfeatureGates: {AllBeta: true}',
  ];
  for (const mode of ['', 'iptables', 'ipvs', 'nftables', 'kernelspace'])
    for (const body of bodies) {
      const target = mode === 'kernelspace' ? WINDOWS : LINUX;
      const given = `${HEADER}${body.replace(/^mode: .*\n?/m, '')}\nmode: "${mode}"\n`;
      const result = loaded(['--config=in', '--write-config-to=out'], { in: given }, target);
      if (result.command !== 'write-config') throw new Error(result.command);
      const { stdout, stderr, status } = await check(['f'], () => result.text);
      t.same([status, stderr], [0, ''], `${mode}: ${body}: ${stdout}`);
    }
});
