import type { ForeignBase, ForeignLoss, ForeignTable, HookedPacket } from './packet.js';

/** Chains of ours, and of the kubelet, which are part of the mode: `explain` describes them. */
const OURS = /^KUBE-/;
/** The one of them that answers do not leave: it accepts established connections. */
const ACCEPTS_ANSWERS = 'KUBE-FORWARD';
/** The one that translates packets to Services. */
const TRANSLATES = 'KUBE-SERVICES';
/** The kernel lets rules jump no deeper. */
const DEEPEST = 16;
/** Chains that call each other many times have more ways through them than could ever be walked. */
const MOST_STEPS = 100_000;

type Loss = Pick<ForeignLoss, 'outcome' | 'where' | 'rule'>;

interface Walked {
  /** `end`: the packet leaves the chain at its end, or returns. `endless`: the walk was given up. */
  readonly type: 'accept' | 'lost' | 'end' | 'endless';
  readonly loss: Loss | null;
}

/** The loss of a packet in a base chain; null: nothing visible; `endless`: the walk would take too long. */
export function lossAt(base: ForeignBase, packet: HookedPacket): ForeignLoss | 'endless' | null {
  const walk = new Walk(base, packet);
  const { type, loss } = walk.chain(base.chain, 0);
  if (type === 'endless') return type;
  if (type === 'accept') return walk.effect ?? walk.possible();
  if (type === 'lost' && loss !== null) return { base, certain: !walk.mayPass, ...loss };
  if (base.policy === 'drop') return { base, certain: !walk.mayPass, outcome: 'drop', where: 'its policy', rule: null };
  return walk.effect ?? walk.possible();
}

/** The kernel gives packets to conntrack at this priority (NF_IP_PRI_CONNTRACK); later rules do not change that. */
const TRACKING = -200;

class Walk {
  /** Something that cannot be evaluated may have let the packet go before. */
  mayPass = false;
  /** A possible loss. */
  private perhaps: Loss | null = null;
  /** Fate of the packet if no later rule drops it. */
  effect: ForeignLoss | null = null;
  /** Whether all jumps so far are certain. */
  private isSureWay = true;
  private steps = 0;

  constructor(
    private readonly base: ForeignBase,
    private readonly packet: HookedPacket,
  ) {}

  private get table(): ForeignTable {
    return this.base.table;
  }

  possible(): ForeignLoss | null {
    return this.perhaps === null ? null : { base: this.base, certain: false, ...this.perhaps };
  }

  private follow(name: string, depth: number, isSure: boolean): Walked {
    const before = this.isSureWay;
    this.isSureWay &&= isSure;
    const walked = this.chain(name, depth);
    this.isSureWay = before;
    return walked;
  }

  private note(loss: Loss, isSure: boolean): void {
    if (loss.outcome === 'untrack' && this.base.priority >= TRACKING) return;
    if (isSure && this.isSureWay) this.effect ??= { base: this.base, certain: !this.mayPass, ...loss };
    else this.perhaps ??= loss;
  }

  chain(name: string, depth: number): Walked {
    const chain = this.table.chains.get(name);
    if (chain === undefined || depth > DEEPEST) return { type: 'end', loss: null };
    for (const [place, rule] of chain.rules.entries()) {
      if (++this.steps > MOST_STEPS) return { type: 'endless', loss: null };
      const { match, verdict } = this.table.judge(rule, this.packet);
      if (match === false) continue;
      const isSure = match === true;
      const loss = (outcome: Loss['outcome']): Loss => ({ outcome, where: `rule ${place + 1} of chain ${name}`, rule });
      switch (verdict.type) {
        case 'continue':
          break;
        case 'unknown':
          this.mayPass = true;
          break;
        case 'translate':
        case 'untrack':
        case 'divert':
          this.note(loss(verdict.type), isSure);
          if (isSure && verdict.type === 'translate') return { type: 'accept', loss: null };
          break;
        case 'return':
          if (isSure) return { type: 'end', loss: null };
          this.mayPass = true;
          break;
        case 'accept':
          if (isSure) return { type: 'accept', loss: null };
          this.mayPass = true;
          break;
        case 'drop':
        case 'reject':
          if (isSure) return { type: 'lost', loss: loss(verdict.type) };
          this.perhaps ??= loss(verdict.type);
          break;
        case 'jump':
        case 'goto': {
          if (OURS.test(verdict.chain)) {
            // The packet is translated there, and rules behind it do nothing.
            if (this.base.isNat && verdict.chain === TRANSLATES) return { type: 'accept', loss: null };
            if (!this.packet.isAnswer || verdict.chain !== ACCEPTS_ANSWERS) break;
            if (isSure) return { type: 'accept', loss: null };
            this.mayPass = true;
            break;
          }
          const walked = this.follow(verdict.chain, depth + 1, isSure);
          if (walked.type === 'endless') return walked;
          if (isSure && (walked.type !== 'end' || verdict.type === 'goto')) return walked;
          if (walked.type === 'lost') this.perhaps ??= walked.loss;
          if (walked.type === 'accept' || (!isSure && verdict.type === 'goto')) this.mayPass = true;
          break;
        }
      }
    }
    return { type: 'end', loss: null };
  }
}
