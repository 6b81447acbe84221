import { EndpointList } from '../../src/base/endpoint-list.js';
import {
  addressBytes,
  addressFromBytes,
  addressLength,
  parseAddress,
  type Family,
  type IPAddress,
} from '../../src/base/ip.js';
import { protocolFromNumber, protocolNumber, type Protocol } from '../../src/base/protocol.js';
import type { FlowListing } from '../../src/native/contract.js';
import { FLOW_RECORD } from '../../src/native/contract.js';
import { UNHELD } from '../../src/plan/frontend-fields.js';
import { frontendKey } from '../../src/plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan } from '../../src/plan/types.js';

/** A flow as a test writes it; endpoints are `address port`. */
export interface FlowText {
  readonly protocol?: Protocol;
  readonly from?: string;
  readonly to: string;
  /** Where replies come from. */
  readonly by: string;
  readonly zone?: number;
  readonly id?: number;
  /** The kernel's number for the state; 0 when not given. */
  readonly state?: number;
  /** Whether anything was replied; it was when not given. */
  readonly replied?: boolean;
}

export function address(text: string): IPAddress {
  const parsed = parseAddress(text);
  if (parsed === null) throw new TypeError(`not an address: ${text}`);
  return parsed;
}

function endpoint(text: string): { readonly address: IPAddress; readonly port: number } {
  const [host = '', port = ''] = text.split(' ');
  return { address: address(host), port: Number(port) };
}

export function endpoints(family: Family, texts: readonly string[]): EndpointList {
  return EndpointList.of(family, texts.map(endpoint));
}

/** Written from the contract's prose, apart from the layout in src. */
export function listing(family: Family, flows: readonly FlowText[]): FlowListing {
  const length = addressLength(family);
  const size = FLOW_RECORD.addresses * length + FLOW_RECORD.tail;
  const records = new Uint8Array(size * flows.length);
  const view = new DataView(records.buffer);
  for (const [index, flow] of flows.entries()) {
    const source = endpoint(flow.from ?? (family === 'IPv4' ? '10.244.0.9 40000' : 'fd00:244::9 40000'));
    const destination = endpoint(flow.to);
    const reply = endpoint(flow.by);
    const start = index * size;
    for (const [position, side] of [source, destination, reply, source].entries()) {
      records.set(addressBytes(side.address), start + position * length);
      view.setUint16(start + 4 * length + position * 2, side.port);
    }
    view.setUint16(start + 4 * length + 8, flow.zone ?? 0);
    records[start + 4 * length + 10] = protocolNumber(flow.protocol ?? 'UDP');
    records[start + 4 * length + 11] = flow.state ?? 0;
    view.setUint32(start + 4 * length + 12, flow.id ?? index + 1);
    view.setUint32(start + 4 * length + 16, flow.replied === false ? 0x188 : 0x18a);
  }
  return { count: flows.length, records };
}

/** `UDP 10.244.0.9 40000 > 10.96.0.10 53 < 10.244.1.10 53 #1`, one per record. */
export function printRecords(family: Family, records: Uint8Array): string[] {
  const length = addressLength(family);
  const size = FLOW_RECORD.addresses * length + FLOW_RECORD.tail;
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const lines: string[] = [];
  for (let start = 0; start < records.length; start += size) {
    const side = (position: number): string =>
      `${addressFromBytes(records.slice(start + position * length, start + (position + 1) * length))} ${view.getUint16(start + 4 * length + position * 2)}`;
    const protocol = protocolFromNumber(records[start + 4 * length + 10] ?? 0) ?? 'other';
    lines.push(`${protocol} ${side(0)} > ${side(1)} < ${side(2)} #${view.getUint32(start + 4 * length + 12)}`);
  }
  return lines;
}

export interface FrontendText {
  readonly protocol?: Protocol;
  /** `address port`, or `nodeport port`. */
  readonly at: string;
  readonly to: readonly string[];
  /** Endpoints that an existing flow may keep; the same when not given. */
  readonly kept?: readonly string[];
  /** Endpoints of traffic from outside where that is another list. */
  readonly local?: readonly string[];
}

export function frontend(family: Family, text: FrontendText): FrontendPlan {
  const [host = '', port = ''] = text.at.split(' ');
  const own = host === 'nodeport' ? null : address(host);
  const protocol = text.protocol ?? 'UDP';
  const list = endpoints(family, text.to);
  return {
    key: frontendKey(own, Number(port), protocol),
    kind: own === null ? 'NodePort' : 'ClusterIP',
    family,
    address: own,
    protocol,
    port: Number(port),
    servicePort: 'default/dns:dns',
    endpoints: list,
    localEndpoints: text.local === undefined ? null : endpoints(family, text.local),
    masquerade: own === null ? 'always' : 'off-cluster',
    whenEmpty: 'reject',
    affinitySeconds: null,
    sourceRanges: null,
    ...UNHELD,
    flowEndpoints: protocol === 'TCP' ? null : text.kept === undefined ? list : endpoints(family, text.kept),
    retrySeconds: null,
    balance: null,
  };
}

export type TestTable = Pick<FamilyTable, 'family' | 'frontend' | 'frontends'>;

export function table(family: Family, texts: readonly FrontendText[]): TestTable {
  const plans = new Map<FrontendKey, FrontendPlan>(
    texts.map((text) => frontend(family, text)).map((plan) => [plan.key, plan]),
  );
  return { family, frontend: (key) => plans.get(key), frontends: () => plans.values() };
}
