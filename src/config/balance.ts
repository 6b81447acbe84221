import { BALANCE_WORDS, type BalanceSettings } from '../base/balance.js';
import { invalid } from './errors.js';
import { numberFlag, settingOf, type CommandLine } from './flags.js';

/** How connections are shared as far as Services do not say it, as the flags have it. */
export function readBalance(line: CommandLine, problems: string[]): BalanceSettings {
  const word = settingOf(line, 'balance');
  const by = BALANCE_WORDS.get(word);
  if (by === undefined)
    problems.push(invalid('--balance', word, `must be one of ${[...BALANCE_WORDS.keys()].join(' ')}`));
  const slots = numberFlag(line, 'balance-slots-max') ?? Number(settingOf(line, 'balance-slots-max'));
  if (slots < 1) problems.push(invalid('--balance-slots-max', slots, 'must be greater than 0'));
  return { by: by ?? 'random', slots };
}
