import { basename } from 'node:path';
import t from 'tap';
import type { Config } from '../../src/config/config.js';
import { modeParts, type Machine } from '../../src/control/mode.js';
import { KERNELSPACE } from '../../src/dataplane/kernelspace/mode.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import type { HcnLoadBalancer, HcnNetwork } from '../../src/native/contract.js';
import { Planner } from '../../src/plan/planner.js';
import { Store } from '../../src/state/store.js';
import { load, WINDOWS } from '../config/load-from.js';
import { build, fieldsOf } from '../support/deploy/kustomize.js';
import { HnsWorld } from '../support/fake-hns/world.js';
import { projectFile } from '../support/lab/agent.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { node, service, slice } from '../support/rows.js';

/** The manifests for Windows nodes of network plugins, on an HNS with what the plugins make there. */

const NODE = '192.168.0.2';

/** The configuration that an overlay gives to every node. */
function configOf(overlay: string): Config {
  const objects = build(projectFile(`deploy/overlays/${overlay}`));
  const data = fieldsOf(objects.find(({ kind }) => kind === 'ConfigMap')?.['data']);
  const path = 'C:/config.conf';
  const loaded = load(
    [`--config=${path}`, '--hostname-override=me'],
    { [path]: String(data[basename(path)]) },
    WINDOWS,
  );
  if (!('config' in loaded)) throw new Error('no configuration');
  t.same(loaded.warnings, [], overlay);
  return loaded.config;
}

/** A node with these networks, the last of which is the pods'. */
class PluginNode {
  readonly world = new HnsWorld();
  readonly #network: string;
  readonly #machine: Machine;

  constructor(...networks: readonly (readonly [name: string, properties: Partial<HcnNetwork>])[]) {
    const { hns, network } = this.world;
    hns.removeNetwork(network);
    this.#network = networks.map(([name, properties]) => hns.addNetwork(name, properties)).at(-1) ?? '';
    const interfaceMac = (): string => '00:15:5d:00:00:02';
    this.#machine = { host: { ...LINUX_HOST, platform: 'win32', interfaceMac }, addon: this.world.addon };
  }

  addEndpoint(Name: string, address: string): void {
    this.world.hns.addEndpoint(this.#network, [address], { Name });
  }

  /** A first sync of a Service with an endpoint on another node; the load balancer that it comes to. */
  async sync(config: Config): Promise<HcnLoadBalancer | undefined> {
    const store = new Store();
    const rows = [node('me', [NODE]), service('web'), slice('web', [{ address: '10.0.1.1', node: 'other' }])];
    store.register('test').apply(rows.map((row) => ({ type: 'upsert' as const, row })));
    const planner = new Planner(planSettings({ traits: KERNELSPACE.traits(config), nodePortAddresses: [] }));
    planner.update(store.snapshot, store.takeChanges());
    const table = planner.tables.IPv4;
    const { dataplane } = await KERNELSPACE.open(modeParts(config, this.#machine, new RecordingLog()), ['IPv4']);
    await dataplane('IPv4').apply(table, table.takeChange(), { full: true });
    return [...this.world.hns.loadBalancers.values()][0];
  }

  /** Of the endpoint at an address. */
  provider(address: string): unknown {
    const found = [...this.world.hns.endpoints.values()].find(
      ({ IpConfigurations }) => IpConfigurations?.[0]?.IpAddress === address,
    );
    return found?.Policies?.[0]?.Settings;
  }
}

const ROUTES = {
  Type: 'Overlay',
  Policies: [
    { Type: 'RemoteSubnetRoute', Settings: { DestinationPrefix: '10.0.1.0/24', ProviderAddress: '192.168.0.3' } },
  ],
};

t.test('Windows, Flannel with VXLAN: the overlay network that is not External, endpoint source_vip', async (t) => {
  const config = configOf('windows-flannel');
  for (const name of ['flannel.4096', 'vxlan0']) {
    const one = new PluginNode(['External', { Type: 'Overlay' }], ['nat', { Type: 'NAT' }], [name, ROUTES]);
    await t.rejects(one.sync(config), /winkernel\.sourceVip: HNS network of type Overlay has no endpoint source_vip/);
    one.addEndpoint('source_vip', '10.0.0.2');
    t.match(await one.sync(config), { SourceVIP: '10.0.0.2', FrontendVIPs: ['10.96.0.10'] }, name);
    t.same(one.provider('10.0.1.1'), { ProviderAddress: '192.168.0.3' });
    t.same(one.provider('10.96.0.10'), { ProviderAddress: NODE });
    t.equal(one.world.hns.endpoints.size, 3, 'no second endpoint has the source');
  }
});

t.test('Windows, Calico with VXLAN: its network, and the endpoint Calico_ep', async (t) => {
  const one = new PluginNode(['External', { Type: 'Overlay' }], ['Calico', ROUTES]);
  one.addEndpoint('Calico_ep', '10.0.0.66');
  t.match(await one.sync(configOf('windows-calico')), { SourceVIP: '10.0.0.66', Flags: 1 });
  t.same(one.provider('10.0.1.1'), { ProviderAddress: '192.168.0.3' });
});

t.test('Windows, EKS: a network whose name differs by node, and no source VIP', async (t) => {
  const one = new PluginNode(['nat', { Type: 'NAT' }], ['vpcbr8f3a', { Type: 'L2Bridge' }]);
  const loadBalancer = await one.sync(configOf('windows-eks'));
  t.match(loadBalancer, { FrontendVIPs: ['10.96.0.10'] });
  t.equal(loadBalancer?.SourceVIP, undefined);
});

t.test('Windows: of several networks that match none is used', async (t) => {
  const one = new PluginNode(['vpcbr1', {}], ['vpcbr2', {}]);
  await t.rejects(
    one.sync(configOf('windows-eks')),
    /winkernel\.networkName: several HNS networks fit: vpcbr1, vpcbr2/,
  );
});
