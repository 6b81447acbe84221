import { packedKey } from '../../base/endpoint-list.js';
import { addressFromBytes, addressLength, type IPAddress } from '../../base/ip.js';
import type { FlowListing } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan, ObjectKey } from '../../plan/types.js';
import { flowLayout } from './flow-record.js';

/** A connection to a frontend, and which endpoint it goes to. */
export interface EndingFlow {
  readonly frontend: FrontendKey;
  readonly service: ObjectKey;
  /** The endpoint's, its bytes as characters. */
  readonly address: string;
  /** Where its record begins in the listing. */
  readonly start: number;
}

export interface EndingFlowsView {
  readonly table: Pick<FamilyTable, 'family' | 'frontend'>;
  /** Whether it is one of this node's own addresses and node ports answer on it. */
  readonly isNodePortAddress: (address: IPAddress) => boolean;
}

/** The kernel's numbers of states in which both ends have something to lose: TCP_CONNTRACK_SYN_RECV to TCP_CONNTRACK_LAST_ACK. */
const FIRST_STATE = 2;
const LAST_STATE = 6;

/** Connections of a listing that go through frontends of the table. An address of its own comes before a node port, as in the rules. */
export function endingFlows({ count, records }: FlowListing, view: EndingFlowsView): readonly EndingFlow[] {
  const { family } = view.table;
  const layout = flowLayout(family);
  const size = addressLength(family);
  const frontends = new Map<string, FrontendPlan | undefined>();
  const flows: EndingFlow[] = [];
  for (let start = 0; start < count * layout.size; start += layout.size) {
    const state = records[start + layout.state] ?? 0;
    if (state < FIRST_STATE || state > LAST_STATE) continue;
    const at = start + layout.originalDestination;
    const port =
      ((records[start + layout.originalDestinationPort] ?? 0) << 8) |
      (records[start + layout.originalDestinationPort + 1] ?? 0);
    // Many connections have their destination in common.
    const destination = `${packedKey(records, at, size)} ${port}`;
    if (!frontends.has(destination))
      frontends.set(destination, frontendAt(addressFromBytes(records.subarray(at, at + size)), port, view));
    const frontend = frontends.get(destination);
    if (frontend === undefined) continue;
    const address = packedKey(records, start + layout.replySource, size);
    flows.push({ frontend: frontend.key, service: serviceOf(frontend), address, start });
  }
  return flows;
}

/** The records of these flows, one after the other. */
export function recordsOf({ records }: FlowListing, flows: readonly EndingFlow[], size: number): Uint8Array {
  const picked = new Uint8Array(flows.length * size);
  for (const [index, { start }] of flows.entries()) picked.set(records.subarray(start, start + size), index * size);
  return picked;
}

function frontendAt(
  address: IPAddress,
  port: number,
  { table, isNodePortAddress }: EndingFlowsView,
): FrontendPlan | undefined {
  const own = table.frontend(frontendKey(address, port, 'TCP'));
  return own ?? (isNodePortAddress(address) ? table.frontend(frontendKey(null, port, 'TCP')) : undefined);
}

/** No name has a colon. */
function serviceOf({ servicePort }: FrontendPlan): ObjectKey {
  const end = servicePort.indexOf(':');
  return end < 0 ? servicePort : servicePort.slice(0, end);
}
