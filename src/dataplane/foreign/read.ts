import type { Family } from '../../base/ip.js';
import type { IptablesAddon, NftablesAddon, NftBaseChain, NftSetListing } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import { ATTEMPTS_TABLE } from '../attempts/footprint.js';
import { TRACE_TABLE } from '../trace/table.js';
import { judgeIptablesRule } from './iptables-rules.js';
import { nftJudge } from './nft-rules.js';
import { HOOKS, type ForeignBase, type ForeignChain, type ForeignTable, type Hook } from './packet.js';

/**
 * Tables with more are not read to the end. An explanation would take too long. In mode iptables our own rules are among them: the kernel took seconds of a
 * core to list 200,000 rules of table raw, and more while they changed.
 */
const MOST_RULES = 20_000;
/** Elements of so many sets of a table are read. */
const MOST_SETS = 64;
/** The table of mode nftables, independent of the mode in force. */
const OUR_TABLE = 'kube-proxy';
const OURS: readonly string[] = [ATTEMPTS_TABLE, 'kube-proxy-trial'];
const HOOK = /^type (filter|route|nat) hook ([a-z]+)(?: devices (\S+))? priority (-?\d+) policy (\w+)$/;

function isOurs(table: string): boolean {
  return OURS.includes(table) || table.startsWith(TRACE_TABLE);
}

type Nft = Pick<NftablesAddon, 'nftBaseChains' | 'nftList' | 'nftElements'>;
type Iptables = Pick<IptablesAddon, 'iptablesList' | 'iptablesSizes'>;

export interface ForeignReading {
  readonly nftables: Nft;
  readonly iptables: Iptables;
}

interface ForeignRules {
  readonly bases: readonly ForeignBase[];
  /** Tables that were not read, and why. */
  readonly unread: readonly string[];
}

/** Base chains of others by which packets of a family go, with all that is needed to evaluate their rules. */
export async function readForeign(addon: ForeignReading, family: Family): Promise<ForeignRules> {
  const [nft, legacy] = await Promise.all([readNft(addon.nftables, family), readLegacy(addon.iptables, family)]);
  const bases = [...nft.bases, ...legacy.bases];
  return {
    bases: bases.sort(
      (one, other) => HOOKS.indexOf(one.hook) - HOOKS.indexOf(other.hook) || one.priority - other.priority,
    ),
    unread: [...nft.unread, ...legacy.unread],
  };
}

async function readNft(addon: Nft, family: Family): Promise<ForeignRules> {
  const other = family === 'IPv4' ? 'ip6' : 'ip';
  // No table is called so: the place of ours among them is wanted.
  const all = await addon.nftBaseChains('-');
  const found = all.filter(
    (each) => each.family !== other && each.table !== OUR_TABLE && !isOurs(each.table) && hookOf(each) !== undefined,
  );
  const byTable = new Map<string, NftBaseChain[]>();
  for (const each of found) {
    const key = `${each.family} ${each.table}`;
    byTable.set(key, [...(byTable.get(key) ?? []), each]);
  }
  const unread: string[] = [];
  const bases = await Promise.all(
    [...byTable.values()].map(async (chains) => {
      const [first] = chains;
      const table = first === undefined ? null : await readTable(addon, first);
      if (table === null) return [];
      if (typeof table === 'string') unread.push(table);
      else return chains.flatMap((chain) => nftBase(table, chain, all.indexOf(chain)));
      return [];
    }),
  );
  const placed = bases.flat();
  // The kernel lists tables as they were made, and calls the chain that was made last first (nf_hook_entries_grow).
  const own = (wanted: Hook): number => {
    const ofMode = all.findIndex((each) => each.table === OUR_TABLE && each.family !== other && isNatAt(each, wanted));
    return ofMode < 0
      ? (placed.find(({ base }) => base.isNat && base.hook === wanted && leadsToOurs(base))?.place ?? -1)
      : ofMode;
  };
  const withOrder = ({ base, place }: PlacedBase): ForeignBase =>
    base.isNat && own(base.hook) >= 0 ? { ...base, isFirst: place > own(base.hook) } : base;
  return { bases: placed.map(withOrder), unread };
}

/** Null: it is gone, or sleeps; a text: why it is not read. */
async function readTable(addon: Nft, { family, table }: NftBaseChain): Promise<ForeignTable | string | null> {
  const listing = await addon.nftList(family, table, [], MOST_RULES).catch((error: unknown): 'too many' => {
    if (isNativeError(error) && error.errno === 'E2BIG') return 'too many';
    throw error;
  });
  if (listing === 'too many')
    return `table ${family} ${table} has more than ${MOST_RULES} rules, which are not evaluated`;
  if (listing === null || listing.chains.some(({ hook }) => hook?.endsWith(' dormant') === true)) return null;
  const asked = new Set<string>();
  for (const chain of listing.chains)
    for (const rule of chain.rules)
      for (const [, set = ''] of rule.matchAll(/\[lookup [^\][]*\bset (\S+?)[ \]]/g)) asked.add(set);
  const sets = asked.size === 0 ? [] : await addon.nftElements(family, table, [...asked].slice(0, MOST_SETS));
  return {
    name: `table ${family} ${table}`,
    chains: new Map(listing.chains.map((chain): [string, ForeignChain] => [chain.name, chain])),
    judge: nftJudge(new Map(sets.map((set): [string, NftSetListing] => [set.name, set]))),
  };
}

