import type { NftChainListing, NftCommand, NftTableListing } from '../../native/contract.js';
import { deleteChain, deleteSet, deleteObject, flushChain, flushSet, type TableName } from './json.js';
import { CHAIN, COUNTED, SET, countChain, isWrittenByPackets, parseEndpointsMap } from './names.js';
import { parseRetryTimeout } from './retry.js';
import { isClassChain } from './structure.js';

/** The table after kube-proxy has started in it again: its rules are in force, and no rule leads to ours any more. */

const JUMP = /\[immediate dreg 0 value (?:jump|goto) ([^\]]+)\]/g;

const BASE_CHAINS: ReadonlySet<string> = new Set([
  CHAIN.preroutingBeforeDnat,
  CHAIN.outputBeforeDnat,
  CHAIN.input,
  CHAIN.forward,
  CHAIN.output,
  CHAIN.natPrerouting,
  CHAIN.natOutput,
  CHAIN.natPostrouting,
]);

const CHAINS: ReadonlySet<string> = new Set([...Object.values(CHAIN), ...COUNTED.map(({ of }) => countChain(of))]);
const SETS: ReadonlySet<string> = new Set(Object.values(SET));

/**
 * The commands that remove our objects from a table that another proxy uses, a transaction each; none when there are no such
 * objects. The base chains have the same names in both proxies and stay.
 *
 * Null when no other proxy uses the table: all its names are ours, or a base chain leads to a chain of ours. A proxy makes
 * its base chains anew when it starts (behaviour NF-41), so they lead to the chains of the proxy that started last.
 */
export function removalFromShared(
  where: TableName,
  listing: NftTableListing,
): readonly (readonly NftCommand[])[] | null {
  const sets = listing.sets.filter(({ declaration }) => !/ flags anonymous\b/.test(declaration));
  const isForeign =
    listing.chains.some(({ name }) => !BASE_CHAINS.has(name) && !isOwnChain(name)) ||
    sets.some(({ name }) => !isOwnSet(name));
  const isOurs = listing.chains.some((chain) => chain.hook !== null && targetsOf(chain).some(isOwnChain));
  if (!isForeign || isOurs) return null;
  const ownChains = listing.chains.map(({ name }) => name).filter(isOwnChain);
  const ownSets = sets.map(({ name }) => name).filter(isOwnSet);
  const ownTimeouts = listing.objects.map(({ name }) => name).filter((name) => parseRetryTimeout(name) !== null);
  if (ownChains.length + ownSets.length + ownTimeouts.length === 0) return [];
  // Two transactions: kernels before 6.2 release a map's references only after the one that empties it.
  return [
    [...ownChains.map((name) => flushChain(where, name)), ...ownSets.map((name) => flushSet(where, name))],
    [
      ...ownChains.map((name) => deleteChain(where, name)),
      ...ownSets.map((name) => deleteSet(where, name)),
      ...ownTimeouts.map((name) => deleteObject(where, name, undefined)),
    ],
  ];
}

/** The chains that the rules of a chain lead to by name. */
function targetsOf({ rules }: NftChainListing): readonly string[] {
  return rules.flatMap((rule) => [...rule.matchAll(JUMP)].map(([, name = '']) => name));
}

/** Whether only our chains have this name. kube-proxy's chains of single Services have a "/". */
function isOwnChain(name: string): boolean {
  return !BASE_CHAINS.has(name) && !name.includes('/') && (CHAINS.has(name) || isClassChain(name));
}

function isOwnSet(name: string): boolean {
  if (name.includes('/')) return false;
  return SETS.has(name) || parseEndpointsMap(name) !== null || isWrittenByPackets(name);
}
