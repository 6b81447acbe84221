import type { IptablesFamily, IptablesOperation, IptablesTable } from '../../../src/native/contract.js';
import { ProgramError, refusal } from './program-error.js';
import { misplacement } from './rule.js';
import { jumpTarget, ruleTexts } from './rule-text.js';

/** Of one table: rules by the chain's name. */
export type Chains = Map<string, string[]>;

/** XT_EXTENSION_MAXNAMELEN without its zero. */
const LONGEST_NAME = 28;
const LONGEST_COMMENT = 255;

/** @throws what the programs or the kernel say against it. */
export function applyOperation(
  chains: Chains,
  family: IptablesFamily,
  operation: IptablesOperation,
  declared: Set<string>,
): void {
  const held = chains.get(operation.chain);
  switch (operation.type) {
    case 'chain': {
      const id = `${operation.table} ${operation.chain}`;
      if (declared.has(id)) throw refusal('chain declared twice', id);
      if (operation.chain.length > LONGEST_NAME) throw refusal('chain name too long', id);
      declared.add(id);
      const rules = operation.rules.flatMap((rule) => ruleTexts(family, rule));
      for (const rule of rules) checkRule(operation.table, rule);
      chains.set(operation.chain, rules);
      return;
    }
    case 'rule': {
      if (held === undefined) throw refusal('no chain by that name', operation.chain);
      checkRule(operation.table, operation.text);
      if (operation.verb === 'insert') held.unshift(operation.text);
      else if (operation.verb === 'append') held.push(operation.text);
      else if (held.includes(operation.text)) held.splice(held.indexOf(operation.text), 1);
      else throw refusal('no such rule', operation.text);
      return;
    }
    case 'delete-chain':
      // It is declared first, so one that is not there counts as removed.
      chains.delete(operation.chain);
  }
}

function checkRule(table: IptablesTable, text: string): void {
  const comment = /--comment "([^"]*)"/.exec(text)?.[1] ?? '';
  if (comment.length > LONGEST_COMMENT) throw refusal('comment too long', text);
  if (/ {2}|\n/.test(text) || text.trim() !== text) throw refusal('not the spelling of iptables-save', text);
  const reason = misplacement(table, text);
  if (reason !== null) throw refusal(reason, text);
}

export function checkDeletion(chains: Chains, { type, table, chain }: IptablesOperation): void {
  if (type !== 'delete-chain') return;
  for (const [name, rules] of chains)
    if (rules.some((rule) => jumpTarget(rule) === chain))
      throw new ProgramError(`in use by ${name}: ${chain}`, null, `${table}: -X ${chain}`);
}

/** Chains that there are, and no way back to where it began. */
export function checkReferences(table: IptablesTable, chains: Chains): void {
  const finished = new Set<string>();
  const visit = (name: string, way: readonly string[]): void => {
    if (way.includes(name)) throw refusal('loop', [...way, name].join(' → '));
    if (finished.has(name)) return;
    for (const rule of chains.get(name) ?? []) {
      const target = jumpTarget(rule);
      if (target === null) continue;
      if (!chains.has(target)) throw refusal(`no chain ${target} in ${table}`, rule);
      visit(target, [...way, name]);
    }
    finished.add(name);
  };
  for (const name of chains.keys()) visit(name, []);
}
