import { messageOf } from '../../base/error-message.js';
import { addressFromBytes, type Family } from '../../base/ip.js';
import type { IpsetOperation, IpvsOperation, NativeAddon } from '../../native/contract.js';
import { isNativeError, type NativeError } from '../../native/errors.js';
import type { NodeFault } from '../contract.js';
import type { FoundFaults } from '../driver.js';
import { ModeError } from '../mode.js';
import { HASHING_SCHEDULER, weighingScheduler } from './frontends.js';
import { LINK, SET_ROLES, setType } from './names.js';
import { nameService, setCreation } from './wire.js';

/** In a network that is for documentation alone (behaviour ST-36). */
const TRIAL = nameService({
  address: addressFromBytes(Uint8Array.of(198, 51, 100, 0)),
  port: 20_000,
  protocol: 'TCP',
});

const LOADING = ' (before 5.16 a kernel does not load it by itself: have the node load the module ip_vs as it boots)';

/** @throws ModeError when the kernel has no ip_vs or no such scheduler. Nothing stays changed. */
export async function tryScheduler(
  parts: Pick<NativeAddon, 'ipvs'>,
  scheduler: string,
  families: readonly Family[],
): Promise<void> {
  if (await hasScheduler(parts, scheduler, families)) return;
  throw new ModeError(`ipvs.scheduler: this kernel has no scheduler ${JSON.stringify(scheduler)}`);
}

/** The schedulers that Services may ask for and the kernel does not have. */
export async function lackingSchedulers(
  parts: Pick<NativeAddon, 'ipvs'>,
  scheduler: string,
  families: readonly Family[],
): Promise<readonly string[]> {
  const lacking: string[] = [];
  for (const each of new Set([HASHING_SCHEDULER, weighingScheduler(scheduler)]))
    if (each !== scheduler && !(await hasScheduler(parts, each, families))) lacking.push(each);
  return lacking;
}

/** @throws ModeError when the kernel has no ip_vs. */
async function hasScheduler(
  { ipvs }: Pick<NativeAddon, 'ipvs'>,
  scheduler: string,
  families: readonly Family[],
): Promise<boolean> {
  const state = { scheduler, flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  const remove: IpvsOperation = { type: 'service', verb: 'delete', service: TRIAL, state: null };
  try {
    const held = await Promise.all(families.map((family) => ipvs.ipvsServices(family)));
    if (held.flat().some((service) => service.scheduler === scheduler)) return true;
    // A process that was killed during its trial leaves objects. They would be in the way, and do not show the scheduler.
    const trial: IpvsOperation = { type: 'service', verb: 'new', service: TRIAL, state };
    const applied = await ipvs.ipvsApply([remove, trial, remove]);
    const refused = applied.refused.find(({ index }) => index === 1);
    // Another process tries at this moment. Every virtual service reports a scheduler that is not there.
    if (refused === undefined || refused.errno === 'EEXIST') return true;
    if (refused.errno !== 'ENOENT') throw refused;
  } catch (error) {
    const advice = isNativeError(error) && error.errno === 'ENOENT' ? LOADING : '';
    throw new ModeError(`ip_vs cannot be used: ${messageOf(error)}${advice}`);
  }
  return false;
}

/** Matches of rules, with their modules. */
const MATCHES = { set: 'xt_set', ipvs: 'xt_ipvs' } as const;

/** @throws ModeError when the kernel lacks what the rules are made of. */
export async function requireMatches(
  { iptables }: Pick<NativeAddon, 'iptables'>,
  families: readonly Family[],
): Promise<void> {
  const lacking: string[] = [];
  for (const family of families)
    for (const [name, module] of Object.entries(MATCHES))
      if ((await iptables.iptablesMatch(family, name)) === false) lacking.push(`${module} (${family})`);
  if (lacking.length > 0)
    throw new ModeError(
      `this kernel has no match for rules to look at ip_vs and sets with: ${lacking.join(', ')} (modprobe -a ip_vs xt_ipvs xt_set, or use mode nftables)`,
    );
}

/** A name that no proxy uses, so that a proxy at work is not disturbed. */
const TRIAL_SET = 'KUBE-TRIAL';

/**
 * What the kernel lacks of sets and links. The trial makes and removes each type of set in the families, and the mode's link
 * if there is none.
 */
export async function trySetsAndLink(
  { ipset, route }: Pick<NativeAddon, 'ipset' | 'route'>,
  families: readonly Family[],
): Promise<readonly unknown[]> {
  const roles = new Map(SET_ROLES.map((role) => [setType(role), role])).values();
  const operations = [...roles].flatMap((role) =>
    families.flatMap((family): readonly IpsetOperation[] => [
      { type: 'create', set: { ...setCreation(family, role), name: TRIAL_SET } },
      { type: 'destroy', name: TRIAL_SET },
    ]),
  );
  const [sets, link] = await Promise.allSettled([ipset.ipsetApply(operations), tryLink(route)]);
  // An object that could not be made is not there to be removed.
  const lacks = ({ index, errno }: NativeError): boolean =>
    operations[index ?? 0]?.type === 'create' || errno !== 'ENOENT';
  const refused = sets.status === 'fulfilled' ? sets.value.refused.filter(lacks) : [sets.reason as unknown];
  return link.status === 'fulfilled' ? refused : [...refused, link.reason as unknown];
}

/** Objects of the mode that the kernel lacks, whatever Service they are for. Nothing stays changed. */
export async function nodeFaults(
  parts: Pick<NativeAddon, 'ipvs' | 'ipset' | 'route'>,
  family: Family,
  scheduler: string,
): Promise<FoundFaults> {
  const faults: NodeFault[] = [];
  if (!(await hasScheduler(parts, scheduler, [family])))
    faults.push({
      text: `this kernel has no scheduler ${scheduler} of ip_vs, which mode ipvs is configured to use`,
      remedy: `modprobe ip_vs_${scheduler}, and list it in /etc/modules-load.d; or set ipvs.scheduler to another`,
      isVital: true,
    });
  const refused = await trySetsAndLink(parts, [family]);
  if (refused.length > 0)
    faults.push({
      text: `this kernel does not take the sets or the link of mode ipvs: ${[...new Set(refused.map(messageOf))].join('; ')}`,
      remedy:
        'modprobe -a ip_set_hash_ip ip_set_hash_ipport ip_set_hash_ipportip ip_set_hash_ipportnet ip_set_bitmap_port dummy',
      isVital: true,
    });
  return { faults, explains: (reason) => faults.length > 0 && MISSING.test(reason) };
}

/** The kernel has no such object or type. */
const MISSING = /: (?:ENOENT|EOPNOTSUPP|EPROTONOSUPPORT) \(/;

async function tryLink(route: NativeAddon['route']): Promise<void> {
  if (await route.linkEnsureDummy(LINK)) await route.linkDelete(LINK);
}
