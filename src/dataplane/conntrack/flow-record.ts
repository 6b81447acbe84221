import { addressLength, type Family } from '../../base/ip.js';
import { FLOW_RECORD } from '../../native/contract.js';

/** Byte offsets in a flow record, see FLOW_RECORD. */
export interface FlowLayout {
  readonly size: number;
  readonly originalDestination: number;
  readonly replySource: number;
  readonly originalDestinationPort: number;
  readonly replySourcePort: number;
  readonly protocol: number;
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
  };
}
