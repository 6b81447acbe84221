import { protocolNumber } from '../../base/protocol.js';
import type { FlowListing } from '../../native/contract.js';
import { flowLayout, isUnansweredAttempt } from './flow-record.js';
import type { FlowScope } from './flow-scope.js';

/**
 * The flows that keep packets from their present destination in the table, as records for conntrackDelete. There are two
 * sorts. The first are flows to a frontend of the scope that reply from anything but one of its `flowEndpoints`. They
 * include flows that were never translated and reply from the frontend itself: their first packet came before the rules
 * did, and while they last no later packet meets the rules (behaviour CT-04).
 *
 * The second are unanswered attempts to connect to anything but an endpoint that takes new connections. Nothing has begun on
 * them, and each packet that the client repeats keeps them alive (behaviour CT-05). Flows of other protocols than the
 * scope's are passed over.
 */
export function staleFlows(flows: FlowListing, scope: FlowScope): Uint8Array {
  const layout = flowLayout(scope.family);
  const { records } = flows;
  const count = Math.min(flows.count, Math.floor(records.length / layout.size));
  const protocol = protocolNumber(scope.protocol);
  const stale: number[] = [];
  for (let position = 0; position < count; position++) {
    const start = position * layout.size;
    if (records[start + layout.protocol] !== protocol) continue;
    const destination = {
      address: start + layout.originalDestination,
      port: start + layout.originalDestinationPort,
    };
    const reply = { address: start + layout.replySource, port: start + layout.replySourcePort };
    const isAttempt = isUnansweredAttempt(records, start, layout, scope.protocol);
    if (scope.mayStay(records, destination, reply, isAttempt) === false) stale.push(start);
  }
  const result = new Uint8Array(stale.length * layout.size);
  for (const [position, start] of stale.entries()) {
    result.set(records.subarray(start, start + layout.size), position * layout.size);
  }
  return result;
}
