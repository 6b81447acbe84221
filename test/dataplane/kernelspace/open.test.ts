import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { FAMILIES } from '../../../src/base/ip.js';
import { cleanup, dump, plan, render } from '../../../src/cli/commands.js';
import { diff } from '../../../src/cli/diff.js';
import type { Config } from '../../../src/config/config.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCommand } from '../../support/load-command.js';
import { modeParts, modeProblems, prepareMode, type Machine } from '../../../src/control/mode.js';
import type { ForeignChange } from '../../../src/dataplane/contract.js';
import { KERNELSPACE } from '../../../src/dataplane/kernelspace/mode.js';
import { familyOptions } from '../../../src/dataplane/kernelspace/open.js';
import { waitForHns } from '../../../src/dataplane/kernelspace/passing.js';
import { NetworkWatch } from '../../../src/dataplane/kernelspace/watch.js';
import type { Host } from '../../../src/host/host.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { hcnFeatures, type HcnAddon, type HcnVersion } from '../../../src/native/contract.js';
import { Planner } from '../../../src/plan/planner.js';
import { fromFile, WINDOWS } from '../../config/load-from.js';
import { HnsError } from '../../support/fake-hns/hns-error.js';
import { HnsWorld } from '../../support/fake-hns/world.js';
import { planSettings } from '../../support/plan-settings.js';
import { RecordingLog } from '../../support/recording-log.js';

/** What the mode finds out before it is in force, and the commands that ask it. */

