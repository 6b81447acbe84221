import { readFileSync } from 'node:fs';
import t from 'tap';
import { FAMILIES } from '../../../src/base/ip.js';
import { cleanup, dump, plan, render } from '../../../src/cli/commands.js';
import { diff } from '../../../src/cli/diff.js';
import type { Config } from '../../../src/config/config.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadConfig } from '../../../src/config/load.js';
import { modeParts, modeProblems, prepareMode, type Machine } from '../../../src/control/mode.js';
import { KERNELSPACE } from '../../../src/dataplane/kernelspace/mode.js';
import type { Host } from '../../../src/host/host.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import type { HcnVersion } from '../../../src/native/contract.js';
import { fromFile, WINDOWS } from '../../config/load-from.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { eventually } from '../../support/manifests.js';
import { RecordingLog } from '../../support/recording-log.js';

/** What the mode finds out before it is in force, and the commands that ask it. */

const HOST: Host = {
  ...LINUX_HOST,
  platform: 'win32',
  families: () => FAMILIES,
  kernelValues: () => [],
  compareKernelValues: () => Promise.resolve([]),
};
const NETWORK = 'winkernel: {networkName: cbr0}';

function configOf(body: string, environment: Readonly<Record<string, string>> = {}): Config {
  return fromFile(body, [], { ...WINDOWS, environment }).config;
}

function machine(version?: HcnVersion): Machine & { readonly world: HnsWorld } {
  const world = new HnsWorld();
  if (version !== undefined) world.hns.version = version;
  return { host: HOST, addon: world.addon, world };
}

t.test('ST-36: what HNS lacks is named', async (t) => {
  const problems = (body: string, version?: HcnVersion) =>
    modeProblems(configOf(body), machine(version), FAMILIES, new RecordingLog());
  t.same(await problems(NETWORK), []);
  const start = 'this kernel, or what this process may do, is not enough for mode kernelspace: ';
  t.same(await problems(''), [
    `${start}winkernel.networkName: Required value: the name of the HNS network, here or in the environment variable KUBE_NETWORK`,
  ]);
  t.same(await problems(NETWORK, { major: 9, minor: 1 }), [
    `${start}mode kernelspace needs HNS 9.2 or later, and this host has 9.1`,
  ]);
  t.same(await problems('winkernel: {networkName: cbr0, enableDSR: true}', { major: 10, minor: 1 }), [
    `${start}winkernel.enableDSR: HNS 10.1 has no direct server return`,
  ]);
  t.equal(configOf('', { KUBE_NETWORK: 'cni0' }).kernelspace?.networkName, 'cni0');
  t.equal(configOf(NETWORK, { KUBE_NETWORK: 'cni0' }).kernelspace?.networkName, 'cbr0');
});

t.test('WK-02: without dual stack the first family alone is served, which is said', async (t) => {
  const log = new RecordingLog();
  const { families } = await prepareMode(configOf(NETWORK), machine({ major: 11, minor: 0 }), FAMILIES, log);
  t.same(families, ['IPv4']);
  t.match(log.lines.join('\n'), /has no dual stack, IPv6 is not served/);
  t.match(log.lines.join('\n'), /has no session affinity/);
});

t.test('another platform does not have the mode', async (t) => {
  await t.rejects(
    prepareMode(configOf(NETWORK), { ...machine(), host: LINUX_HOST }, FAMILIES, new RecordingLog()),
    /mode: kernelspace is for win32, and this host is linux/,
  );
});

t.test('HNS tells of networks', async (t) => {
  const { world, ...parts } = machine();
  const { watch, dataplane } = await KERNELSPACE.open(modeParts(configOf(NETWORK), parts, new RecordingLog()), [
    'IPv4',
  ]);
  dataplane('IPv4');
  const told: boolean[] = [];
  const end = watch?.(({ missed }) => told.push(missed));
  await new Promise((resolve) => setImmediate(resolve));
  world.hns.disconnect();
  await eventually(() => told.length > 0, 'what was missed');
  t.same(told, [true]);
  end?.();
});

const CLUSTER = 'test/dataplane/iptables/rendered/cluster.yaml';
const FILE = 'test/dataplane/kernelspace/rendered/operations.txt';

/** What `pointsman render` prints on Windows with these flags, which is how operations.txt is written anew. */
function windowsConfig(command: string): Config {
  const flags = [
    '--network-name=cbr0',
    '--forward-healthcheck-vip',
    '--hostname-override=me',
    `--manifests=${CLUSTER}`,
  ];
  const loaded = loadConfig([command, ...flags], systemFiles, () => 'me', WINDOWS);
  if (!('config' in loaded)) throw new Error('no configuration');
  return loaded.config;
}

t.test('operations are as they were reviewed', async (t) => {
  const { text } = await render(windowsConfig('render'), machine());
  t.same(text.split('\n'), readFileSync(FILE, 'utf8').split('\n'));
});

t.test('plan, dump, diff and cleanup', async (t) => {
  const one = machine();
  const { hns, network } = one.world;
  const log = new RecordingLog();
  const config = windowsConfig('diff');
  for (const address of ['10.0.1.1', '10.0.1.53', '10.0.1.70', 'fd00:10::1']) hns.addEndpoint(network, [address]);
  hns.addEndpoint(network, ['10.0.1.9'], { Name: 'cbr0' });
  const before = await diff(config, 'v0', one, log);
  t.match(before.text, /^hns create loadBalancer /m);
  t.equal(hns.changes, 0, 'nothing was done');
  const { dataplane } = await prepareMode(config, one, FAMILIES, log);
  t.ok(dataplane);
  const wanted = (await plan(config)).text;
  t.not((await dump(config, one, log)).text, wanted);
  for (const line of before.text.split('\n')) t.notMatch(line, /leftover/);
  await apply(one, config);
  t.equal((await dump(config, one, log)).text, wanted);
  t.equal((await diff(config, 'v0', one, log)).text, '');
  t.same((await cleanup(config, one, log)).errors, []);
  t.same([hns.loadBalancers.size, hns.endpoints.size], [0, 5], 'pods stay');
});

/** As the process does. */
async function apply(one: Machine, config: Config): Promise<void> {
  const { planned } = await import('../../../src/cli/commands.js');
  const { planner } = await planned(config);
  const { families, dataplane } = await prepareMode(config, one, FAMILIES, new RecordingLog());
  for (const family of families) {
    const table = planner.tables[family];
    await dataplane(family).apply(table, table.takeChange(), { full: true });
  }
}
