import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesFlavor, NftablesAddon } from '../../native/contract.js';
import { Generation } from '../generation.js';

/** Whether something other than our own streams changed the tables since a moment; false while that cannot be known. */
export type IsTouched = () => Promise<boolean>;

/** Traces of changes to the programs' tables, by any program, seen in one small request. */
export interface Traces {
  /** Sends a stream of ours that changes so many tables; null: that is uncertain. */
  count<Ack>(tables: number | null, send: () => Promise<Ack>): Promise<Ack>;
  /** Notes this moment. Never rejects: if it cannot, complete traces count as touched, and others as untouched. */
  mark(): Promise<IsTouched>;
  /** Whether every change leaves a trace: then nothing has to be compared without one. */
  readonly isComplete: boolean;
}

const ALWAYS: IsTouched = () => Promise.resolve(true);
const NEVER: IsTouched = () => Promise.resolve(false);

/** For each family. nf_tables counts the changes of both together. */
export function tracesOf(
  addon: {
    readonly nftables: Pick<NftablesAddon, 'nftGeneration'>;
    readonly iptables: Pick<IptablesAddon, 'iptablesSizes'>;
  },
  flavor: IptablesFlavor,
): (family: Family) => Traces {
  if (flavor === 'legacy') return (family) => new TableSizes(addon.iptables, family);
  const traces = new Commits(new Generation({ nftGeneration: asOne(() => addon.nftables.nftGeneration()) }));
  return () => traces;
}

/** Callers during a request share its answer. It may be older than the call: the next one shows what this one does not. */
function asOne<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let underWay: Promise<Answer> | null = null;
  return () =>
    (underWay ??= ask().finally(() => {
      underWay = null;
    }));
}

/** The generation of nf_tables. The programs commit table by table. */
class Commits implements Traces {
  readonly isComplete = true;

  constructor(private readonly generation: Generation) {}

  count<Ack>(tables: number | null, send: () => Promise<Ack>): Promise<Ack> {
    return this.generation.count(send, tables);
  }

  async mark(): Promise<IsTouched> {
    // Audits compare nothing without a trace, so one that was missed has to be looked for.
    const mark = await this.generation.mark().catch(() => null);
    return mark === null ? ALWAYS : () => this.generation.isTouchedSince(mark);
  }
}

/** Sizes of legacy tables: without a whole table the kernel reports nothing more. Changes that keep all sizes are missed. */
class TableSizes implements Traces {
  readonly isComplete = false;
  /** The sizes without external changes; null: there may have been one. */
  private expected: string | null = null;
  private marks = 0;
  private underWay = 0;

  constructor(
    private readonly addon: Pick<IptablesAddon, 'iptablesSizes'>,
    private readonly family: Family,
  ) {}

  async count<Ack>(_: number | null, send: () => Promise<Ack>): Promise<Ack> {
    this.underWay++;
    try {
      const isAsExpected = this.expected !== null && (await this.read()) === this.expected;
      this.expected = null;
      const ack = await send();
      if (isAsExpected) this.expected = await this.read();
      return ack;
    } finally {
      this.underWay--;
    }
  }

  async mark(): Promise<IsTouched> {
    const serial = ++this.marks;
    this.expected = await this.read();
    // Audits compare without a trace, too.
    if (this.expected === null) return NEVER;
    return async () => {
      const { expected } = this;
      if (serial !== this.marks || expected === null) return this.underWay === 0;
      return (await this.read()) !== expected && this.underWay === 0 && this.expected === expected;
    };
  }

  /** A stream does not depend on it. */
  private read(): Promise<string | null> {
    return this.addon.iptablesSizes(this.family).catch(() => null);
  }
}
