import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { errorCode, messageOf } from '../../base/error-message.js';
import { familyOf, type Family, type IPAddress } from '../../base/ip.js';
import type { NetworkFacts } from '../host.js';

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
    flowDrops: flowDrops(read),
  };
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
