import type { NftTraceEvent } from '../../native/contract.js';
import { readHeaders, type Headers } from './headers.js';
import { chainOf, HOOKS, type TraceHook } from './table.js';

/** A base chain that a packet went through. */
export interface Step {
  /** `ip kube-proxy`. */
  readonly table: string;
  readonly base: string;
  /** Null: the chain went before it could be asked about. */
  readonly hook: TraceHook | null;
  readonly priority: number;
  /** Chains of which a rule applied, in order; empty: none did. */
  readonly chains: readonly string[];
  /** `accept` or `drop`, by a rule or by the policy; null: it is on its way. */
  readonly verdict: string | null;
  /** The rule of the verdict; null: the policy. */
  readonly rule: { readonly chain: string; readonly handle: number } | null;
  readonly headers: Headers;
  readonly input: string | null;
  readonly output: string | null;
}

/** A packet's way through this node, as far as it was reported. */
export interface Passage {
  readonly kind: 'request' | 'answer';
  /** Those of the trace itself with them. */
  readonly steps: readonly Step[];
}

/** Where a chain is called; null: it is not known. */
export type FindBase = (
  family: string,
  table: string,
  chain: string,
) => { readonly hook: TraceHook; readonly priority: number } | null;

type Open = { readonly [K in keyof Step]: Step[K] } & { chains: string[] };

interface Growing {
  readonly kind: Passage['kind'];
  readonly steps: Open[];
}

/** Passages under way at once, of which the oldest is forgotten. */
const MOST = 256;

/** Puts the kernel's reports together. */
export class PassageReader {
  private readonly open = new Map<number, Growing>();

  constructor(
    private readonly own: string,
    private readonly baseOf: FindBase,
  ) {}

  /** The passage that it is of; null: of none that this trace is about. */
  read(event: NftTraceEvent): Passage | null {
    const headers = readHeaders(event.network, event.transport);
    const kind = this.beginOf(event);
    const passage = kind === null ? this.continued(event, headers) : this.begun(event, kind, headers);
    if (passage === null) return null;
    if (headers === null) extend(passage.steps, event);
    else passage.steps.push(this.stepOf(event, headers));
    return passage;
  }

  /** The purpose of the rule that has the packet traced; null: another report. */
  private beginOf({ table, chain, handle }: NftTraceEvent): Passage['kind'] | null {
    // At the end of each chain the kernel reports a rule that is none.
    if (table !== this.own || handle === null) return null;
    if (chain === chainOf.answers('prerouting') || chain === chainOf.answers('output')) return 'answer';
    return 'request';
  }

  private begun({ id }: NftTraceEvent, kind: Passage['kind'], headers: Headers | null): Growing | null {
    const known = this.open.get(id);
    // A packet to the node itself is sent, and then comes in: it is still the one.
    if (known !== undefined && headers !== null && known.kind === kind && isSame(known, headers)) return known;
    const passage: Growing = { kind, steps: [] };
    this.keep(id, passage);
    return headers === null ? null : passage;
  }

  private continued({ id }: NftTraceEvent, headers: Headers | null): Growing | null {
    const known = this.open.get(id);
    if (known !== undefined || headers === null) return known ?? null;
    // Its number is made of what may change, such as the interface that it comes in by.
    const same = [...this.open.values()].reverse().find((each) => isSame(each, headers));
    if (same !== undefined) this.keep(id, same);
    return same ?? null;
  }

  private keep(id: number, passage: Growing): void {
    this.open.delete(id);
    this.open.set(id, passage);
    const [oldest] = this.open.keys();
    if (this.open.size > MOST && oldest !== undefined) this.open.delete(oldest);
  }

  private stepOf(event: NftTraceEvent, headers: Headers): Open {
    const base = this.baseOf(event.family, event.table, event.chain);
    const step: Open = {
      table: `${event.family} ${event.table}`,
      base: event.chain,
      hook: base?.hook ?? null,
      priority: base?.priority ?? 0,
      chains: [],
      verdict: null,
      rule: null,
      headers,
      input: event.input,
      output: event.output,
    };
    const steps = [step];
    extend(steps, event);
    return steps[0] ?? step;
  }
}

/** Adds to the last step what is reported of it. */
function extend(steps: Open[], { type, chain, handle, verdict }: NftTraceEvent): void {
  const last = steps.at(-1);
  if (last === undefined) return;
  const rule = handle === null ? null : { chain, handle };
  if (rule !== null && last.chains.at(-1) !== chain) last.chains.push(chain);
  if ((rule === null && type !== 'policy') || (verdict !== 'accept' && verdict !== 'drop')) return;
  steps[steps.length - 1] = { ...last, verdict, rule };
}

function isSame({ steps }: Growing, { protocol, source, destination }: Headers): boolean {
  const last = steps.at(-1)?.headers;
  return last?.protocol === protocol && last.source === source && last.destination === destination;
}

/** Whether a chain of the trace itself reported it. */
export function isOwnStep({ table }: Step, own: string): boolean {
  return table.endsWith(` ${own}`);
}

/** Whether a packet came to the end of a hook. */
export function hasPassed({ steps }: Passage, own: string, hook: TraceHook): boolean {
  return steps.some((step) => isOwnStep(step, own) && step.base === chainOf.end(hook));
}

/** The last hook that a packet came into, and whether it came to its end; null: none is known. */
export function reachedBy(
  passage: Passage,
  own: string,
): { readonly hook: TraceHook; readonly passed: boolean } | null {
  for (const { table, base } of [...passage.steps].reverse()) {
    if (!table.endsWith(` ${own}`)) continue;
    const hook = HOOKS.find((each) => base === chainOf.begin(each) || base === chainOf.end(each));
    if (hook !== undefined) return { hook, passed: base === chainOf.end(hook) };
  }
  return null;
}
