import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../base/clock.js';
import { packedKey } from '../../base/endpoint-list.js';
import { addressFromBytes, addressLength, type IPAddress } from '../../base/ip.js';
import type { FlowListing } from '../../native/contract.js';
import { frontendKey, serviceOf } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan, ObjectKey } from '../../plan/types.js';
import { flowLayout } from './flow-record.js';

/** Connections to a frontend that go to one endpoint. */
export interface EndingFlows {
  readonly frontend: FrontendKey;
  readonly service: ObjectKey;
  /** The endpoint's, its bytes as characters. */
  readonly address: string;
  /** Where their records begin in the listing. */
  readonly starts: readonly number[];
}

interface EndingFlowsView {
  readonly table: Pick<FamilyTable, 'family' | 'frontend'>;
  /** Whether it is one of this node's own addresses and node ports answer on it. */
  readonly isNodePortAddress: (address: IPAddress) => boolean;
}

/** The kernel's numbers of states in which both ends can lose data: TCP_CONNTRACK_SYN_RECV to TCP_CONNTRACK_LAST_ACK. */
const FIRST_STATE = 2;
const LAST_STATE = 6;

/** After so long in one turn others have theirs; the clock is looked at after so many rows. */
const SLICE_MS = 10;
const ROWS_AT_ONCE = 500;

/** The common part of many connections: their original destination, and the connections by endpoint. */
interface Destination {
  readonly frontend: FrontendKey;
  readonly service: ObjectKey;
  readonly byAddress: Map<string, number[]>;
}

/**
 * Connections of a listing that go through frontends of the table. A frontend's own address comes before a node port, as in
 * the rules. The search yields to other work in between.
 */
export async function endingFlows(
  { count, records }: FlowListing,
  view: EndingFlowsView,
  clock: Pick<Clock, 'now'>,
): Promise<readonly EndingFlows[]> {
  const { family } = view.table;
  const layout = flowLayout(family);
  const size = addressLength(family);
  const destinations = new Map<string, Destination | null>();
  let end = clock.now() + SLICE_MS;
  for (let row = 0; row < count; row++) {
    if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1 && clock.now() >= end) {
      await turn();
      end = clock.now() + SLICE_MS;
    }
    const start = row * layout.size;
    const state = records[start + layout.state] ?? 0;
    if (state < FIRST_STATE || state > LAST_STATE) continue;
    const at = start + layout.originalDestination;
    const port =
      ((records[start + layout.originalDestinationPort] ?? 0) << 8) |
      (records[start + layout.originalDestinationPort + 1] ?? 0);
    const key = `${packedKey(records, at, size)} ${port}`;
    let destination = destinations.get(key);
    if (destination === undefined) {
      destination = destinationAt(addressFromBytes(records.subarray(at, at + size)), port, view);
      destinations.set(key, destination);
    }
    if (destination === null) continue;
    const address = packedKey(records, start + layout.replySource, size);
    const starts = destination.byAddress.get(address);
    if (starts === undefined) destination.byAddress.set(address, [start]);
    else starts.push(start);
  }
  return [...destinations.values()].flatMap((destination) =>
    destination === null
      ? []
      : [...destination.byAddress].map(([address, starts]) => ({
          frontend: destination.frontend,
          service: destination.service,
          address,
          starts,
        })),
  );
}

/** The records that begin at these places, one after the other. */
export function recordsOf({ records }: FlowListing, starts: readonly number[], size: number): Uint8Array {
  const picked = new Uint8Array(starts.length * size);
  for (const [index, start] of starts.entries()) picked.set(records.subarray(start, start + size), index * size);
  return picked;
}

function destinationAt(address: IPAddress, port: number, view: EndingFlowsView): Destination | null {
  const frontend = frontendAt(address, port, view);
  return frontend === undefined
    ? null
    : { frontend: frontend.key, service: serviceOf(frontend.servicePort), byAddress: new Map() };
}

function frontendAt(
  address: IPAddress,
  port: number,
  { table, isNodePortAddress }: EndingFlowsView,
): FrontendPlan | undefined {
  const own = table.frontend(frontendKey(address, port, 'TCP'));
  return own ?? (isNodePortAddress(address) ? table.frontend(frontendKey(null, port, 'TCP')) : undefined);
}
