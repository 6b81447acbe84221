import type { NativeAddon, NftTransaction } from './contract.js';
import type { IptablesTransaction } from './iptables-contract.js';

/** Writes one line a crossing: method, bytes or count where there is one, milliseconds, and the error's message when there is one. */
export function traced(addon: NativeAddon, write: (line: string) => void): NativeAddon {
  const log = (method: string, detail: string, start: bigint | null, error: unknown): void => {
    const took = start === null ? '' : ` ${(Number(process.hrtime.bigint() - start) / 1e6).toFixed(3)}ms`;
    const failure = error === null ? '' : ` error="${error instanceof Error ? error.message : 'not an Error'}"`;
    write(`native ${method} ${detail}${took}${failure}\n`);
  };
  const sync = <T>(method: string, call: () => T, detail: (value: T | null) => string): T => {
    const start = process.hrtime.bigint();
    try {
      const value = call();
      log(method, detail(value), start, null);
      return value;
    } catch (error) {
      log(method, detail(null), start, error);
      throw error;
    }
  };
  const async = async <T>(method: string, call: () => Promise<T>, detail: (value: T | null) => string): Promise<T> => {
    const start = process.hrtime.bigint();
    try {
      const value = await call();
      log(method, detail(value), start, null);
      return value;
    } catch (error) {
      log(method, detail(null), start, error);
      throw error;
    }
  };
  return {
    nftCompile: (family, table, commands) =>
      sync(
        'nftCompile',
        () => addon.nftCompile(family, table, commands),
        () => `commands=${commands.length}`,
      ),
    nftEncode: (transaction) =>
      sync(
        'nftEncode',
        () => addon.nftEncode(transaction),
        (batch) => `${payload(transaction)} batch=${batch?.byteLength ?? 0}`,
      ),
    nftTransact: (transaction) =>
      async(
        'nftTransact',
        () => addon.nftTransact(transaction),
        (ack) => `${payload(transaction)} messages=${ack?.messages ?? 0} bytes=${ack?.bytes ?? 0}`,
      ),
    nftList: (family, table, elements) =>
      async(
        'nftList',
        () => addon.nftList(family, table, elements),
        (listing) =>
          `${family} ${table} elements=${listing?.sets.reduce((sum, set) => sum + (set.elements?.count ?? 0), 0) ?? 0}`,
      ),
    nftElements: (family, table, sets) =>
      async(
        'nftElements',
        () => addon.nftElements(family, table, sets),
        (listed) =>
          `${family} ${table} sets=${sets.length} elements=${listed?.reduce((sum, { elements }) => sum + (elements?.count ?? 0), 0) ?? 0}`,
      ),
    nftHas: (family, table, set, keyLength, keys) =>
      async(
        'nftHas',
        () => addon.nftHas(family, table, set, keyLength, keys),
        (held) => `${family} ${table} ${set} keys=${held?.length ?? 0} held=${held?.filter(Boolean).length ?? 0}`,
      ),
    nftGeneration: () =>
      async(
        'nftGeneration',
        () => addon.nftGeneration(),
        (generation) => `generation=${generation ?? 0}`,
      ),
    nftMaxBatch: () =>
      sync(
        'nftMaxBatch',
        () => addon.nftMaxBatch(),
        (bytes) => `bytes=${bytes ?? 0}`,
      ),
    nftWatch: (table, onChange) =>
      sync(
        'nftWatch',
        () =>
          addon.nftWatch(table, (change) => {
            const by = change.process ?? 'unknown';
            log('nftWatch', `${table} families=${change.families.join()} missed=${change.missed} by=${by}`, null, null);
            onChange(change);
          }),
        () => table,
      ),
    conntrackList: (filter) =>
      async(
        'conntrackList',
        () => addon.conntrackList(filter),
        (flows) => `${filter.family} protocol=${filter.protocol} bytes=${flows?.records.byteLength ?? 0}`,
      ),
    conntrackDelete: (family, records) =>
      async(
        'conntrackDelete',
        () => addon.conntrackDelete(family, records),
        (deletion) => `${family} bytes=${records.byteLength} deleted=${deletion?.deleted ?? 0}`,
      ),
    iptablesFlavors: (family) =>
      async(
        'iptablesFlavors',
        () => addon.iptablesFlavors(family),
        (found) => `${family} found=${found?.map(({ flavor }) => flavor).join(',') ?? ''}`,
      ),
    iptablesEncode: (transaction) =>
      sync(
        'iptablesEncode',
        () => addon.iptablesEncode(transaction),
        (stream) => `${iptablesPayload(transaction)} characters=${stream?.length ?? 0}`,
      ),
    iptablesDigests: (transaction) =>
      async(
        'iptablesDigests',
        () => addon.iptablesDigests(transaction),
        () => iptablesPayload(transaction),
      ),
    iptablesRestore: (transaction) =>
      async(
        'iptablesRestore',
        () => addon.iptablesRestore(transaction),
        (ack) => `${iptablesPayload(transaction)} rules=${ack?.rules ?? 0} bytes=${ack?.bytes ?? 0}`,
      ),
    iptablesList: (family, flavor, tables, textOf) =>
      async(
        'iptablesList',
        () => addon.iptablesList(family, flavor, tables, textOf),
        (chains) => `${family} ${flavor} ${tables.join(',')} chains=${chains?.length ?? 0}`,
      ),
    iptablesRemembering: (lists, source, seconds) =>
      async(
        'iptablesRemembering',
        () => addon.iptablesRemembering(lists, source, seconds),
        (index) => `lists=${lists.length} index=${index ?? 'none'}`,
      ),
    accountCreate: (name) =>
      async(
        'accountCreate',
        () => addon.accountCreate(name),
        () => name,
      ),
    accountPackets: (name) =>
      async(
        'accountPackets',
        () => addon.accountPackets(name),
        (packets) => `${name} packets=${packets ?? 'none'}`,
      ),
    ipvsList: () =>
      async(
        'ipvsList',
        () => addon.ipvsList(),
        (services) => `services=${services?.length ?? 0}`,
      ),
    ipvsDelete: (service) =>
      async(
        'ipvsDelete',
        () => addon.ipvsDelete(service),
        () => `protocol=${service.protocol} port=${service.port}`,
      ),
    ipsetNames: () =>
      async(
        'ipsetNames',
        () => addon.ipsetNames(),
        (names) => `sets=${names?.length ?? 0}`,
      ),
    ipsetDestroy: (name) =>
      async(
        'ipsetDestroy',
        () => addon.ipsetDestroy(name),
        () => name,
      ),
    linkAddresses: (name) =>
      async(
        'linkAddresses',
        () => addon.linkAddresses(name),
        (addresses) => `${name} addresses=${addresses?.length ?? 0}`,
      ),
    linkDelete: (name) =>
      async(
        'linkDelete',
        () => addon.linkDelete(name),
        () => name,
      ),
  };
}

function iptablesPayload({ family, flavor, operations }: IptablesTransaction): string {
  return `${family} ${flavor} operations=${operations.length}`;
}

function payload(transaction: NftTransaction): string {
  const elements = transaction.operations.reduce((sum, each) => sum + (each.type === 'elements' ? each.count : 0), 0);
  return `${transaction.family} ${transaction.table} operations=${transaction.operations.length} elements=${elements}`;
}
