import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { addressFromBytes, type Family, type IPAddress } from '../../src/base/ip.js';

export interface ListeningSocket {
  readonly family: Family;
  readonly address: IPAddress;
  readonly port: number;
  readonly inode: string;
}

/** TCP_LISTEN of the kernel, as it prints it. */
const LISTEN = '0A';

/** The TCP sockets on which this process listens, as the kernel has them. */
export function listeningSockets(): readonly ListeningSocket[] {
  const own = ownInodes();
  return (['tcp', 'tcp6'] as const).flatMap((name) =>
    readFileSync(`/proc/self/net/${name}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode = '']) => state === LISTEN && own.has(inode))
      .map(([, local = '', , , , , , , , inode = '']) => {
        const [address = '', port = ''] = local.split(':');
        // Words of four bytes, each in the order of the machine.
        const bytes = Buffer.from(address, 'hex').swap32();
        const family = name === 'tcp' ? 'IPv4' : 'IPv6';
        return { family, address: addressFromBytes(bytes), port: parseInt(port, 16), inode };
      }),
  );
}

function ownInodes(): ReadonlySet<string> {
  return new Set(
    readdirSync('/proc/self/fd').flatMap((descriptor) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1] ?? [];
      } catch {
        // The one that the folder was read with is closed.
        return [];
      }
    }),
  );
}
