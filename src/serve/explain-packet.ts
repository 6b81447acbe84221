import { messageOf } from '../base/error-message.js';
import { familyOf, type IPAddress } from '../base/ip.js';
import type { QuarantinedService } from '../record/progress.js';
import type { FamilyDataplane } from '../dataplane/contract.js';
import type { Host } from '../host/host.js';
import { printObservation, type Observation } from '../observe/observations.js';
import { paragraph, printExplanation, type Paragraph } from '../plan/explain-text.js';
import { explain, type Explanation } from '../plan/explain.js';
import type { PlanSettings } from '../plan/facts.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { frontendKey } from '../plan/frontend-key.js';
import { QuestionError, type Question } from '../plan/question.js';
import { printScope } from '../plan/text.js';
import type { PacketScope } from '../plan/types.js';
import type { Snapshot } from '../state/snapshot.js';
import { attemptsTo, printAttempts, silentAmong, type ExplainedAttempts } from './attempts.js';
import { resolveQuestion } from './explain-target.js';
import { foreignInTheWay } from './foreign-rules.js';
import { observedPacket } from './observed-packet.js';
import { pendingMs, type RunningProcess } from './running-process.js';

export { resolveQuestion };

/** Whether the kernel holds what the plan says about a packet. */
interface KernelAgreement {
  /** Null: not known. */
  readonly agrees: boolean | null;
  /** Why it is not known. */
  readonly unknown: string | null;
  /** Lines of `plan` that the kernel lacks, and lines of `dump` that the plan lacks. */
  readonly missing: readonly string[];
  readonly surplus: readonly string[];
  /** The endpoint to which session affinity sends this client again; null: none, or the client is not known. */
  readonly remembered: string | null;
  /** Why it is not known whether there is one; null: it is, or {@link unknown} says why nothing is. */
  readonly rememberedUnknown: string | null;
}

/** What `pointsman explain -o json` prints. */
export interface ExplainedPacket extends Explanation {
  readonly kernel: KernelAgreement;
  /** Since when a change waits for its sync; null: none does. */
  readonly pendingMs: number | null;
  /** Why the kernel refuses the frontend, which stays as it was; null: it does not. */
  readonly refusedByKernel: string | null;
  /** Connection attempts to its endpoints; null: nothing counts them, or it is none. */
  readonly attempts: ExplainedAttempts | null;
  /** What stands in its way beside our rules, or may. */
  readonly observations: readonly Observation[];
}

/** Whether the packet arrives at an endpoint, as far as it is known. */
export function isForwarded({ verdict, kernel, observations }: ExplainedPacket): boolean {
  const isClear = observations.every(({ severity }) => severity !== 'warning');
  return verdict.type === 'forward' && kernel.agrees !== false && isClear;
}

export function printExplainedPacket(answer: ExplainedPacket): string[] {
  return [
    ...printExplanation(answer),
    ...kernelParagraphs(answer).flatMap(({ subject, lines }) => paragraph(subject, lines)),
  ];
}

/** What is said of a packet beside the explanation; some without lines. */
export function kernelParagraphs({
  kernel,
  pendingMs,
  refusedByKernel,
  attempts,
  observations,
}: ExplainedPacket): readonly Paragraph[] {
  const refused = `the kernel refuses this frontend, so it holds what it held before: ${refusedByKernel ?? ''}`;
  const pending = `a change waits for its sync for ${Math.round(pendingMs ?? 0)} ms`;
  return [
    { subject: 'remembered', lines: printRemembered(kernel) },
    { subject: 'kernel', lines: printAgreement(kernel) },
    { subject: 'quarantined', lines: refusedByKernel === null ? [] : [refused] },
    { subject: 'pending', lines: pendingMs === null ? [] : [pending] },
    { subject: 'attempts', lines: attempts === null ? [] : printAttempts(attempts) },
    { subject: 'in the way', lines: observations.flatMap(printObservation) },
  ];
}

function printRemembered({ remembered, rememberedUnknown }: KernelAgreement): readonly string[] {
  if (remembered !== null) return [`the kernel sends this client to ${remembered} again`];
  return rememberedUnknown === null ? [] : [`not known: ${rememberedUnknown}`];
}

function printAgreement({ agrees, unknown, missing, surplus }: KernelAgreement): readonly string[] {
  if (agrees === null) return [`not known: ${unknown ?? ''}`];
  if (agrees) return ['matches the plan'];
  return [
    'does NOT match the plan:',
    ...missing.map((line) => `  missing: ${line}`),
    ...surplus.map((line) => `  surplus: ${line}`),
  ];
}

function unknownKernel(unknown: string): KernelAgreement {
  return { agrees: null, unknown, missing: [], surplus: [], remembered: null, rememberedUnknown: null };
}

/** What there is to explain from. */
interface Planned {
  readonly snapshot: Snapshot;
  readonly table: ForwardingTable;
  readonly settings: PlanSettings;
}

/**
 * Explains by manifests. The node's addresses are those of its Node object; without one those of this machine.
 *
 * @throws QuestionError
 */
export function explainPlanned(planned: Planned, host: Host, question: Question): ExplainedPacket {
  const { snapshot, table, settings } = planned;
  const node = snapshot.node(settings.nodeName);
  const explanation = explain(snapshot, table, settings, node?.addresses ?? host.localAddresses(), question);
  return {
    ...explanation,
    kernel: unknownKernel('only manifests were asked'),
    pendingMs: null,
    refusedByKernel: null,
    attempts: null,
    observations: [],
  };
}

