import type { Family } from '../../base/ip.js';
import type { KernelspaceConfig } from '../../config/config.js';
import {
  hcnFeatures,
  type HcnAddon,
  type HcnFeatures,
  type HcnListed,
  type HcnOperation,
} from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import { everything } from '../table-view.js';
import { Reconciler } from '../reconciler.js';
import { KernelspaceDriver } from './driver.js';
import { Modifying } from './modifying.js';
import { ownId } from './names.js';
import { printOperation } from './print.js';
import type { FamilySettings } from './settings.js';

/** The version of HNS without a host: it can do everything that the mode knows of. */
const VERSION = { major: 15, minor: 5 } as const;

/**
 * A first sync of these tables, an operation a line, on an HNS that has the network, as a bridge, the endpoints of this node's pods, and the one that health
 * checks go to. Their ids are made up.
 */
export async function renderTables(
  tables: readonly FamilyTable[],
  settings: KernelspaceConfig,
  optionsOf: (family: Family, features: HcnFeatures) => FamilySettings,
): Promise<string> {
  const features = hcnFeatures(VERSION);
  const lines: string[] = [];
  const onOperations = (operations: readonly HcnOperation[]): void => {
    lines.push(...operations.map(printOperation));
  };
  for (const table of tables) {
    lines.push(`# ${table.family}`);
    const driver = new KernelspaceDriver({
      ...optionsOf(table.family, features),
      hcn: emptyHns(table, settings),
      onOperations,
      now: () => 0,
      interfaceMac: () => null,
      modifying: new Modifying(features.modifyLoadBalancer, () => undefined),
    });
    const dataplane = new Reconciler(driver, () => 0);
    const { clusterAddresses, ownEndpoints } = table;
    const change = {
      ...everything(table),
      attempts: new Set<string>(),
      clusterAddresses: new Set(clusterAddresses),
      ownEndpoints: new Set(ownEndpoints),
    };
    await dataplane.apply(table, change, { full: true });
  }
  return `${lines.join('\n')}\n`;
}

/** The address of an endpoint that is named for the source: one for documentation. */
const SOURCE = { IPv4: '192.0.2.1', IPv6: '2001:db8::1' } as const;

/** HNS on a node where pods run and no proxy did. It takes everything. */
function emptyHns(
  table: FamilyTable,
  { networkName, network: choice, rootHnsEndpointName, sourceVipEndpoint }: KernelspaceConfig,
): HcnAddon {
  const network = ownId(`network ${networkName}`);
  const Name = choice === null || choice.by === 'type' ? 'network' : choice.text;
  const Type = choice?.by === 'type' ? choice.text : 'L2Bridge';
  const endpoint = (name: string, addresses: readonly string[]): HcnListed<'endpoint'> => {
    const IpConfigurations = addresses.map((IpAddress) => ({ IpAddress }));
    return { id: `pod ${name}`, properties: { Name: name, HostComputeNetwork: network, IpConfigurations } };
  };
  const listed = {
    network: [{ id: network, properties: { Name, Type } }],
    endpoint: [
      ...[...table.ownEndpoints].map((address) => endpoint(address, [address])),
      endpoint(rootHnsEndpointName, []),
      ...(sourceVipEndpoint === null ? [] : [endpoint(sourceVipEndpoint, [SOURCE[table.family]])]),
    ],
    loadBalancer: [],
  };
  return {
    hcnVersion: () => Promise.resolve(VERSION),
    hcnIds: (kind) => Promise.resolve(listed[kind].map(({ id }) => id)),
    hcnList: (kind) => Promise.resolve(listed[kind] as never),
    hcnApply: (operations) => Promise.resolve(operations.map(({ id }) => id ?? '')),
    hcnWatch: () => Promise.resolve(() => undefined),
  };
}
