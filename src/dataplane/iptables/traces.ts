import { BEAT_MS } from '../../base/clock.js';
import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesFlavor, NftablesAddon } from '../../native/contract.js';
import type { AwaitChange } from '../contract.js';
import { Generation } from '../generation.js';

/** A moment in the history of the tables. */
export class Since {
  /** As of the latest time that nothing other than our own streams had certainly changed the tables; null: there was none. */
  awaitChange: AwaitChange | null = null;

  /** @param look answers as `isTouched`, and calls `untouched` where that is certainly false. */
  constructor(private readonly look: (untouched: (awaitChange: AwaitChange) => void) => Promise<boolean>) {}

  /** Whether something other than our own streams changed the tables since; false while that cannot be known. */
  isTouched(): Promise<boolean> {
    return this.look((awaitChange) => {
      this.awaitChange = awaitChange;
    });
  }
}

/** Traces of changes to the programs' tables, by any program, seen in one small request. */
export interface Traces {
  /** Sends a stream of ours that changes so many tables; null: that is uncertain. */
  count<Ack>(tables: number | null, send: () => Promise<Ack>): Promise<Ack>;
  /** Notes this moment. Never rejects: if it cannot, complete traces count as touched, and others as untouched. */
  mark(): Promise<Since>;
  /** Whether every change leaves a trace: then nothing has to be compared without one. */
  readonly isComplete: boolean;
}

const ALWAYS = new Since(() => Promise.resolve(true));
const NEVER = new Since(() => Promise.resolve(false));

type Nftables = Pick<NftablesAddon, 'nftGeneration' | 'nftGenerationWatch'>;
type Iptables = Pick<IptablesAddon, 'iptablesSizes' | 'iptablesSizesWatch'>;

/** For each family. nf_tables counts the changes of both together. */
export function tracesOf(
  { nftables, iptables }: { readonly nftables: Nftables; readonly iptables: Iptables },
  flavor: IptablesFlavor,
): (family: Family) => Traces {
  if (flavor === 'legacy') return (family) => new TableSizes(iptables, family);
  const generation = new Generation({ nftGeneration: asOne(() => nftables.nftGeneration()) });
  const traces = new Commits(generation, (...asked) => nftables.nftGenerationWatch(...asked));
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
  /** Of the latest generation that was untouched: the families await it once. */
  private awaited: { readonly generation: number; readonly awaitChange: AwaitChange } | null = null;

  constructor(
    private readonly generation: Generation,
    private readonly watch: Nftables['nftGenerationWatch'],
  ) {}

  count<Ack>(tables: number | null, send: () => Promise<Ack>): Promise<Ack> {
    return this.generation.count(send, tables);
  }

  async mark(): Promise<Since> {
    const { generation } = this;
    // Audits compare nothing without a trace, so one that was missed has to be looked for.
    const mark = await generation.mark().catch(() => null);
    if (mark === null) return ALWAYS;
    return new Since(async (untouched) => {
      const touches = await generation.touchesSince(mark);
      if (touches?.isTouched === false) untouched(this.awaitAfter(touches.until));
      return touches?.isTouched ?? false;
    });
  }

  private awaitAfter(generation: number): AwaitChange {
    if (this.awaited?.generation !== generation)
      this.awaited = { generation, awaitChange: (onChange) => this.watch(generation, BEAT_MS, onChange) };
    return this.awaited.awaitChange;
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
    private readonly addon: Iptables,
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

  async mark(): Promise<Since> {
    const serial = ++this.marks;
    this.expected = await this.read();
    // Audits compare without a trace, too.
    if (this.expected === null) return NEVER;
    return new Since(async (untouched) => {
      const { addon, family, expected } = this;
      if (serial !== this.marks || expected === null) return this.underWay === 0;
      const isSame = (await this.read()) === expected;
      if (this.underWay > 0 || this.expected !== expected) return false;
      if (isSame) untouched((onChange) => addon.iptablesSizesWatch(family, expected, BEAT_MS, onChange));
      return !isSame;
    });
  }

  /** A stream does not depend on it. */
  private read(): Promise<string | null> {
    return this.addon.iptablesSizes(this.family).catch(() => null);
  }
}