/** What becomes of a packet, or why that cannot be said. Arguments as of {@link resolveQuestion}. */
export async function explainPacket(
  running: RunningProcess,
  from: string,
  to: string,
): Promise<ExplainedPacket | { readonly problem: string }> {
  try {
    if (!running.snapshot.ready)
      throw new QuestionError(`the process is still reading ${running.waitingFor().join(', ')}, see pointsman status`);
    const question = resolveQuestion(running.snapshot, from, to);
    const family = familyOf(question.destination);
    const sync = running.families.find(({ table }) => table.family === family);
    if (sync === undefined) throw new QuestionError(`this node does not serve ${family}`);
    const { table, dataplane } = sync;
    const planned = { snapshot: running.snapshot, table, settings: running.planned() };
    const quarantined = running.progress.of(family)?.quarantined ?? [];
    const state = { pendingMs: pendingMs(running), quarantined };
    const answer = await explainRunning(planned, running.host, dataplane, state, question);
    // What waits for its sync differs, too.
    if (answer.kernel.agrees === false && answer.pendingMs === null && answer.refusedByKernel === null)
      running.suspect(family);
    const others = [...conflictsOf(answer), ...(await foreignInTheWay(running, answer, question))];
    return await withAttempts({ ...answer, observations: [...answer.observations, ...others] }, running);
  } catch (error) {
    if (error instanceof QuestionError) return { problem: error.message };
    throw error;
  }
}

/** Services that do not get the packet, although they have its address and port. */
function conflictsOf({ conflicts }: Explanation): readonly Observation[] {
  return conflicts.map(({ frontend, winner, loser }) => ({
    kind: 'conflict',
    severity: 'note',
    text: `${winner} and ${loser} both claim ${frontend}`,
    remedy: `give one of them another address or port (kubectl -n ${loser.split('/')[0] ?? ''} edit service ${serviceNameOf(loser)})`,
  }));
}

/** Of `namespace/name:port`. */
function serviceNameOf(servicePort: string): string {
  return servicePort.replace(/^[^/]*\//, '').replace(/:.*$/, '');
}

/** Conntrack shows of TCP alone whether an endpoint answered. */
async function withAttempts(answer: ExplainedPacket, { attempts }: RunningProcess): Promise<ExplainedPacket> {
  const { verdict, protocol, observations } = answer;
  if (attempts === undefined || verdict.type !== 'forward' || protocol !== 'TCP') return answer;
  const seen = await attempts.ask();
  const silent = silentAmong(seen, verdict.endpoints);
  return { ...answer, attempts: attemptsTo(seen, verdict.endpoints), observations: [...observations, ...silent] };
}

/**
 * Explains by what a process knows, and asks the kernel.
 *
 * @throws QuestionError for an interface that the node does not have.
 */
export async function explainRunning(
  planned: Planned,
  host: Host,
  dataplane: Pick<FamilyDataplane, 'inspect'>,
  {
    pendingMs,
    quarantined,
  }: { readonly pendingMs: number | null; readonly quarantined: readonly QuarantinedService[] },
  question: Question,
): Promise<ExplainedPacket> {
  await requireInterface(host, question);
  const { snapshot, table, settings } = planned;
  const explanation = explain(snapshot, table, settings, host.localAddresses(), question);
  const kernel = await compareKernel(table, dataplane, question, explanation);
  const observations = await observedPacket(host, explanation, question.destination);
  const refused = quarantined.find(({ frontend }) => frontend === explanation.frontend?.key);
  return { ...explanation, kernel, pendingMs, refusedByKernel: refused?.reason ?? null, attempts: null, observations };
}

async function compareKernel(
  table: ForwardingTable,
  dataplane: Pick<FamilyDataplane, 'inspect'>,
  { destination, port, protocol }: Question,
  { frontend, source, affinitySeconds, clientKey, verdict }: Explanation,
): Promise<KernelAgreement> {
  const addresses: readonly IPAddress[] = source.address === null ? [destination] : [destination, source.address];
  const key = frontend?.key ?? frontendKey(destination, port, protocol);
  const scope: PacketScope = { frontend: key, addresses, destination };
  const planned = printScope(table, scope);
  const endpoints = verdict.type === 'forward' ? verdict.endpoints : [];
  const affinity =
    frontend === null || affinitySeconds === null
      ? null
      : { source: source.address, seconds: affinitySeconds, clientKey, servicePort: frontend.servicePort, endpoints };
  try {
    const { lines, remembered, rememberedUnknown = null } = await dataplane.inspect(table, scope, affinity);
    const missing = planned.filter((line) => !lines.includes(line));
    const surplus = lines.filter((line) => !planned.includes(line));
    return {
      agrees: missing.length + surplus.length === 0,
      unknown: null,
      missing,
      surplus,
      remembered,
      rememberedUnknown,
    };
  } catch (error) {
    return unknownKernel(messageOf(error));
  }
}

async function requireInterface(host: Host, { sender }: Question): Promise<void> {
  const name = sender.type === 'interface' ? sender.name : sender.type === 'address' ? sender.interface : null;
  if (name === null) return;
  const names = await host.interfaceNames();
  if (!names.includes(name))
    throw new QuestionError(
      `--from: the node has no interface ${JSON.stringify(name)} (it has ${names.join(', ')})${sender.type === 'interface' ? ', and no endpoint is a pod of this name' : ''}`,
    );
}
