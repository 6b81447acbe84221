import { addressLength, type Family } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import { FLOW_RECORD } from '../../native/contract.js';

/** Byte offsets in a flow record, see FLOW_RECORD. */
interface FlowLayout {
  readonly size: number;
  readonly originalDestination: number;
  readonly replySource: number;
  readonly originalDestinationPort: number;
  readonly replySourcePort: number;
  readonly protocol: number;
  readonly state: number;
  readonly status: number;
}

export function flowLayout(family: Family): FlowLayout {
  const length = addressLength(family);
  const tail = FLOW_RECORD.addresses * length;
  return {
    size: tail + FLOW_RECORD.tail,
    originalDestination: length,
    replySource: 2 * length,
    originalDestinationPort: tail + 2,
    replySourcePort: tail + 4,
    protocol: tail + 10,
    state: tail + 11,
    status: tail + 16,
  };
}

/** Bit of a flow's status: something was replied (IPS_SEEN_REPLY). */
const SEEN_REPLY = 2;
/** States in which a client has asked for a connection: TCP_CONNTRACK_SYN_SENT, SCTP_CONNTRACK_COOKIE_WAIT. */
const REQUESTED: Readonly<Partial<Record<Protocol, number>>> = { TCP: 1, SCTP: 2 };

/**
 * Whether the flow at `start` is a connection attempt without a reply. The state alone does not show it: a connection that
 * conntrack meets in the middle may be in any state. A missing reply alone does not show it either: an association may
 * send heartbeats first.
 */
export function isUnansweredAttempt(
  records: Uint8Array,
  start: number,
  { state, status }: FlowLayout,
  protocol: Protocol,
): boolean {
  // The last of four big-endian bytes has the lowest bits.
  const replied = ((records[start + status + 3] ?? 0) & SEEN_REPLY) !== 0;
  return !replied && records[start + state] === REQUESTED[protocol];
}