const HOST: Host = {
  ...LINUX_HOST,
  platform: 'win32',
  claimNetwork: () => Promise.resolve(null),
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

t.test('ST-36: missing features of HNS are named', async (t) => {
  const problems = (body: string, version?: HcnVersion) =>
    modeProblems(configOf(body), machine(version), FAMILIES, new RecordingLog());
  t.same(await problems(NETWORK), []);
  const start = 'the kernel or the privileges of this process are not enough for mode kernelspace: ';
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

t.test('WK-08: health checks are forwarded if configured', (t) => {
  const endpointOf = (fields: string): unknown => {
    const { kernelspace } = configOf(`winkernel: {networkName: cbr0, rootHnsEndpointName: gateway${fields}}`);
    return (
      kernelspace &&
      familyOptions(kernelspace, hcnFeatures({ major: 15, minor: 5 }), 'IPv4', FAMILIES).healthCheckEndpoint
    );
  };
  t.equal(endpointOf(''), null);
  t.equal(endpointOf(', forwardHealthCheckVip: true'), 'gateway');
  t.end();
});

t.test('a load balancer has at most 64 destinations, internal ones with direct server return excepted', (t) => {
  const limits = (fields: string): unknown =>
    KERNELSPACE.traits(configOf(`winkernel: {networkName: cbr0${fields}}`)).endpointLimits;
  t.same(limits(''), { internal: 64, external: 64 });
  t.same(limits(', enableDSR: true'), { internal: Infinity, external: 64 });
  t.end();
});

t.test('WK-02: without dual stack only the first family is served, which is logged', async (t) => {
  const log = new RecordingLog();
  const { families } = await prepareMode(configOf(NETWORK), machine({ major: 11, minor: 0 }), FAMILIES, log);
  t.same(families, ['IPv4']);
  t.match(log.lines.join('\n'), /has no dual stack, IPv6 is not served/);
  t.match(log.lines.join('\n'), /has no session affinity/);
});

t.test('the start waits for an HNS that does not answer yet, and not for a permanent error', async (t) => {
  const pauses: number[] = [];
  const waiting: string[] = [];
  const wait = (...answers: readonly (string | null)[]): Promise<unknown> => {
    const left = [...answers];
    const ask = (): Promise<string> => {
      const errno = left.length > 1 ? left.shift() : left[0];
      return errno === null || errno === undefined
        ? Promise.resolve('here')
        : Promise.reject(new HnsError(errno, 'hcn version', null, null));
    };
    const pause = (ms: number): Promise<void> => {
      pauses.push(ms);
      return Promise.resolve();
    };
    return waitForHns(ask, pause, ({ errno }) => waiting.push(String(errno)));
  };
  t.equal(await wait('ERROR_SERVICE_NOT_ACTIVE', 'RPC_S_UNKNOWN_IF', 'EPT_S_NOT_REGISTERED', null), 'here');
  t.same([pauses.length, waiting], [3, ['ERROR_SERVICE_NOT_ACTIVE']], 'which is said once');
  await t.rejects(wait('ERROR_MOD_NOT_FOUND', null), /ERROR_MOD_NOT_FOUND/, 'Windows without HNS');
  pauses.length = 0;
  await t.rejects(wait('RPC_S_SERVER_UNAVAILABLE'), /RPC_S_SERVER_UNAVAILABLE/);
  t.equal(pauses.length, 120, 'for two minutes');
});

t.test('mode kernelspace does not exist on other platforms', async (t) => {
  await t.rejects(
    prepareMode(configOf(NETWORK), { ...machine(), host: LINUX_HOST }, FAMILIES, new RecordingLog()),
    /mode: kernelspace is for win32, and this host is linux/,
  );
});

t.test('HNS notifications of networks lead to a check', async (t) => {
  const { hns } = new HnsWorld();
  let stirred = false;
  const looks: string[] = [];
  const families = FAMILIES.map((family) => ({
    family,
    stirred: () => {
      looks.push(family);
      return Promise.resolve(stirred);
    },
  }));
  let fails = true;
  const hcnWatch: HcnAddon['hcnWatch'] = (onChange) =>
    fails ? Promise.reject(new Error('no')) : hns.hcnWatch(onChange);
  let now = 0;
  const asked: number[] = [];
  const counted: HcnAddon['hcnWatch'] = (onChange) => {
    asked.push(now);
    return hcnWatch(onChange);
  };
  const networks = new NetworkWatch(
    { hcnWatch: counted },
    () => families,
    () => now,
  );
  /** As every second. */
  const second = async (): Promise<void> => {
    now += 1000;
    networks.notifies();
    await setImmediate();
  };
  const reported: ForeignChange[] = [];
  t.equal(networks.notifies(), false, 'no listener is registered');
  const end = networks.watch((change) => reported.push(change));
  await setImmediate();
  t.same([networks.notifies(), looks], [false, []]);
  for (let count = 0; count < 10; count++) await second();
  t.same(asked, [0, 1000, 3000, 7000], 'an HNS that refuses is asked ever more rarely');
  fails = false;
  for (let count = 0; count < 10; count++) await second();
  t.equal(networks.notifies(), true, 'it was asked again');
  t.same([looks, reported], [FAMILIES, []], 'something may have come before');
  stirred = true;
  hns.addNetwork('other');
  await setImmediate();
  t.match(
    reported,
    FAMILIES.map((family) => ({ families: [family], missed: false })),
  );
  reported.length = 0;
  fails = true;
  hns.disconnect();
  await setImmediate();
  t.match(
    reported,
    FAMILIES.map((family) => ({ families: [family], missed: true })),
  );
  t.equal(networks.notifies(), false);
  await setImmediate();
  fails = false;
  await second();
  await second();
  reported.length = 0;
  hns.disconnect();
  await setImmediate();
  hns.addNetwork('another');
  await setImmediate();
  t.equal(reported.filter(({ missed }) => !missed).length, 2 * FAMILIES.length, 'it was asked again by itself');
  end();
  t.equal(networks.notifies(), false, 'no listener is registered any more');
});

t.test('with HNS notifications, networks are not polled', async (t) => {
  const one = machine();
  let time = 0;
  const parts = { ...modeParts(configOf(NETWORK), one, new RecordingLog()), now: () => time++ };
  const { watch, dataplane } = await KERNELSPACE.open(parts, ['IPv4']);
  const family = dataplane('IPv4');
  const table = new Planner(planSettings({})).tables.IPv4;
  await family.apply(table, table.takeChange(), { full: true });
  const { listed } = one.world.hns;
  const looks = async (): Promise<number> => {
    listed.length = 0;
    await family.probe();
    return listed.filter((kind) => kind === 'network').length;
  };
  t.equal(await looks(), 1, 'with everything');
  t.equal(await looks(), 1, 'by itself');
  const end = watch?.(() => undefined);
  await setImmediate();
  t.equal(await looks(), 0);
  end?.();
});

const CLUSTER = 'test/dataplane/iptables/rendered/cluster.yaml';
const FILE = 'test/dataplane/kernelspace/rendered/operations.txt';

/** What `pointsman render` prints on Windows with these flags, which is how operations.txt is written anew. */
function windowsConfig(command: string): Config {
  const flags = [
    '--network-name=cbr0',
    '--root-hnsendpoint-name=gateway',
    '--forward-healthcheck-vip',
    '--hostname-override=me',
    `--manifests=${CLUSTER}`,
  ];
  const loaded = loadCommand([command, ...flags], systemFiles, () => 'me', WINDOWS);
  if (!('config' in loaded)) throw new Error('no configuration');
  return loaded.config;
}

t.test('HNS operations match the reviewed file', async (t) => {
  const { text } = await render(windowsConfig('render'), machine());
  t.same(text.split('\n'), readFileSync(FILE, 'utf8').split('\n'));
});

t.test('plan, dump, diff and cleanup work in mode kernelspace', async (t) => {
  const one = machine();
  const { hns, network } = one.world;
  const log = new RecordingLog();
  const config = windowsConfig('diff');
  for (const address of ['10.0.1.1', '10.0.1.53', '10.0.1.70', 'fd00:10::1']) hns.addEndpoint(network, [address]);
  hns.addEndpoint(network, ['10.0.1.9'], { Name: 'gateway' });
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
