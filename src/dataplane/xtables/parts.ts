import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesFlavor, IptablesOperation, IptablesTable } from '../../native/contract.js';
import type { NodeFault } from '../contract.js';
import { ModeError, type ModeParts } from '../mode.js';
import type { NodePlan } from '../../plan/types.js';
import { refusedTable } from './failure.js';
import { prepareFlavor } from './flavor.js';
import { PROBE_CHAIN, tryRule } from './probe.js';

/** A match or target of iptables, for which the programs need an extension and the kernel a module. */
export interface Part {
  /** As a rule has it. */
  readonly word: `-m ${string}` | `-j ${string}`;
  readonly module: string;
  readonly table: IptablesTable;
  /** A rule that needs this part alone. */
  readonly rule: string;
  /** The field of a Service that asks for it; null: every Service may need it. */
  readonly feature: string | null;
}

function match(name: string, options: string, module = `xt_${name}`): Part {
  return { word: `-m ${name}`, module, table: 'nat', rule: `${options} -j RETURN`, feature: null };
}

function target(name: string, options: string, module = `xt_${name}`, table: IptablesTable = 'nat'): Part {
  return { word: `-j ${name}`, module, table, rule: options.replace('@', `-j ${name}`), feature: null };
}

/** Parts of all rules of the modes that use the programs. */
function sharedParts(family: Family): readonly Part[] {
  const [six, unreachable] = family === 'IPv4' ? ['', 'icmp'] : ['6', 'icmp6'];
  return [
    match('comment', '-m comment --comment "a rule that is tried"'),
    match('tcp', '-p tcp -m tcp --dport 80', 'xt_tcpudp'),
    match('udp', '-p udp -m udp --dport 53', 'xt_tcpudp'),
    match('mark', '-m mark --mark 0x4000/0x4000'),
    match('conntrack', '-m conntrack --ctstate NEW'),
    match('addrtype', '-m addrtype --src-type LOCAL'),
    target('MARK', '@ --set-xmark 0x4000/0x4000', 'xt_mark'),
    target('MASQUERADE', '@ --random-fully'),
    target('REJECT', `@ --reject-with ${unreachable}-port-unreachable`, `ip${six === '' ? '' : '6'}t_REJECT`, 'filter'),
  ];
}

/** Parts of rules that choose an endpoint. */
function choiceParts(family: Family): readonly Part[] {
  const to = family === 'IPv4' ? '192.0.2.1:80' : '[2001:db8::1]:80';
  return [
    match('statistic', '-m statistic --mode random --probability 0.50000000000'),
    target('DNAT', `-p tcp -m tcp @ --to-destination ${to}`, 'xt_nat'),
    { ...match('recent', '-m recent --set --name KUBE-PROXY-PROBE'), feature: 'sessionAffinity' },
    { ...match('sctp', '-p sctp -m sctp --dport 80'), feature: 'protocol SCTP' },
  ];
}

/** The parts of a mode's rules. @param chooses whether its rules choose endpoints. */
export function partsOf(family: Family, chooses: boolean): readonly Part[] {
  return [...sharedParts(family), ...(chooses ? choiceParts(family) : [])];
}

/** A part that this node does not take, and the words of the programs about it. */
export interface LackingPart {
  readonly part: Part;
  readonly words: string;
}

interface Programs {
  readonly addon: Pick<IptablesAddon, 'iptablesRestore'>;
  readonly family: Family;
  readonly flavor: IptablesFlavor;
}

/**
 * The parts that kernel or programs do not take, each tried where no packet comes by. None if even a rule without parts is
 * refused: the fault is then another. Rejects when the programs cannot run.
 */
export async function lackingParts(programs: Programs, parts: readonly Part[]): Promise<readonly LackingPart[]> {
  const { addon, family, flavor } = programs;
  if (await takesAll(programs, parts)) return [];
  if ((await tryRule(addon, family, flavor, '-j RETURN', 'nat')) !== null) return [];
  const lacking: LackingPart[] = [];
  for (const part of parts) {
    const words = await tryRule(addon, family, flavor, part.rule, part.table);
    if (words !== null) lacking.push({ part, words });
  }
  return lacking;
}

