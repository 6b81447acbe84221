import { createSocket } from 'node:dgram';
import { readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { errorCode, messageOf } from '../../base/error-message.js';
import {
  addressBytes,
  addressLength,
  familyOf,
  parsePrefix,
  prefixLength,
  type Family,
  type IPAddress,
} from '../../base/ip.js';
import type { Bridge, NetworkFacts } from '../host.js';

type Read = (path: string) => string;

const readText: Read = (path) => readFileSync(path, 'utf8');

const FOLDERS: Readonly<Record<Family, string>> = {
  IPv4: '/proc/sys/net/ipv4/conf',
  IPv6: '/proc/sys/net/ipv6/conf',
};

/** See {@link Host.networkFacts}. */
export function networkFacts(
  read: Read = readText,
  interfaces: readonly string[] = Object.keys(networkInterfaces()),
  list: (path: string) => readonly string[] = (path) => readdirSync(path),
): NetworkFacts {
  const flag = (path: string): number | null => numberIn(read, path);
  const forwarding = (family: Family, name: string): boolean | null => {
    const value = flag(`${FOLDERS[family]}/${name}/forwarding`);
    return value === null ? null : value !== 0;
  };
  const others = interfaces.filter((name) => name !== 'lo' && !name.includes('/'));
  const strict = flag(`${FOLDERS.IPv4}/all/rp_filter`) ?? 0;
  const loose = flag(`${FOLDERS.IPv4}/all/route_localnet`) ?? 0;
  return {
    forwarding: { IPv4: forwarding('IPv4', 'all'), IPv6: forwarding('IPv6', 'all') },
    notForwarding: {
      IPv4: others.filter((name) => forwarding('IPv4', name) === false),
      // For IPv6 the value of `all` decides, whatever an interface's value is (ip6_forward).
      IPv6: [],
    },
    // The larger of the two values counts (fib_validate_source): 1 is strict, 2 is loose.
    strictReversePath: others.filter((name) => Math.max(strict, flag(`${FOLDERS.IPv4}/${name}/rp_filter`) ?? 0) === 1),
    routesLoopback: loose !== 0 || others.some((name) => flag(`${FOLDERS.IPv4}/${name}/route_localnet`) === 1),
    bridges: others.flatMap((name) => bridgeOf(read, list, name) ?? []),
    flowDrops: flowDrops(read),
  };
}

/** As names of switches begin, before `tables`. */
const SWITCHES: Readonly<Record<Family, string>> = { IPv4: 'ip', IPv6: 'ip6' };

/** Null: the interface is no bridge, or one without ports. */
function bridgeOf(read: Read, list: (path: string) => readonly string[], name: string): Bridge | null {
  const folder = `/sys/class/net/${name}`;
  try {
    if (list(`${folder}/brif`).length === 0) return null;
  } catch {
    return null;
  }
  // Either of the two suffices (br_nf_pre_routing).
  const filters = (family: Family): boolean | null => {
    const all = numberIn(read, `/proc/sys/net/bridge/bridge-nf-call-${SWITCHES[family]}tables`);
    const own = numberIn(read, `${folder}/bridge/nf_call_${SWITCHES[family]}tables`);
    return all === null ? null : all !== 0 || (own ?? 0) !== 0;
  };
  const cidrs = networkInterfaces()[name]?.flatMap(({ cidr }) => parsePrefix(cidr ?? '') ?? []) ?? [];
  const prefixes = cidrs.filter(
    (cidr) => !cidr.startsWith('fe80:') && prefixLength(cidr) < 8 * addressLength(familyOf(cidr)),
  );
  return { name, prefixes, filters: { IPv4: filters('IPv4'), IPv6: filters('IPv6') } };
}

/** RTF_UP, and RTF_REJECT of routes that lead nowhere (route.h). */
const UP = 0x1;
const REJECT = 0x200;

/** The longest prefix wins, then the smallest metric. Numbers of addresses are in the machine's order. */
export function routeInterface(address: IPAddress, read: Read = readText): string | null {
  const bytes = Uint8Array.from(addressBytes(address));
  if (bytes.length !== 4) return null;
  const wanted = new Uint32Array(bytes.buffer)[0] ?? 0;
  let best: { readonly name: string | null; readonly length: number; readonly metric: number } | null = null;
  let text: string;
  try {
    text = read('/proc/net/route');
  } catch {
    return null;
  }
  for (const line of text.split('\n').slice(1)) {
    const [name = '', to = '', , flags = '', , , metric = '', mask = ''] = line.trim().split(/\s+/);
    const [masked, bits] = [parseInt(mask, 16), parseInt(flags, 16)];
    if (Number.isNaN(masked) || (bits & UP) === 0) continue;
    if ((wanted & masked) >>> 0 !== parseInt(to, 16)) continue;
    const length = masked.toString(2).replaceAll('0', '').length;
    const found = { name: (bits & REJECT) === 0 ? name : null, length, metric: Number(metric) };
    if (best === null || length > best.length || (length === best.length && found.metric < best.metric)) best = found;
  }
  return best?.name ?? null;
}

function numberIn(read: Read, path: string): number | null {
  try {
    const text = read(path).trim();
    return /^-?\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

/** Connections that found no room in the table, over all processors: `drop` of /proc/net/stat/nf_conntrack, in hexadecimal. */
function flowDrops(read: Read): number | null {
  try {
    const [head = '', ...rows] = read('/proc/net/stat/nf_conntrack').trim().split('\n');
    const column = head.trim().split(/\s+/).indexOf('drop');
    if (column < 0) return null;
    return rows.reduce((sum, row) => sum + parseInt(row.trim().split(/\s+/)[column] ?? '0', 16), 0);
  } catch {
    return null;
  }
}

/** See {@link Host.routeProblem}. A datagram socket that connects has its route looked up, by every rule of routing, and sends nothing. */
export async function routeProblem(address: IPAddress): Promise<string | null> {
  const socket = createSocket({ type: familyOf(address) === 'IPv4' ? 'udp4' : 'udp6' });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.connect(9, address, (error?: Error) => {
        if (error === undefined) resolve();
        else reject(error);
      });
    });
    return null;
  } catch (error) {
    return errorCode(error) ?? messageOf(error);
  } finally {
    socket.close();
  }
}
