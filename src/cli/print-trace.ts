import { paragraph, printHead } from '../plan/explain-text.js';
import { printObservation } from '../observe/observations.js';
import type { ExplainedPacket } from '../serve/explain-packet.js';
import type { TracedAnswer, TracedChain, TracedConnection, TracedLoss } from '../dataplane/trace/connection.js';

/** A connection as it went, and as the running process says that it goes. */
export interface TracedAndExplained {
  readonly connection: TracedConnection;
  /** Null: see {@link unexplained}. */
  readonly explanation: ExplainedPacket | null;
  /** Whether they agree; null: it is not known. */
  readonly agrees: boolean | null;
  /** Why the process did not say. */
  readonly unexplained: string | null;
}

/** What is waited for. */
export function printWaiting(
  { protocol, destination, frontend }: ExplainedPacket,
  { from, seconds, count }: { readonly from: string; readonly seconds: number; readonly count: number },
): readonly string[] {
  const of = frontend === null ? 'no Service has it' : frontend.servicePort;
  const sender = from === '' ? 'any client' : from;
  const many = count === 1 ? 'a new connection' : `${count} new connections`;
  return [`waiting for ${many} from ${sender} to ${destination}/${protocol} (${of}), ${seconds} s at most`, ''];
}

/** For people: what became of it in a sentence, then what it comes from. */
export function printTraced(traced: TracedAndExplained): readonly string[] {
  const { connection } = traced;
  const { source, sourceSeen, destination, endpoint, input, output, loss, answer, unseenTranslation } = connection;
  const by = [
    input === null ? 'sent by this node' : `in by ${input}`,
    ...(output === null ? [] : [`out by ${output}`]),
    ...(connection.outcome === 'delivered' ? ['to this node itself'] : []),
  ].join(', ');
  return [
    printOutcome(connection),
    ...paragraph('interfaces', [by]),
    ...paragraph('rules', connection.way.map(printChain)),
    ...paragraph('destination', endpoint === null || endpoint === destination ? [] : [`became ${endpoint}`]),
    ...paragraph('source', sourceSeen === null || sourceSeen === source ? [] : [`became ${sourceSeen}`]),
    ...paragraph('taken by', loss === null ? [] : printLoss(loss)),
    ...paragraph('lost', printLost(connection)),
    ...paragraph('note', unseenTranslation ? [UNSEEN] : []),
    ...paragraph('answer', printAnswer(answer, connection)),
    ...paragraph('explain', printComparison(traced)),
    '',
  ];
}

const UNSEEN = 'addresses changed where no rule is reported: the kernel reports none of legacy tables and ip_vs';

const OUTCOMES: Readonly<Record<TracedConnection['outcome'], string>> = {
  forwarded: 'was forwarded',
  delivered: 'was delivered on this node',
  dropped: 'was dropped',
  rejected: 'was rejected',
  lost: 'was lost',
};

function printOutcome({
  protocol,
  source,
  destination,
  outcome,
  endpoint,
  sourceSeen,
  loss,
}: TracedConnection): string {
  const to = endpoint === null || endpoint === destination ? '' : ` to ${endpoint}`;
  const as = sourceSeen === null ? '' : sourceSeen === source ? ', keeping its source' : ', masqueraded';
  const by = loss === null ? '' : loss.ours ? ' by our rules' : ' by rules of others';
  return `${protocol} from ${source} to ${destination} ${OUTCOMES[outcome]}${to}${as}${by}`;
}

function printChain({ direction, hook, table, chains, verdict }: TracedChain): string {
  const way = `${hook ?? '?'}: table ${table}: ${chains.join(' > ')}${verdict === 'drop' ? ': drop' : ''}`;
  return direction === 'answer' ? `answer, ${way}` : way;
}

function printLoss({ hook, priority, table, chain, rule }: TracedLoss): readonly string[] {
  const place = `chain ${chain} of table ${table}, at hook ${hook ?? '?'}, priority ${priority}`;
  const what = rule === null ? `the policy, or a rule that has gone since, of ${place}` : `${place}: ${rule}`;
  return [what, `  see nft -a list chain ${table} ${chain}`];
}

function printLost({ lost, outcome }: TracedConnection): readonly string[] {
  if (outcome !== 'lost' || lost === null) return [];
  return lost.passed
    ? [`after hook ${lost.hook}: by routing or the outgoing interface, not by a rule`]
    : [`at hook ${lost.hook}: by no reported rule; maybe by conntrack or a rule of legacy tables`];
}

function printAnswer(answer: TracedAnswer | null, { outcome, protocol }: TracedConnection): readonly string[] {
  if (answer === null) {
    if (outcome !== 'forwarded' && outcome !== 'delivered') return [];
    return [
      protocol === 'TCP' ? 'none was seen: the endpoint is silent, or its answer goes another way' : 'none was seen',
    ];
  }
  const what = answer.type === 'refused' ? `a TCP reset from ${answer.from}` : `from ${answer.from}`;
  const back = answer.arrives ? `goes back as from ${answer.as}` : 'does not go back';
  return [`${what}, ${back}`, ...(answer.loss === null ? [] : printLoss(answer.loss))];
}

function printComparison({ explanation, agrees, unexplained }: TracedAndExplained): readonly string[] {
  if (explanation === null) return [`did not answer: ${unexplained ?? ''}`];
  const { observations } = explanation;
  const head = printHead(explanation);
  return [agrees === true ? `agrees: ${head}` : `DISAGREES: ${head}`, ...observations.flatMap(printObservation)];
}
