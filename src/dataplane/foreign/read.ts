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
const HOOK = /^type (filter|route) hook ([a-z]+)(?: devices (\S+))? priority (-?\d+) policy (\w+)$/;

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
  const found = (await addon.nftBaseChains(OUR_TABLE)).filter(
    (each) => each.family !== other && !isOurs(each.table) && hookOf(each) !== undefined,
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
      else return chains.flatMap((chain) => nftBase(table, chain));
      return [];
    }),
  );
  return { bases: bases.flat(), unread };
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

function nftBase(table: ForeignTable, each: NftBaseChain): readonly ForeignBase[] {
  const { family, table: name, chain } = each;
  const hook = hookOf(each);
  const [, , , devices, priority, policy] = HOOK.exec(each.hook) ?? [];
  if (hook === undefined) return [];
  const base = { table, chain, hook, priority: Number(priority), devices: devices?.split(':') ?? [] };
  return [
    { ...base, policy: policy === 'drop' ? 'drop' : 'accept', listing: `nft -a list chain ${family} ${name} ${chain}` },
  ];
}

/** Where legacy iptables calls its chains (ip_tables.h), which are not among those of nf_tables. */
const PRIORITIES = { filter: 0, mangle: -150, raw: -300, security: 50 } as const;
const LEGACY_HOOKS: Readonly<Record<string, Hook>> = {
  PREROUTING: 'prerouting',
  INPUT: 'input',
  FORWARD: 'forward',
  OUTPUT: 'output',
  POSTROUTING: 'postrouting',
};

async function readLegacy(addon: Iptables, family: Family): Promise<ForeignRules> {
  const size = await rawSize(addon, family);
  const tables = (['filter', 'mangle', 'raw', 'security'] as const).filter(
    (name) => name !== 'raw' || size <= MOST_RULES,
  );
  // Where there are no such programs there are hardly any such rules.
  const chains = await addon.iptablesList(family, 'legacy', tables, ['']).catch(() => []);
  const unread =
    size <= MOST_RULES ? [] : [`legacy iptables table raw has more than ${MOST_RULES} rules, which are not evaluated`];
  const bases = tables.flatMap((name) => {
    const own = chains.filter(({ table }) => table === name);
    const table: ForeignTable = {
      name: `legacy iptables table ${name}`,
      chains: new Map(own.map((chain) => [chain.name, { name: chain.name, rules: chain.rules ?? [] }])),
      judge: judgeIptablesRule,
    };
    return own.flatMap(({ name: chain, policy }): readonly ForeignBase[] => {
      const hook = LEGACY_HOOKS[chain];
      if (policy === null || hook === undefined) return [];
      const program = family === 'IPv4' ? 'iptables-legacy' : 'ip6tables-legacy';
      const base = { table, chain, hook, priority: PRIORITIES[name], devices: [] };
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

/** Rules of the legacy table raw, where mode iptables has one for each endpoint. */
async function rawSize(addon: Iptables, family: Family): Promise<number> {
  // Without permission or modules, there is nothing that could be read either.
  const sizes = await addon.iptablesSizes(family).catch(() => '');
  return Number(/^raw (\d+) /m.exec(sizes)?.[1] ?? 0);
}
