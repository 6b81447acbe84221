import type { Family, IPAddress } from '../../base/ip.js';
import type { HnsNetworkChoice } from '../../config/hns-network.js';
import type { KernelspaceSettings } from './desired.js';
import type { Found } from './resolution.js';

/** A family's settings from the configuration and the version of HNS. */
export interface FamilySettings extends KernelspaceSettings {
  readonly family: Family;
  readonly network: HnsNetworkChoice;
  /** The configured source, if it is an address of the family. */
  readonly sourceVip: IPAddress | null;
  /** Name of the HNS endpoint that has the source; null: none is named. */
  readonly sourceVipEndpoint: string | null;
  /** Whether this family is served on overlay networks, which have only one family (behaviour WK-02). */
  readonly servesOverlay: boolean;
}

/** The network as it is configured. */
export function networkName({ network: { by, text } }: Pick<FamilySettings, 'network'>): string {
  return by === 'name' ? text : by === 'prefix' ? `${text}*` : `of type ${text}`;
}

/** Why the family is not served; null: it is. @throws Error when something is missing that may appear later. */
export function whyUnserved({ network, sourceVip }: Found, settings: FamilySettings): string | null {
  const { family, servesOverlay, sourceVipEndpoint, features } = settings;
  if (!network.isOverlay) return null;
  const name = networkName(settings);
  if (!servesOverlay) return `HNS network ${name} is an overlay, which has one family: ${family} is not served`;
  if (sourceVip === null && sourceVipEndpoint !== null)
    throw new Error(
      `winkernel.sourceVip: HNS network ${name} has no endpoint ${sourceVipEndpoint} with an ${family} address`,
    );
  if (sourceVip === null)
    throw new Error(`winkernel.sourceVip: required for the overlay network ${name}, in ${family}`);
  if (!features.remoteSubnet) throw new Error('this version of HNS has no remote subnets, which overlay networks need');
  return null;
}
