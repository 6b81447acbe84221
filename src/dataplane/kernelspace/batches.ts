import type { HcnAddon, HcnKind, HcnListed } from '../../native/contract.js';
import type { Desired } from './desired.js';
import type { LoadBalancerKey } from './listing.js';
import { serviceOf } from '../../plan/frontend-key.js';

/** So many operations go to HNS at a time. A slow one takes 10 ms for each; a process that ends waits for one batch. */
const BATCH = 32;

/** Names are resolved on it. */
const DNS_PORT = 53;

/**
 * In the given order.
 *
 * @param costOf operations that one takes.
 */
export function* parts<Key>(keys: readonly Key[], costOf: (key: Key) => number): IterableIterator<readonly Key[]> {
  let part: Key[] = [];
  let cost = 0;
  for (const key of keys) {
    part.push(key);
    cost += costOf(key);
    if (cost < BATCH) continue;
    yield part;
    part = [];
    cost = 0;
  }
  if (part.length > 0) yield part;
}

/** Frontends Service by Service. Services with the port of DNS come first: every pod needs them first. */
export function servicesFirst(
  keys: readonly LoadBalancerKey[],
  desired: Pick<Desired, 'get'>,
): readonly LoadBalancerKey[] {
  const plans = new Map(keys.map((key) => [key, desired.get(key)?.plan]));
  const owner = (key: LoadBalancerKey): string => serviceOf(plans.get(key)?.servicePort ?? '');
  const dns = new Set(keys.filter((key) => plans.get(key)?.port === DNS_PORT).map(owner));
  const services = new Map<string, LoadBalancerKey[]>();
  for (const key of keys) services.set(owner(key), [...(services.get(owner(key)) ?? []), key]);
  const names = [...services.keys()];
  const ordered = [...names.filter((name) => dns.has(name)), ...names.filter((name) => !dns.has(name))];
  return ordered.flatMap((name) => services.get(name) ?? []);
}

/** Most objects that are asked for at a time. */
const MOST_READ = 64;

export type HcnReader = Pick<HcnAddon, 'hcnIds' | 'hcnList'>;

/**
 * Reads all objects of a kind in parts of about one size: each object takes some calls of HNS, and a process that ends waits
 * for the calls under way.
 *
 * @param onPart called before each part; if it throws, the reading ends.
 */
export function readerInParts(hcn: HcnReader, onPart: () => void): HcnReader {
  return {
    hcnIds: (kind) => hcn.hcnIds(kind),
    hcnList: async <Kind extends HcnKind>(kind: Kind, some: readonly string[] | null) => {
      onPart();
      if (kind === 'network') return await hcn.hcnList(kind, some);
      const ids = some ?? (await hcn.hcnIds(kind));
      const size = Math.ceil(ids.length / Math.ceil(Math.max(ids.length, 1) / MOST_READ));
      const listed: HcnListed<Kind>[] = [];
      for (let at = 0; at < Math.max(ids.length, 1); at += Math.max(size, 1)) {
        onPart();
        listed.push(...(await hcn.hcnList(kind, ids.slice(at, at + size))));
      }
      return listed;
    },
  };
}
