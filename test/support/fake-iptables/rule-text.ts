import { EndpointList } from '../../../src/base/endpoint-list.js';
import type { IptablesEndpointRules, IptablesFamily, IptablesTextRule } from '../../../src/native/contract.js';

/** The rules an operation stands for, as iptables-save spells them. */
export function ruleTexts(family: IptablesFamily, rule: IptablesTextRule | IptablesEndpointRules): readonly string[] {
  if (rule.type === 'text') return [rule.text];
  const targets = new EndpointList(family, rule.endpoints).toStrings();
  const mask = family === 'IPv4' ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
  const { protocol, affinity } = rule;
  const recent = (what: string, index: number): string =>
    `-m recent ${what} --name ${affinity?.lists[index] ?? ''} --mask ${mask} --rsource `;
  const target = (index: number): string => `-j DNAT --to-destination ${targets[index] ?? ''}`;
  const remembered = targets.map(
    (_, index) =>
      `-p ${protocol} ${recent(`--update --seconds ${affinity?.seconds ?? 0} --reap`, index)}${target(index)}`,
  );
  const picks = targets.map((_, index) => {
    const kept = Math.round(0x80000000 / (targets.length - index)) / 0x80000000;
    const draw = index === targets.length - 1 ? '' : `-m statistic --mode random --probability ${kept.toFixed(11)} `;
    return `-p ${protocol} ${draw}${affinity === null ? '' : recent('--set', index)}${target(index)}`;
  });
  return affinity === null ? picks : [...remembered, ...picks];
}

/** The chain that a rule leads to; null for the kernel's own targets. */
export function jumpTarget(text: string): string | null {
  const target = / (?:-j|-g) (\S+)/.exec(` ${text}`)?.[1] ?? null;
  return target === null || KERNEL_TARGETS.includes(target) ? null : target;
}

const KERNEL_TARGETS: readonly string[] = [
  'ACCEPT',
  'DROP',
  'RETURN',
  'REJECT',
  'DNAT',
  'MARK',
  'MASQUERADE',
  'SET',
  'CT',
  'NOTRACK',
  'TRACE',
];
