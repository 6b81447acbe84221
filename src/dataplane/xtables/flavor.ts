import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing, IptablesFlavor } from '../../native/contract.js';
import { messageOf } from '../../base/error-message.js';
import type { Log } from '../../base/log.js';
import { ModeError } from '../mode.js';
import { hookRemovals, type Hook } from './hooks.js';
import { tryRule } from './probe.js';

type Flavors = Pick<IptablesAddon, 'iptablesFlavors' | 'iptablesList'>;

/** The error of the nft programs where nf_tables has no tables of IP: it lists them as empty, and takes no rule. */
const LACKING = /Operation not supported/;

/** Chains that show a host's flavour, the surest first: kubelet's own hint, then chains of kubelet and of a service proxy. */
const SIGNS: readonly RegExp[] = [/^KUBE-IPTABLES-HINT$/, /^KUBE-KUBELET-CANARY$/, /^KUBE-PROXY-CANARY$/, /^KUBE-/];

/** One flavour for all families: that of the first which has one. @throws ModeError when there is none. */
export async function prepareFlavor(
  addon: Flavors & Pick<IptablesAddon, 'iptablesRestore'>,
  families: readonly Family[],
  asked: IptablesFlavor | 'auto',
  log: Log,
): Promise<{ readonly flavor: IptablesFlavor; readonly served: readonly Family[] }> {
  const wanted = asked === 'auto' ? null : asked;
  let chosen = wanted;
  const served: Family[] = [];
  for (const family of families) {
    const found = await chooseFlavor(addon, family, chosen);
    if (found === null) continue;
    const flavor =
      found === 'nft' && asked === 'auto' && chosen === null ? await triedFlavor(addon, family, log) : found;
    chosen = flavor;
    served.push(family);
  }
  if (chosen !== null && served.length > 0) {
    log.info(0, 'iptables', { flavor: chosen, families: served.join() });
    for (const family of families)
      if (!served.includes(family))
        log.warn(`no iptables-${chosen} programs that work for ${family}, it is not served`);
    return { flavor: chosen, served };
  }
  const programs = wanted === null ? 'iptables-nft-restore or iptables-legacy-restore' : `iptables-${wanted}-restore`;
  const why = await whyNot(addon, families[0] ?? 'IPv4', wanted ?? 'nft');
  throw new ModeError(
    `iptables is not available on this host: found no ${programs} that works (mode nftables needs no programs)${why}`,
  );
}

/** In the words of the program itself; empty: it has none. */
async function whyNot(addon: Flavors, family: Family, flavor: IptablesFlavor): Promise<string> {
  const words = await addon.iptablesList(family, flavor, ['filter'], []).then(() => '', messageOf);
  if (words === '') return '';
  return `: ${words}${/EPERM|Permission denied/.test(words) ? '; it takes root and CAP_NET_ADMIN' : ''}`;
}

/** nft, unless the kernel refuses its rules and takes those of legacy: a kernel may have nf_tables without tables of IP. */
async function triedFlavor(
  addon: Pick<IptablesAddon, 'iptablesRestore'>,
  family: Family,
  log: Log,
): Promise<IptablesFlavor> {
  // An error that is no refusal may pass, or fails the first sync.
  const reason = await tryRule(addon, family, 'nft', '-j RETURN').catch(messageOf);
  if (reason === null || !LACKING.test(reason) || !(await takesLegacy(addon, family))) return 'nft';
  log.warn('this kernel takes no rules of iptables-nft, those of iptables-legacy are used', { family, reason });
  return 'legacy';
}

async function takesLegacy(addon: Pick<IptablesAddon, 'iptablesRestore'>, family: Family): Promise<boolean> {
  return (await tryRule(addon, family, 'legacy', '-j RETURN').catch(messageOf)) === null;
}

/**
 * The flavour to write a family's rules with; null when no program works for it. All software of a host should use one: two
 * flavours are two separate rulesets, and each packet meets both.
 *
 * @param wanted null: the one in which Kubernetes has chains, then the one with more rules, then nft.
 */
export async function chooseFlavor(
  addon: Flavors,
  family: Family,
  wanted: IptablesFlavor | null,
): Promise<IptablesFlavor | null> {
  // Legacy is not looked for where nothing uses it; a host may still be configured to.
  if (wanted === 'legacy') return wanted;
  const working = (await addon.iptablesFlavors(family)).map(({ flavor }) => flavor);
  if (wanted !== null) return working.includes(wanted) ? wanted : null;
  const [only, ...others] = working;
  if (only === undefined || others.length === 0) return only ?? null;
  const found = await Promise.all(
    working.map(async (flavor) => ({ flavor, chains: await addon.iptablesList(family, flavor, ['mangle'], []) })),
  );
  const signed = bySign(found);
  if (signed !== null) return signed;
  const all = await Promise.all(
    working.map(async (flavor) => ({
      flavor,
      chains: await addon.iptablesList(family, flavor, ['nat', 'filter'], []),
    })),
  );
  return bySign(all) ?? byRules(all);
}

/** Whether another flavour has one of these jumps in filter. A flavour that cannot be listed counts as none: it may be unused. */
export async function inOtherFlavors(
  addon: Flavors,
  family: Family,
  own: IptablesFlavor,
  hooks: readonly Hook[],
): Promise<boolean> {
  const flavors = await addon.iptablesFlavors(family).catch(() => []);
  const found = await Promise.all(
    flavors
      .filter(({ flavor }) => flavor !== own)
      .map(({ flavor }) => addon.iptablesList(family, flavor, ['filter'], []).catch(() => [])),
  );
  return found.some((listing) => hookRemovals(listing, hooks).length > 0);
}

interface Found {
  readonly flavor: IptablesFlavor;
  readonly chains: readonly IptablesChainListing[];
}

function bySign(found: readonly Found[]): IptablesFlavor | null {
  for (const sign of SIGNS) {
    const holders = found.filter(({ chains }) => chains.some(({ name }) => sign.test(name)));
    const [only, ...others] = holders;
    if (only !== undefined && others.length === 0) return only.flavor;
    if (only !== undefined) return byRules(holders);
  }
  return null;
}

function byRules(found: readonly Found[]): IptablesFlavor | null {
  const counted = found.map(({ flavor, chains }) => ({
    flavor,
    rules: chains.reduce((sum, { ruleCount }) => sum + ruleCount, 0),
  }));
  const most = Math.max(...counted.map(({ rules }) => rules));
  const best = counted.filter(({ rules }) => rules === most).map(({ flavor }) => flavor);
  return best.includes('nft') ? 'nft' : (best[0] ?? null);
}
