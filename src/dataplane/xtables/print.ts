import type { IptablesAddon, IptablesTransaction } from '../../native/contract.js';
import { PROBE_CHAIN } from './probe.js';

/**
 * A transaction as sorted text, a line for each chain or rule, in the syntax of iptables-restore behind family and table. `:`
 * makes a chain or empties it. `-A` fills it (rules are numbered, so that sorting keeps their order), or adds to a chain of
 * others. `-I` and `-D` change a chain of others, `-X` removes a chain. Rules that are only a trial, where no packet comes by, are left out.
 */
export function printTransaction(
  addon: Pick<IptablesAddon, 'iptablesEncode'>,
  transaction: IptablesTransaction,
): readonly string[] {
  const { family, operations } = transaction;
  const removed = new Set(
    operations.flatMap((operation) =>
      operation.type === 'delete-chain' ? [`${operation.table} ${operation.chain}`] : [],
    ),
  );
  const lengths = new Map<string, number>();
  let table = '';
  const print = (line: string): readonly string[] => {
    if (line.startsWith('*')) table = line.slice(1);
    const parsed = /^(:|-[AIDX] )(\S+) ?(.*)$/.exec(line);
    if (parsed === null) return [];
    const [, verb = '', chain = '', rule = ''] = parsed;
    const where = `${table} ${chain}`;
    if (chain === PROBE_CHAIN || (verb === ':' && removed.has(where))) return [];
    const start = `${family} ${where} ${verb.trim()}`;
    if (verb === ':' || verb === '-X ') return [start];
    if (verb !== '-A ') return [`${start} ${rule}`];
    const position = lengths.get(where) ?? 0;
    lengths.set(where, position + 1);
    return [`${start} ${String(position).padStart(6, '0')} ${rule}`];
  };
  return addon.iptablesEncode(transaction).split('\n').flatMap(print).sort();
}
