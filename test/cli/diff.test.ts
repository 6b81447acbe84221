import { join } from 'node:path';
import t, { type Test } from 'tap';
import { diff } from '../../src/cli/diff.js';
import { planned } from '../../src/cli/commands.js';
import { prepareMode } from '../../src/control/mode.js';
import type { Config } from '../../src/config/config.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import type { NativeAddon } from '../../src/native/contract.js';
import { composeAddon, SUBSYSTEMS } from '../../src/native/subsystems.js';
import { fromFile } from '../config/load-from.js';
import { nodeObject, serviceObject, sliceObject, type ApiObject } from '../support/api-objects.js';
import { IpvsWorld } from '../support/fake-ipvs/world.js';
import { RecordingLog } from '../support/recording-log.js';
import { address } from '../support/rows.js';

/** Functions and nothing else, as the addon has them. */
function plain(addon: NativeAddon): NativeAddon {
  return composeAddon((name) => {
    const subsystem = addon[name] as unknown as Readonly<Record<string, (...parameters: unknown[]) => unknown>>;
    const calls = Object.keys(SUBSYSTEMS[name]);
    return Object.fromEntries(calls.map((call) => [call, subsystem[call]?.bind(subsystem)])) as never;
  });
}

const MACHINE = { ...LINUX_HOST, families: () => ['IPv4'] as const, compareKernelValues: () => Promise.resolve([]) };

/** The configuration of mode ipvs on a node that has these objects. */
function configuration(t: Test, items: readonly ApiObject[]): Config {
  const folder = t.testdir({ 'objects.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  const argv = [`--manifests=${join(folder, 'objects.json')}`, '--hostname-override=me', '--iptables-flavor=nft'];
  const loaded = fromFile('mode: ipvs\nclusterCIDR: 10.244.0.0/16\n', argv).config;
  return { ...loaded, manifests: loaded.manifests.slice(-1) };
}

/** test/kernel/look-inside has the modes whose kernel this machine has. */
t.test('diff in mode ipvs prints what a start would send, and nothing once the kernel has it', async (t) => {
  const items = [
    nodeObject('me'),
    serviceObject('web', { clusterIP: '10.96.0.41', clusterIPs: ['10.96.0.41'], ports: [{ port: 80 }] }),
    sliceObject('web-1', 'web', ['10.244.2.10'], { ports: [{ port: 80 }] }),
  ];
  const config = configuration(t, items);
  const kernel = new IpvsWorld([address('192.168.0.2')]);
  const machine = { host: MACHINE, addon: plain(kernel.addon) };
  const log = new RecordingLog();
  const differences = async (): Promise<readonly string[]> => {
    const before = kernel.contents();
    const { text, errors } = await diff(config, 'v0', machine, log);
    t.same(errors, []);
    t.same(kernel.contents(), before, 'nothing was changed');
    return text.split('\n').filter((line) => line !== '');
  };
  const all = await differences();
  for (const line of [
    'ipvsadm -A -t 10.96.0.41:80 -s rr',
    'ipvsadm -a -t 10.96.0.41:80 -r 10.244.2.10:80 -m -w 1',
    'ip address add 10.96.0.41/32 dev kube-ipvs0',
  ])
    t.ok(all.includes(line), line);
  const { planner } = await planned(config);
  const mode = await prepareMode(config, machine, ['IPv4'], log);
  const table = planner.tables.IPv4;
  await mode.dataplane('IPv4').apply(table, table.takeChange(), { full: true });
  t.same(await differences(), []);
  for (const { destinations } of kernel.addon.ipvs.services.values()) destinations.clear();
  t.same(await differences(), ['ipvsadm -a -t 10.96.0.41:80 -r 10.244.2.10:80 -m -w 1']);
});

t.test('diff prints more lines than a call takes arguments', async (t) => {
  const endpoints = Array.from({ length: 1000 }, (_, number) => `10.244.${number >> 8}.${number & 255}`);
  const services = Array.from({ length: 130 }, (_, number) => `web-${number}`);
  const objects = services.flatMap((name, number) => {
    const ip = `10.96.1.${number}`;
    return [
      serviceObject(name, { clusterIP: ip, clusterIPs: [ip], ports: [{ port: 80 }] }),
      sliceObject(`${name}-1`, name, endpoints, { ports: [{ port: 80 }] }),
    ];
  });
  const config = configuration(t, [nodeObject('me'), ...objects]);
  const machine = { host: MACHINE, addon: plain(new IpvsWorld([address('192.168.0.2')]).addon) };
  const { text, errors } = await diff(config, 'v0', machine, new RecordingLog());
  t.same(errors, []);
  t.equal(text.match(/^ipvsadm -a /gm)?.length, services.length * endpoints.length);
});
