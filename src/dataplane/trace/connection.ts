import { ATTEMPTS_TABLE } from '../attempts/footprint.js';
import { isOwnStep, hasPassed, reachedBy, type Passage, type Step } from './passage.js';
import type { TraceHook } from './table.js';

/** A base chain of any owner, as an answer shows it. */
export interface TracedChain {
  readonly direction: 'request' | 'answer';
  readonly hook: TraceHook | null;
  readonly priority: number;
  /** `ip kube-proxy`. */
  readonly table: string;
  /** The base chain and those that it led to, of which rules applied. */
  readonly chains: readonly string[];
  readonly verdict: string | null;
}

/** The rule or hook that took a packet. */
export interface TracedLoss {
  readonly ours: boolean;
  readonly hook: TraceHook | null;
  readonly priority: number;
  readonly table: string;
  readonly chain: string;
  /** In the addon's words; null: the policy, or it has gone since. */
  readonly rule: string | null;
}

/** The fate of the first packet of a connection, by its headers and the kernel's reports. */
export interface TracedConnection {
  readonly protocol: string;
  /** `address:port`. */
  readonly source: string;
  readonly destination: string;
  /** Interfaces; null: this node sent it, or it did not leave. */
  readonly input: string | null;
  readonly output: string | null;
  /** `delivered`: to this node itself. `lost`: no rule that is reported took it, and it went no further. */
  readonly outcome: 'forwarded' | 'delivered' | 'dropped' | 'rejected' | 'lost';
  /** Where it went, and from whom; null: it did not get so far. */
  readonly endpoint: string | null;
  readonly sourceSeen: string | null;
  readonly way: readonly TracedChain[];
  /** Null: nothing took it, or it is not reported what. */
  readonly loss: TracedLoss | null;
  /** For a lost packet: the hook that it came to, and whether it came through. */
  readonly lost: { readonly hook: TraceHook; readonly passed: boolean } | null;
  /** Translated where no rule is reported that does so. */
  readonly unseenTranslation: boolean;
  readonly answer: TracedAnswer | null;
}

export interface TracedAnswer {
  /** `refused`: a TCP reset. */
  readonly type: 'answered' | 'refused';
  /** Who sent it; the node where nothing did. */
  readonly from: string;
  /** Whether it was on its way to the client in the end, and as whose. */
  readonly arrives: boolean;
  readonly as: string;
  readonly loss: TracedLoss | null;
}

/** The rule by its place; null: it has gone. */
type FindRule = (table: string, chain: string, handle: number) => Promise<string | null>;

export interface TracedPackets {
  readonly request: Passage;
  readonly answer: Passage | null;
}

/** Whether rules of a chain are ours: the table decides or, where tables are shared, the chain. */
type IsOurs = (table: string, chain: string) => boolean;

/** @param own the table of the trace. @param refuses whether a rule rejects. */
export async function describeConnection(
  { request, answer }: TracedPackets,
  own: string,
  rules: { readonly find: FindRule; readonly isOurs: IsOurs; readonly refuses: (rule: string) => boolean },
): Promise<TracedConnection | null> {
  const [first] = request.steps;
  const last = request.steps.at(-1);
  if (first === undefined || last === undefined) return null;
  const loss = await lossOf(request, rules);
  const left = hasPassed(request, own, 'postrouting');
  const came = hasPassed(request, own, 'input');
  // A packet to the node itself leaves by loopback, and then comes in.
  const isOut = left && !came && !(last.hook === 'input' || last.hook === 'prerouting');
  const arrived = loss === null && (came || isOut);
  const refused = loss !== null && (loss.rule === null ? false : rules.refuses(loss.rule));
  return {
    protocol: first.headers.protocol,
    source: first.headers.source,
    destination: first.headers.destination,
    input: first.input,
    output: arrived && isOut ? last.output : null,
    outcome: arrived ? (isOut ? 'forwarded' : 'delivered') : loss === null ? 'lost' : refused ? 'rejected' : 'dropped',
    endpoint: arrived ? last.headers.destination : null,
    sourceSeen: arrived ? last.headers.source : null,
    way: [request, ...(answer === null ? [] : [answer])].flatMap((passage) => wayOf(passage, own)),
    loss,
    lost: arrived || loss !== null ? null : reachedBy(request, own),
    unseenTranslation: isTranslatedUnseen(request, own),
    answer: answer === null ? null : await describeAnswer(answer, own, rules),
  };
}

async function describeAnswer(
  answer: Passage,
  own: string,
  rules: Parameters<typeof describeConnection>[2],
): Promise<TracedAnswer | null> {
  const [first] = answer.steps;
  const last = answer.steps.at(-1);
  if (first === undefined || last === undefined) return null;
  const loss = await lossOf(answer, rules);
  return {
    type: first.headers.flags?.rst === true ? 'refused' : 'answered',
    from: first.headers.source,
    arrives: loss === null && (hasPassed(answer, own, 'postrouting') || hasPassed(answer, own, 'input')),
    as: last.headers.source,
    loss,
  };
}

async function lossOf(
  { steps }: Passage,
  { find, isOurs }: { readonly find: FindRule; readonly isOurs: IsOurs },
): Promise<TracedLoss | null> {
  const step = steps.find(({ verdict }) => verdict === 'drop');
  if (step === undefined) return null;
  const { table, hook, priority, base, rule } = step;
  const chain = rule?.chain ?? base;
  return {
    ours: isOurs(table, chain),
    hook,
    priority,
    table,
    chain,
    rule: rule === null ? null : await find(table, chain, rule.handle),
  };
}

function wayOf({ kind, steps }: Passage, own: string): readonly TracedChain[] {
  return (
    steps
      .filter((step) => !isOwnStep(step, own) && (step.chains.length > 0 || step.verdict === 'drop'))
      // Counts attempts for explain.
      .filter(({ table }) => !table.endsWith(` ${ATTEMPTS_TABLE}`))
      .map(({ hook, priority, table, base, chains, verdict }) => ({
        direction: kind,
        hook,
        priority,
        table,
        verdict,
        chains: chains[0] === base ? chains : [base, ...chains],
      }))
  );
}

/** Whether headers changed between two reports of the trace itself, with no report in between that explains the change. */
function isTranslatedUnseen({ steps }: Passage, own: string): boolean {
  let before: Step | null = null;
  let between = 0;
  for (const step of steps) {
    if (!isOwnStep(step, own)) {
      between += step.chains.length;
      continue;
    }
    const isOther =
      before !== null &&
      (before.headers.source !== step.headers.source || before.headers.destination !== step.headers.destination);
    if (isOther && between === 0) return true;
    before = step;
    between = 0;
  }
  return false;
}