function hookOf({ hook }: NftBaseChain): Hook | undefined {
  return HOOKS.find((each) => each === HOOK.exec(hook)?.[2]);
}

/** With its place among all base chains that are listed. */
interface PlacedBase {
  readonly base: ForeignBase;
  readonly place: number;
}

function isNatAt({ hook }: NftBaseChain, wanted: Hook): boolean {
  return hook.startsWith(`type nat hook ${wanted} priority -100 `);
}

/** Whether the rules of a mode are in the chain itself, so that the order is known. */
export function leadsToOurs({ table, chain }: ForeignBase): boolean {
  return table.chains.get(chain)?.rules.some((rule) => rule.includes('KUBE-SERVICES')) === true;
}

function nftBase(table: ForeignTable, each: NftBaseChain, place: number): readonly PlacedBase[] {
  const { family, table: name, chain } = each;
  const hook = hookOf(each);
  const [, type, , devices, priority, policy] = HOOK.exec(each.hook) ?? [];
  const isNat = type === 'nat';
  // Sources that others translate are not in the way.
  if (hook === undefined || (isNat && hook !== 'prerouting' && hook !== 'output')) return [];
  const base = {
    table,
    chain,
    hook,
    priority: Number(priority),
    devices: devices?.split(':') ?? [],
    isNat,
    isFirst: null,
  };
  return [
    {
      place,
      base: {
        ...base,
        policy: policy === 'drop' ? 'drop' : 'accept',
        listing: `nft -a list chain ${family} ${name} ${chain}`,
      },
    },
  ];
}

/** Where legacy iptables calls its chains (ip_tables.h), which are not among those of nf_tables. */
const PRIORITIES = { filter: 0, nat: -100, mangle: -150, raw: -300, security: 50 } as const;
/** Tables in which mode iptables has rules of endpoints. */
const LARGE = ['raw', 'nat'] as const;
const LEGACY_HOOKS: Readonly<Record<string, Hook>> = {
  PREROUTING: 'prerouting',
  INPUT: 'input',
  FORWARD: 'forward',
  OUTPUT: 'output',
  POSTROUTING: 'postrouting',
};

async function readLegacy(addon: Iptables, family: Family): Promise<ForeignRules> {
  const sizes = await sizesOf(addon, family);
  const isTooLarge = (name: string): boolean =>
    sizes.split('\n').some((line) => line.startsWith(`${name} `) && Number(line.split(' ')[1]) > MOST_RULES);
  const tables = (['filter', 'nat', 'mangle', 'raw', 'security'] as const).filter((name) => !isTooLarge(name));
  // Where there are no such programs there are hardly any such rules.
  const chains = await addon.iptablesList(family, 'legacy', tables, ['']).catch(() => []);
  const unread = LARGE.filter(isTooLarge).map(
    (name) => `legacy iptables table ${name} has more than ${MOST_RULES} rules, which are not evaluated`,
  );
  const bases = tables.flatMap((name) => {
    const own = chains.filter(({ table }) => table === name);
    const table: ForeignTable = {
      name: `legacy iptables table ${name}`,
      chains: new Map(own.map((chain) => [chain.name, { name: chain.name, rules: chain.rules ?? [] }])),
      judge: judgeIptablesRule,
    };
    return own.flatMap(({ name: chain, policy }): readonly ForeignBase[] => {
      const hook = LEGACY_HOOKS[chain];
      const isNat = name === 'nat';
      if (policy === null || hook === undefined) return [];
      if (isNat && hook !== 'prerouting' && hook !== 'output') return [];
      const program = family === 'IPv4' ? 'iptables-legacy' : 'ip6tables-legacy';
      const base = { table, chain, hook, priority: PRIORITIES[name], devices: [], isNat, isFirst: null };
      return [
        {
          ...base,
          policy: policy === 'DROP' ? 'drop' : 'accept',
          listing: `${program} -t ${name} -L ${chain} -nv --line-numbers`,
        },
      ];
    });
  });
  return { bases, unread };
}

/** Rules of the legacy tables that are in use. */
async function sizesOf(addon: Iptables, family: Family): Promise<string> {
  // Without permission or modules, there is nothing that could be read either.
  return await addon.iptablesSizes(family).catch(() => '');
}
