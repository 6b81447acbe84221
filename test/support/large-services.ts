import type { EndpointSliceRow, Row } from '../../src/state/rows.js';
import { service, slice } from './rows.js';

const PORTS = Array.from({ length: 20 }, (_, index) => ({ name: `p${index}`, port: 80 + index }));

/** The slice of a large Service. @param network other addresses. */
export function largeSlice(number: number, network = 1): EndpointSliceRow {
  const endpoints = Array.from({ length: 1000 }, (_, at) => ({ address: `10.${network}.${at >> 8}.${at & 255}` }));
  return slice(`large-${number}`, endpoints, { ports: PORTS });
}

/** A Service that is more than one sync of changes has: 20 ports × 1,000 endpoints. */
export function largeService(number: number): readonly Row[] {
  return [service(`large-${number}`, { clusterIPs: [`10.96.1.${number}`], ports: PORTS }), largeSlice(number)];
}
