import { randomInt } from 'node:crypto';
import { errorCode, messageOf } from '../../base/error-message.js';
import type { NativeAddon, NftReadFamily, NftTrace } from '../../native/contract.js';
import { refuses } from '../foreign/nft-rules.js';
import { describeConnection, type TracedConnection } from './connection.js';
import { ConnectionWatch } from './connection-watch.js';
import { PassageReader, type FindBase } from './passage.js';
import { HOOKS, TRACE_TABLE, traceTable, type TracedFlow } from './table.js';

type Addon = Pick<NativeAddon['nftables'], 'nftTrace' | 'nftRule' | 'nftBaseChains'>;

/** A trace that is not possible; the message has the reason. */
export class TraceError extends Error {
  override readonly name = 'TraceError';
}

/** A running trace. */
interface OpenTrace {
  /** The next connection that something has become of; null: the time is over. */
  next(milliseconds: number): Promise<TracedConnection | null>;
  /** Whether the kernel reported more than could be read. */
  readonly missed: boolean;
  close(): void;
}

/** The table of one mode, and beginnings of the names of chains that the others have in tables that all share. */
const OUR_TABLE = 'kube-proxy';
const OUR_CHAIN = /^KUBE-(?!FIREWALL$|KUBELET)/;

/**
 * Makes the kernel trace the first packet of each connection of a flow. Its objects in the kernel go with
 * {@link OpenTrace.close}, and with the end of the process in any case.
 *
 * @throws TraceError
 */
export async function openTrace(
  { nftables: addon }: { readonly nftables: Addon },
  flow: TracedFlow,
): Promise<OpenTrace> {
  const table = `${TRACE_TABLE}${randomInt(1_000_000_000)}`;
  const bases = new Bases(addon);
  const reader = new PassageReader(table, bases.find);
  const watch = new ConnectionWatch(reader, table);
  let missed = false;
  const stop = start(addon, table, flow, (trace) => {
    missed ||= trace.missed;
    watch.read(trace.events);
  });
  const find = (name: string, chain: string, handle: number): Promise<string | null> => {
    const [family = '', ...rest] = name.split(' ');
    return addon.nftRule(family as NftReadFamily, rest.join(' '), chain, handle);
  };
  const isOurs = (name: string, chain: string): boolean => name.endsWith(` ${OUR_TABLE}`) || OUR_CHAIN.test(chain);
  try {
    await bases.read();
  } catch (error) {
    stop();
    throw error;
  }
  return {
    next: async (milliseconds) => {
      const packets = await watch.next(milliseconds);
      return packets === null ? null : await describeConnection(packets, table, { find, isOurs, refuses });
    },
    get missed() {
      return missed;
    },
    close: () => {
      watch.close();
      stop();
    },
  };
}

function start(addon: Addon, table: string, flow: TracedFlow, onTrace: (trace: NftTrace) => void): () => void {
  const family = flow.family === 'IPv4' ? 'ip' : 'ip6';
  const commands = traceTable(flow, table);
  try {
    return addon.nftTrace({ family, table, operations: [{ type: 'commands', commands }] }, onTrace);
  } catch (error) {
    if (errorCode(error) !== 'ERR_NETLINK') throw error;
    const why = messageOf(error);
    if (/EPERM/.test(why)) throw new TraceError(`it takes CAP_NET_ADMIN: ${why}`);
    if (/EINVAL|EOPNOTSUPP|ENOENT/.test(why))
      throw new TraceError(`this kernel traces no packets for a table that goes with its process (Linux 5.12): ${why}`);
    throw new TraceError(why);
  }
}

/** Where chains are called. */
class Bases {
  private known = new Map<string, ReturnType<FindBase>>();

  constructor(private readonly addon: Pick<Addon, 'nftBaseChains'>) {}

  async read(): Promise<void> {
    // No table is called so.
    const bases = await this.addon.nftBaseChains('-');
    this.known = new Map(
      bases.map(({ family, table, chain, hook }) => {
        const [, name, priority] = / hook (\w+) priority (-?\d+)/.exec(hook) ?? [];
        const at = HOOKS.find((each) => each === name);
        return [`${family} ${table} ${chain}`, at === undefined ? null : { hook: at, priority: Number(priority) }];
      }),
    );
  }

  readonly find: FindBase = (family, table, chain) => this.known.get(`${family} ${table} ${chain}`) ?? null;
}