/** Tries all of them at once: mostly nothing is lacking. */
async function takesAll({ addon, family, flavor }: Programs, parts: readonly Part[]): Promise<boolean> {
  const tables = [...new Set(parts.map(({ table }) => table))];
  const chain = PROBE_CHAIN;
  const send = (operations: readonly IptablesOperation[]): Promise<unknown> =>
    addon.iptablesRestore({ family, flavor, operations });
  const rulesIn = (table: IptablesTable): readonly { readonly type: 'text'; readonly text: string }[] =>
    parts.flatMap((part) => (part.table === table ? [{ type: 'text', text: part.rule }] : []));
  try {
    await send(tables.map((table) => ({ type: 'chain', table, chain, rules: rulesIn(table), owner: null })));
    return true;
  } catch (error) {
    if (refusedTable(error, tables) === null) throw error;
    return false;
  } finally {
    // A table that was written before another one was refused has the chain, too.
    await send(tables.map((table) => ({ type: 'delete-chain', table, chain })));
  }
}

/** Errors of {@link ModeDefinition.tryKernel} for a mode's rules. A part that few Services need is a warning. */
export async function tryParts(
  mode: string,
  { config, addon: { iptables }, log }: Pick<ModeParts, 'config' | 'addon' | 'log'>,
  nodes: readonly Pick<NodePlan, 'family'>[],
  chooses: boolean,
): Promise<readonly unknown[]> {
  try {
    const families = nodes.map(({ family }) => family);
    const { flavor, served } = await prepareFlavor(iptables, families, config.iptablesFlavor, log);
    const faults = new Map<string, NodeFault>();
    for (const family of served) {
      const lacking = await lackingParts({ addon: iptables, family, flavor }, partsOf(family, chooses));
      for (const fault of faultsOf(mode, lacking)) faults.set(fault.text, fault);
    }
    for (const { text, remedy, isVital } of faults.values()) if (!isVital) log.warn(text, { remedy });
    return [...faults.values()].flatMap(({ text, remedy, isVital }) =>
      isVital ? [new ModeError(`${text}; ${remedy}`)] : [],
    );
  } catch (error) {
    return [error];
  }
}

/** The faults of the node that these are: one of all that every Service may need, and one of the others. */
export function faultsOf(mode: string, lacking: readonly LackingPart[]): readonly NodeFault[] {
  const vital = lacking.filter(({ part }) => part.feature === null);
  const others = lacking.filter(({ part }) => part.feature !== null);
  return [
    ...(vital.length === 0 ? [] : [faultOf(`which mode ${mode} needs`, vital, true)]),
    ...(others.length === 0
      ? []
      : [faultOf(`which Services with ${others.map(({ part }) => part.feature).join(' and ')} need`, others, false)]),
  ];
}

function faultOf(why: string, lacking: readonly LackingPart[], isVital: boolean): NodeFault {
  const names = lacking.map(({ part }) => `${part.word.startsWith('-m') ? 'match' : 'target'} ${nameOf(part)}`);
  const extensions = lacking.filter(isOfPrograms).map(({ part }) => extensionOf(part));
  const modules = new Set(lacking.filter((each) => !isOfPrograms(each)).map(({ part }) => part.module));
  const because = [
    ...(extensions.length === 0 ? [] : [`the iptables programs have no extension ${extensions.join(', ')}`]),
    ...(modules.size === 0 ? [] : [`the kernel has no module ${[...modules].join(', ')}`]),
  ];
  const remedies = [
    ...(extensions.length === 0 ? [] : [`install the iptables package that has ${extensions.join(', ')}`]),
    ...(modules.size === 0
      ? []
      : [`modprobe -a ${[...modules].join(' ')}, and list them in /etc/modules-load.d; or use mode nftables`]),
  ];
  return {
    text: `this node lacks ${names.join(', ')} of iptables, ${why}: ${because.join('; ')}`,
    remedy: remedies.join('; '),
    isVital,
  };
}

function nameOf({ word }: Part): string {
  return word.slice(3);
}

function extensionOf(part: Part): string {
  return part.module.startsWith('ip') ? `lib${part.module}.so` : `libxt_${nameOf(part)}.so`;
}

/** Otherwise the programs know the part, and the kernel refuses it. */
function isOfPrograms({ words }: LackingPart): boolean {
  return /[Cc]ouldn't (?:load|find) |unknown option|[Uu]nknown (?:arg|match|target)/.test(words);
}
