import { FAMILIES, familyOf, type Family, type IPAddress } from '../../src/base/ip.js';
import { parseProtocol } from '../../src/base/protocol.js';
import { nodeFacts, type PlanSettings } from '../../src/plan/facts.js';
import { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { planNode } from '../../src/plan/node-plan.js';
import { planService } from '../../src/plan/service-plan.js';
import { objectKey, type EndpointSliceRow, type ServiceRow } from '../../src/state/rows.js';
import { planSettings } from '../support/plan-settings.js';
import { printVerdict, sourceKind, tracePacket } from '../support/plan-tracer.js';
import { address, node, serviceCIDR } from '../support/rows.js';

/** The node and the senders of behaviour §10. */
const LOCAL_ADDRESSES: Readonly<Record<Family, readonly IPAddress[]>> = {
  IPv4: ['192.168.0.2', '192.168.1.2', '192.168.99.11', '127.0.0.1'].map(address),
  IPv6: ['2001:db8::1', '2001:db8:1::2', '::1'].map(address),
};
const NODE = node('me', ['192.168.0.2', '2001:db8::1']);
const SERVICE_CIDRS = [serviceCIDR('default', ['172.30.0.0/16', 'fd00:10:96::/112'])];

const SENDERS: Readonly<Record<string, string>> = {
  pod: '10.0.0.2',
  node: '192.168.0.2',
  ext: '203.0.113.2',
  blk: '203.0.113.130',
  pod6: 'fd00:10::2',
  node6: '2001:db8::1',
  ext6: '2600:5200::1',
};

export interface PacketScene {
  readonly settings?: Partial<PlanSettings>;
  readonly services: readonly ServiceRow[];
  readonly slices: readonly EndpointSliceRow[];
}

/** Verdicts of one node that knows the scene's Services. */
export class PacketTracer {
  readonly tables: Readonly<Record<Family, ForwardingTable>>;

  constructor({ settings: fields = {}, services, slices }: PacketScene) {
    const settings = planSettings(fields);
    const facts = nodeFacts(settings, NODE);
    const table = (family: Family): ForwardingTable =>
      new ForwardingTable(planNode(family, settings, NODE, SERVICE_CIDRS));
    this.tables = { IPv4: table('IPv4'), IPv6: table('IPv6') };
    for (const service of services) {
      const own = slices.filter((slice) => slice.serviceName === service.name);
      for (const family of FAMILIES) {
        const plan = planService(family, service, own, facts, settings);
        this.tables[family].setService(objectKey(service.namespace, service.name), plan);
      }
    }
  }

  /**
   * @param sender a name from above, or an address.
   * @param target `address:port`, `[v6]:port`, with `/UDP` or `/SCTP` where it is not TCP.
   */
  verdict(sender: string, target: string): string {
    const source = address(SENDERS[sender] ?? sender);
    const match = /^\[?(.+?)\]?:(\d+)(?:\/(\w+))?$/.exec(target);
    const destination = address(match?.[1] ?? '');
    const protocol = parseProtocol(match?.[3] ?? 'TCP');
    if (protocol === null) throw new TypeError(`not a target: ${target}`);
    const family = familyOf(destination);
    const table = this.tables[family];
    const local = LOCAL_ADDRESSES[family];
    const from = sourceKind(table.node, source, null, local);
    const packet = { source, from, destination, port: Number(match?.[2]), protocol };
    return printVerdict(tracePacket(table, packet, local, planSettings().traits).verdict);
  }
}
