import { messageOf } from '../../base/error-message.js';
import type { NftablesAddon, NftCommand } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { NodePlan } from '../../plan/types.js';
import type { NodeFault } from '../contract.js';
import type { FoundFaults } from '../driver.js';
import { ModeError } from '../mode.js';
import {
  addChain,
  addRule,
  addTable,
  deleteChain,
  includes,
  masquerade,
  match,
  setMark,
  type ChainHook,
  type Rule,
} from './json.js';
import { NFT_FAMILY } from './names.js';
import { fibType } from './skeleton.js';
import { PASSING } from './timeout-support.js';
import { TRIAL_TABLE, trialCommands, tryRules } from './trial.js';

type Addon = Pick<NftablesAddon, 'nftCompile' | 'nftTransact'>;

/** Expressions for which the kernel has modules of their own, each with the smallest chain that needs it. */
interface Part {
  readonly name: string;
  readonly module: string;
  readonly hook: ChainHook | null;
  readonly rules: readonly Rule[];
}

function partsOf({ family }: Pick<NodePlan, 'family'>): readonly Part[] {
  const ip = family === 'IPv4' ? 'ipv4' : 'ipv6';
  const inRule = (name: string, module: string, rule: Rule): Part => ({
    name,
    module,
    hook: null,
    rules: [rule],
  });
  return [
    {
      name: 'chains of type nat',
      module: 'nft_chain_nat',
      hook: { type: 'nat', hook: 'prerouting', prio: -100 },
      rules: [],
    },
    inRule('numgen', 'nft_numgen', [setMark({ numgen: { mode: 'random', mod: 2, offset: 0 } })]),
    inRule('fib', `nft_fib_${ip}`, [match(fibType('daddr'), 'local')]),
    inRule('masquerade', 'nft_masq', [masquerade]),
    inRule('reject', `nft_reject_${ip}`, [{ reject: null }]),
    inRule('ct', 'nft_ct', [includes({ ct: { key: 'status' } }, 'dnat')]),
  ];
}

/** See {@link ModeDefinition.tryKernel}. */
export async function tryKernel(
  addon: Addon,
  nodes: readonly NodePlan[],
  counts: boolean,
): Promise<readonly unknown[]> {
  const found = await Promise.all(
    nodes.map(async (node): Promise<readonly unknown[]> => {
      try {
        await tryRules(addon, node, counts);
        return [];
      } catch (error) {
        const { faults } = await nodeFaults(addon, node, counts);
        const vital = faults.filter(({ isVital }) => isVital);
        return vital.length === 0 ? [error] : vital.map(({ text, remedy }) => new ModeError(`${text}; ${remedy}`));
      }
    }),
  );
  return found.flat();
}

/** Expressions of the mode's rules that the kernel does not take. Nothing stays changed: each trial ends with a command that is refused. */
export async function nodeFaults(addon: Addon, node: NodePlan, counts: boolean): Promise<FoundFaults> {
  const where = { family: NFT_FAMILY[node.family], table: TRIAL_TABLE };
  const refusal = async (commands: readonly NftCommand[]): Promise<string | null> => {
    const all = [...commands, deleteChain(where, 'none')];
    const operations = all.map((command) => ({ type: 'commands' as const, commands: [command] }));
    try {
      await addon.nftTransact({ ...where, operations });
      return null;
    } catch (error) {
      const isShown = isNativeError(error) && error.index !== null && !PASSING.includes(error.errno ?? '');
      return isShown && error.index !== commands.length ? messageOf(error) : null;
    }
  };
  const whole = await refusal(trialCommands(addon, node, counts));
  const faults: NodeFault[] = [];
  if (whole === null) {
    if ((await refusal(trialCommands(addon, node, counts, 'address'))) !== null)
      faults.push(faultOf(['jhash'], ['nft_hash'], 'Services that are balanced by hash need', false));
    return { faults, explains };
  }
  const lacking: Part[] = [];
  for (const part of partsOf(node)) {
    const chain = { name: 'trial', hook: part.hook, rules: [] };
    const rules = part.rules.map((rule) => addRule(where, chain.name, rule));
    if ((await refusal([addTable(where), addChain(where, chain), ...rules])) !== null) lacking.push(part);
  }
  const names = lacking.map(({ name }) => name);
  const modules = lacking.map(({ module }) => module);
  faults.push(
    lacking.length > 0
      ? faultOf(names, modules, 'mode nftables needs', true)
      : {
          text: `this kernel does not take the rules of mode nftables: ${whole}`,
          remedy: 'use a newer kernel (docs/kernels.md), or mode iptables',
          isVital: true,
        },
  );
  return { faults, explains };
}

function faultOf(names: readonly string[], modules: readonly string[], who: string, isVital: boolean): NodeFault {
  return {
    text: `this kernel lacks ${names.join(', ')} of nf_tables, which ${who}: it has no module ${modules.join(', ')}`,
    remedy: `modprobe -a ${modules.join(' ')}, and list them in /etc/modules-load.d; or use mode iptables`,
    isVital,
  };
}

/** Rules and chains are the mode's, whatever Service they serve. */
const RULES_REFUSED = /\badd (?:rule|chain|set|map) /;

function explains(reason: string): boolean {
  return RULES_REFUSED.test(reason);
}
