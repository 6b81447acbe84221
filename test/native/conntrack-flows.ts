// needs: conntrack
import { execFileSync } from 'node:child_process';

import type { FlowFilter } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { addressBytes, addressFromBytes, type Family } from '../../src/base/ip.js';
import { address } from '../dataplane/conntrack-records.js';

/** Flows in this process's namespace, which is one of its own: made by conntrack(8), and listed by it and by the addon. */

export const addon = loadAddon().conntrack;

export const TCP = 6;
export const UDP = 17;
export const SCTP = 132;

export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export interface Tuple {
  readonly protocol: 'udp' | 'sctp' | 'tcp';
  readonly from: string;
  readonly to: string;
  readonly port: number;
  /** Address and port that reply; the destination when not given. */
  readonly by?: readonly [string, number];
  readonly zone?: number;
  /** As conntrack(8) spells it; ESTABLISHED when not given. */
  readonly state?: string;
  /** Whether anything was replied. */
  readonly replied?: boolean;
}

const SOURCE_PORT = 40_000;

export function insert({ protocol, from, to, port, by, zone, state, replied }: Tuple): void {
  const args = ['-I', '-p', protocol, '-s', from, '-d', to, '--sport', `${SOURCE_PORT}`, '--dport', `${port}`];
  args.push('-t', '100', '-r', by?.[0] ?? to, '-q', from);
  args.push('--reply-port-src', `${by?.[1] ?? port}`, '--reply-port-dst', `${SOURCE_PORT}`);
  if (protocol !== 'udp') args.push('--state', state ?? 'ESTABLISHED');
  if (replied === true) args.push('-u', 'SEEN_REPLY');
  if (protocol === 'sctp') args.push('--orig-vtag', '1', '--reply-vtag', '1');
  if (zone !== undefined) args.push('-w', `${zone}`);
  run('conntrack', ...args);
}

export function flush(): void {
  run('conntrack', '-F');
  run('conntrack', '-F', '-f', 'ipv6');
}

/** What conntrack(8) shows, one sorted line per flow: `udp src dst sport dport < src dst sport dport zone id`. */
export function shown(family: Family, ...filter: readonly string[]): string[] {
  const listed = run('conntrack', '-L', '-f', family === 'IPv4' ? 'ipv4' : 'ipv6', '-o', 'id', ...filter);
  return listed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const values = (key: string): string[] =>
        [...line.matchAll(new RegExp(`\\b${key}=(\\S+)`, 'g'))].map(([, value]) => value ?? '');
      const side = (index: number): string =>
        ['src', 'dst', 'sport', 'dport'].map((key) => values(key)[index] ?? '').join(' ');
      const zone = values('zone')[0] ?? values('zone-orig')[0] ?? '0';
      return `${line.split(' ')[0] ?? ''} ${side(0)} < ${side(1)} zone ${zone} id ${values('id')[0] ?? ''}`;
    })
    .sort();
}

/** The same of records. */
export function printed(family: Family, records: Uint8Array): string[] {
  const length = family === 'IPv4' ? 4 : 16;
  const size = 4 * length + 20;
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const lines: string[] = [];
  for (let start = 0; start < records.length; start += size) {
    const ports = start + 4 * length;
    const at = (index: number): string =>
      addressFromBytes(records.slice(start + index * length, start + (index + 1) * length));
    const port = (index: number): number => view.getUint16(ports + index * 2);
    const protocol = { [TCP]: 'tcp', [UDP]: 'udp', [SCTP]: 'sctp' }[view.getUint8(ports + 10)] ?? 'other';
    lines.push(
      `${protocol} ${at(0)} ${at(1)} ${port(0)} ${port(1)} < ${at(2)} ${at(3)} ${port(2)} ${port(3)}` +
        ` zone ${view.getUint16(ports + 8)} id ${view.getUint32(ports + 12)}`,
    );
  }
  return lines.sort();
}

export function filter(
  family: Family,
  protocol: number,
  destination: string | null,
  port: number | null,
  unanswered = false,
): FlowFilter {
  return {
    family: family === 'IPv4' ? 'ip' : 'ip6',
    protocol,
    destination: destination === null ? null : addressBytes(address(destination)),
    port,
    unanswered,
  };
}

export async function listed(
  family: Family,
  protocol: number,
  destination: string | null = null,
  port: number | null = null,
): Promise<string[]> {
  const listing = await addon.conntrackList(filter(family, protocol, destination, port));
  const lines = printed(family, listing.records);
  if (listing.count !== lines.length) throw new Error(`${listing.count} flows in ${lines.length} records`);
  return lines;
}
