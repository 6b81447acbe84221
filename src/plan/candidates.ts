import { EndpointList, endpointSize } from '../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family, type IPAddress } from '../base/ip.js';
import {
  DEFAULT_WEIGHT,
  TERMINATING,
  type EndpointPortRow,
  type EndpointSliceRow,
  type ServicePortRow,
} from '../state/rows.js';

/** An endpoint of one Service port, where it is examined alone: there are too many to make an object of each. */
export interface Candidate {
  /** Packed address and port, one character per byte; sorts as the packed bytes do. */
  readonly key: string;
  readonly slice: EndpointSliceRow;
  /** In the slice. */
  readonly index: number;
  readonly conditions: number;
  readonly weight: number;
  /** Null: it is in none that we know of. */
  readonly zone: string | null;
}

/** Of a Service port: slices name its endpoints' port by the same name and protocol, with any number. */
export type PortName = Pick<ServicePortRow, 'name' | 'protocol'>;

/** A slice of the Service without endpoints for the port. */
export interface SkippedSlice {
  readonly slice: string;
  readonly family: Family;
  readonly endpoints: number;
  readonly because: 'other-family' | 'no-such-port';
}

/** Is called with what {@link collect} leaves out. */
interface Omissions {
  readonly duplicate: (candidate: Candidate) => void;
  readonly slice: (slice: EndpointSliceRow, because: SkippedSlice['because']) => void;
}

/** Endpoints of every slice port of the right name and protocol, without duplicates. */
export function collect(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  omissions: Omissions | null = null,
): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  for (const slice of slices) {
    const targets = targetPorts(family, port, slice);
    if (targets.length === 0) omissions?.slice(slice, slice.family === family ? 'no-such-port' : 'other-family');
    for (const target of targets) {
      for (let index = 0; index < slice.count; index++) {
        const candidate = candidateAt(slice, index, target);
        // Of two endpoints with one address and port the later counts, unless it is terminating (behaviour EP-06).
        const isLate = (candidate.conditions & TERMINATING) !== 0 && found.has(candidate.key);
        if (omissions !== null) {
          const lost = isLate ? candidate : found.get(candidate.key);
          if (lost !== undefined) omissions.duplicate(lost);
        }
        if (!isLate) found.set(candidate.key, candidate);
      }
    }
  }
  return [...found.values()];
}

/** Numbers of the slice's ports of that name and protocol; none where it is of another family. */
export function targetPorts(family: Family, port: PortName, slice: EndpointSliceRow): readonly number[] {
  if (slice.family !== family) return NO_PORTS;
  const ports = slice.ports.length < MANY_PORTS ? slice.ports : portsOfName(slice.ports).get(port.name);
  if (ports === undefined) return NO_PORTS;
  return ports
    .filter(({ name, protocol }) => name === port.name && protocol === port.protocol)
    .map((target) => target.port);
}

const NO_PORTS: readonly number[] = [];

/** From this number on a slice's ports are looked up by name: a Service may have thousands, and each slice is searched. */
const MANY_PORTS = 16;

const namedPorts = new WeakMap<readonly EndpointPortRow[], ReadonlyMap<string, readonly EndpointPortRow[]>>();

function portsOfName(ports: readonly EndpointPortRow[]): ReadonlyMap<string, readonly EndpointPortRow[]> {
  const known = namedPorts.get(ports);
  if (known !== undefined) return known;
  const names = new Map<string, EndpointPortRow[]>();
  for (const port of ports) {
    const same = names.get(port.name);
    if (same === undefined) names.set(port.name, [port]);
    else same.push(port);
  }
  namedPorts.set(ports, names);
  return names;
}

/** {@link Candidate.key}. @param target a port's number. */
export function keyAt({ family, addresses }: EndpointSliceRow, index: number, target: number): string {
  const size = addressLength(family);
  return addresses.slice(index * size, (index + 1) * size) + String.fromCharCode(target >> 8, target & 0xff);
}

function candidateAt(slice: EndpointSliceRow, index: number, target: number): Candidate {
  return {
    key: keyAt(slice, index, target),
    slice,
    index,
    conditions: slice.conditions[index] ?? 0,
    weight: slice.weight ?? DEFAULT_WEIGHT,
    zone: slice.zoneNames?.[(slice.zones?.charCodeAt(index) ?? 0) - 1] ?? null,
  };
}

export function has(candidate: Candidate, condition: number): boolean {
  return (candidate.conditions & condition) !== 0;
}

/** Sorted. */
export function pack(family: Family, candidates: readonly Candidate[]): EndpointList {
  const keys = candidates.map((candidate) => candidate.key).sort();
  const packed = new Uint8Array(keys.length * endpointSize(family));
  Buffer.from(packed.buffer).write(keys.join(''), 'latin1');
  return new EndpointList(family, packed);
}

export function portOf({ key }: Candidate): number {
  return (key.charCodeAt(key.length - 2) << 8) | key.charCodeAt(key.length - 1);
}

export function addressOf(family: Family, candidate: Candidate): IPAddress {
  return addressFromBytes(Buffer.from(candidate.key, 'latin1').subarray(0, addressLength(family)));
}
