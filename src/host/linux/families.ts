import { existsSync, readFileSync } from 'node:fs';
import type { Family } from '../../base/ip.js';

/** IP families that this machine's network namespace serves; IPv6 may be switched off or not built in (behaviour ST-30). */
export function supportedFamilies(): readonly Family[] {
  return isIPv6Usable() ? ['IPv4', 'IPv6'] : ['IPv4'];
}

function isIPv6Usable(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  try {
    return readFileSync('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'utf8').trim() !== '1';
  } catch {
    return false;
  }
}
