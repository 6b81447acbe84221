import type { IPAddress } from '../../../src/base/ip.js';
import type { IptablesTable } from '../../../src/native/contract.js';
import {
  afterHook,
  afterJump,
  printTarget,
  verdictOf,
  type Course,
  type Exit,
  type KernelVerdict,
} from '../courses.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import { traveller, type Traveller } from './packet.js';
import { readRule, type Rule, type Step, type Target } from './rule.js';

/** The rules that a packet meets, and the clients that they remember. */
export interface TracedTables {
  /** Undefined: there is no such chain. */
  readonly rules: (table: IptablesTable, chain: string) => readonly string[] | undefined;
  /** How many seconds ago a `recent` list saw a client; infinite: never. */
  readonly seen: (list: string, client: string) => number;
}

export type Hook = readonly [table: IptablesTable, chain: string];

const ARRIVING: readonly Hook[] = [['nat', 'PREROUTING']];
/** Addresses are translated before the filter looks. */
const SENT_HERE: readonly Hook[] = [
  ['nat', 'OUTPUT'],
  ['filter', 'OUTPUT'],
];

/** Every way that a new connection's first packet can go, with all draws of random numbers. */
export function courses(
  tables: TracedTables,
  packet: KernelPacket,
  localAddresses: readonly IPAddress[],
): readonly Course<Traveller>[] {
  const start: Course<Traveller> = { verdict: 'accept', packet: traveller(packet, localAddresses) };
  const sentHere = packet.inputInterface === null;
  const translated = runHooks(tables, [start], sentHere ? SENT_HERE : ARRIVING);
  return translated.flatMap((course) => runHooks(tables, [course], onward(course.packet, sentHere)));
}

/** What the rules make of a packet. Throws when they prefer one endpoint to another, beside what they remember, unless that is asked for. */
export function trace(
  tables: TracedTables,
  packet: KernelPacket,
  localAddresses: readonly IPAddress[],
  weighted: boolean,
): KernelVerdict {
  const all = courses(tables, packet, localAddresses);
  const verdict = verdictOf(all);
  if (verdict.type === 'forward' && !weighted) checkEvenness(all, verdict.endpoints.length);
  return verdict;
}

/** Draws are of 2^-31, and iptables-save prints eleven digits of them. */
const ROUNDING = 1e-6;

function checkEvenness(all: readonly Course<Traveller>[], endpoints: number): void {
  const shares = new Map<string, number>();
  for (const { packet } of all) {
    const endpoint = printTarget(packet);
    shares.set(endpoint, (shares.get(endpoint) ?? 0) + packet.probability);
  }
  for (const [endpoint, share] of shares)
    if (Math.abs(share - 1 / endpoints) > ROUNDING) throw new Error(`${endpoint} gets ${share} of ${endpoints} shares`);
}

/** Hooks after the addresses are translated. A packet of the node to itself leaves, then comes in again through lo. */
function onward(packet: Traveller, sentHere: boolean): readonly Hook[] {
  const input: readonly Hook[] = packet.isLocal(packet.destination) ? [['filter', 'INPUT']] : [];
  const leaving: Hook = ['nat', 'POSTROUTING'];
  if (sentHere) return [leaving, ...input];
  return input.length > 0 ? input : [['filter', 'FORWARD'], leaving];
}

/** Leads ways on through hooks, as far as they are accepted. */
export function runHooks(
  tables: TracedTables,
  starts: readonly Course<Traveller>[],
  hooks: readonly Hook[],
): readonly Course<Traveller>[] {
  let running = starts;
  for (const [table, chain] of hooks)
    running = running.flatMap((course) =>
      course.verdict === 'accept' ? new Walk(tables, table).base(chain, course.packet) : [course],
    );
  return running;
}

const DEPTH = 16;

class Walk {
  constructor(
    private readonly tables: TracedTables,
    private readonly table: IptablesTable,
    private readonly depth = 0,
  ) {
    if (depth > DEPTH) throw new Error('chains nest deeper than any of ours should');
  }

  /** A built-in chain that a packet comes to the end of accepts it. */
  base(chain: string, packet: Traveller): readonly Course<Traveller>[] {
    return this.chain(chain, packet).map(afterHook);
  }

  private chain(name: string, packet: Traveller): readonly Exit<Traveller>[] {
    const exits: Exit<Traveller>[] = [];
    let running: readonly Traveller[] = [packet];
    for (const text of this.tables.rules(this.table, name) ?? []) {
      const next: Traveller[] = [];
      for (const each of running)
        for (const exit of this.rule(readRule(text), each))
          if (exit.verdict === 'next') next.push(exit.packet);
          else exits.push(exit);
      running = next;
    }
    return [...exits, ...running.map((each) => ({ verdict: 'return' as const, packet: each }))];
  }

  private rule({ steps, target }: Rule, packet: Traveller): readonly Exit<Traveller>[] {
    const missed: Traveller[] = [];
    let current = packet;
    for (const step of steps) {
      const taken = this.take(step, current);
      if (taken === null) return [...missed, current].map((each) => ({ verdict: 'next', packet: each }));
      if (step.type === 'draw') missed.push({ ...current, probability: current.probability * (1 - step.probability) });
      current = taken;
    }
    return [...missed.map((each) => ({ verdict: 'next' as const, packet: each })), ...this.end(target, current)];
  }

  /** The packet beyond a step; null when it stops there. */
  private take(step: Step, packet: Traveller): Traveller | null {
    switch (step.type) {
      case 'match':
        return step.test(packet) ? packet : null;
      case 'draw':
        return { ...packet, probability: packet.probability * step.probability };
      case 'update':
        if (this.tables.seen(step.list, clientOf(packet)) > step.seconds) return null;
        return { ...packet, notes: [...packet.notes, step.list] };
      case 'note':
        return { ...packet, notes: [...packet.notes, step.list] };
    }
  }

  private end(target: Target | null, packet: Traveller): readonly Exit<Traveller>[] {
    switch (target?.type) {
      case undefined:
        return [{ verdict: 'next', packet }];
      case 'accept':
      case 'drop':
      case 'reject':
      case 'return':
        return [{ verdict: target.type, packet }];
      case 'masquerade':
        return [{ verdict: 'accept', packet: { ...packet, masqueraded: true } }];
      case 'translate': {
        const { destination, port } = target;
        return [{ verdict: 'accept', packet: { ...packet, destination, port, translated: true } }];
      }
      case 'mark': {
        const mark = (packet.mark & ~target.mask) ^ target.value;
        return [{ verdict: 'next', packet: { ...packet, mark } }];
      }
      case 'goto':
        return this.enter(target.chain, packet);
      case 'jump':
        return this.enter(target.chain, packet).map(afterJump);
    }
  }

  private enter(chain: string, packet: Traveller): readonly Exit<Traveller>[] {
    return new Walk(this.tables, this.table, this.depth + 1).chain(chain, packet);
  }
}

/** As lists of clients spell a source: its bytes. */
export function clientOf({ source }: Traveller): string {
  return [...Buffer.from(source, 'latin1')].join('.');
}
