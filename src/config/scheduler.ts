import type { Config } from './config.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import type { Report } from './tables/report.js';
import { remarked } from './tables/settings.js';

/**
 * What schedulers of ip_vs do to new connections although some endpoint could take them: endpoints that take connections have weight 1 or more, those that drain
 * weight 0. Seen on Linux 6.1; every other scheduler that a mainline kernel has passes over endpoints of weight 0.
 */
const LIMITATIONS: ReadonlyMap<string, string> = new Map([
  ['ovf', 'an endpoint takes a new connection only while it has none, so most connections are refused'],
  ['fo', 'one endpoint of a Service gets all connections'],
  ['dh', 'one endpoint of a Service gets all connections, and they are refused while it drains'],
  ['sh', 'clients of an endpoint that drains are refused until its connections end'],
]);

/** What a scheduler of mode ipvs cannot do, in a sentence; null: nothing is known. */
function schedulerLimitation(scheduler: string): string | null {
  const limitation = LIMITATIONS.get(scheduler);
  return limitation === undefined ? null : `scheduler "${scheduler}": ${limitation}`;
}

/** A warning about the field. */
export function describeLimitations({ mode, ipvs }: Pick<KubeProxyConfiguration, 'mode' | 'ipvs'>): readonly Report[] {
  const limitation = mode === 'ipvs' ? schedulerLimitation(ipvs.scheduler) : null;
  return limitation === null ? [] : [remarked(`${KIND}.ipvs.scheduler`, 'limitation', limitation)];
}

/** What the configuration in force asks for and the kernel does not do well, in a sentence; null: nothing is known. */
export function limitationOf({ ipvs }: Pick<Config, 'ipvs'>): string | null {
  return ipvs === null ? null : schedulerLimitation(ipvs.scheduler);
}
