import { FAMILIES, familyOf, parseAddress, type Family, type IPAddress } from '../../src/base/ip.js';
import type { Explanation } from '../../src/plan/explain.js';
import { printScope, printTable } from '../../src/plan/text.js';
import type { FamilyTable } from '../../src/plan/types.js';
import { printKernelVerdict } from './courses.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { printVerdict } from './plan-tracer.js';
import { normalVerdict, type PacketExpectation, type PlanExpectation, type Story } from './scenario-file.js';
import type { ScenarioProcess } from './scenario-process.js';
import type { ScenarioMode, ScenarioWorld } from './scenario-world.js';

/** What is wrong, a line each; empty when nothing is. */
export type Findings = string[];

/** The kernel's table, read back, says what the plan says. */
export async function checkDump(process: ScenarioProcess): Promise<Findings> {
  const findings: Findings = [];
  for (const family of FAMILIES) {
    const plan = printTable(process.table(family));
    const dump = await process.dump(family);
    findings.push(...plan.filter((line) => !dump.includes(line)).map((line) => `not in the kernel: ${line}`));
    findings.push(...dump.filter((line) => !plan.includes(line)).map((line) => `in the kernel only: ${line}`));
    if (findings.length === 0 && plan.join() !== dump.join()) findings.push('dump and plan are in different order');
  }
  return findings;
}

export function checkPlan(process: ScenarioProcess, expectations: readonly PlanExpectation[]): Findings {
  const all = FAMILIES.flatMap((family) => printTable(process.table(family)));
  return expectations.flatMap(({ prefix, lines, absent }) => [
    ...lines.filter((line) => !all.includes(line)).map((line) => `not in the plan: ${line}`),
    ...absent.filter((line) => all.includes(line)).map((line) => `in the plan, and should not be: ${line}`),
    ...all
      .filter((line) => prefix !== '' && line.startsWith(`${prefix} `) && !lines.includes(line))
      .map((line) => `in the plan, and not expected: ${line}`),
  ]);
}

/** Packets go where the story says, by the plan and by the rules. */
export function checkPackets(
  world: ScenarioWorld,
  process: ScenarioProcess,
  story: Story,
  expectations: readonly PacketExpectation[],
): Findings {
  return expectations.flatMap(({ text, packet, verdict }) => {
    const byPlan = planVerdict(process, packet);
    const byRules = kernelVerdict(world, story, packet);
    if (byPlan === verdict && byRules === verdict) return [];
    return [`${text}: the plan says "${byPlan}", the rules say "${byRules}"`];
  });
}

/** What decides over each packet, read back from the kernel alone, is what the plan says of it. */
export async function checkInspections(
  process: ScenarioProcess,
  expectations: readonly PacketExpectation[],
): Promise<Findings> {
  const findings: Findings = [];
  for (const { text, packet } of expectations) {
    const { scope, inspection } = await process.inspect(packet);
    const planned = printScope(process.table(familyOf(packet.destination)), scope).join('\n');
    const held = inspection.lines.join('\n');
    if (held !== planned) findings.push(`${text}: the plan says\n${planned}\nthe kernel holds\n${held}`);
  }
  return findings;
}

/** Where rules remember a client: they choose among what the plan allows, and the memory can be read back. */
export async function checkRemembered(
  { tellsRemembered }: Pick<ScenarioMode, 'tellsRemembered'>,
  world: ScenarioWorld,
  process: ScenarioProcess,
  story: Story,
  expectations: readonly PacketExpectation[],
): Promise<Findings> {
  const findings: Findings = [];
  for (const { text, packet, verdict } of expectations) {
    const byRules = kernelVerdict(world, story, packet);
    if (byRules !== verdict) findings.push(`${text}: the rules say "${byRules}"`);
    const { remembered, rememberedUnknown } = (await process.inspect(packet)).inspection;
    const [only = '', ...rest] = verdict.split(' ').slice(0, -1);
    const expected = rest.length === 0 && only !== '' ? only.replace('(m)', '') : null;
    if (tellsRemembered && remembered !== expected)
      findings.push(`${text}: inspection finds ${String(remembered)} remembered`);
    if (tellsRemembered !== (rememberedUnknown === undefined))
      findings.push(`${text}: of what is remembered inspection says "${String(rememberedUnknown)}"`);
  }
  return findings;
}

/** Every frontend, and the port beside it, from every kind of source: plan and rules must agree. */
export function checkEverywhere(world: ScenarioWorld, process: ScenarioProcess, story: Story): Findings {
  const findings: Findings = [];
  for (const family of FAMILIES) {
    for (const packet of probes(process.table(family), family, story)) {
      const { balance } = process.explain(packet);
      const byPlan = planVerdict(process, packet);
      const byRules = kernelVerdict(world, story, packet, balance !== null);
      if (byPlan === byRules || (isHashed(balance) && isOneOf(byRules, byPlan))) continue;
      const { source, destination, port, protocol } = packet;
      findings.push(
        `${source} -> ${destination}:${port}/${protocol}: the plan says "${byPlan}", the rules say "${byRules}"`,
      );
    }
  }
  return findings;
}

/** What the plan makes of a packet, as `pointsman explain` tells it. */
function planVerdict(process: ScenarioProcess, packet: KernelPacket): string {
  const explanation = process.explain(packet);
  const contradicted = contradiction(explanation);
  const verdict = normalVerdict(printVerdict(explanation.verdict));
  return contradicted === null ? verdict : `${verdict}, but ${contradicted}`;
}

/** Reasons that do not lead to the verdict; null when they do. */
export function contradiction({ verdict, endpoints, frontend, masquerade }: Explanation): string | null {
  const used = endpoints.flatMap(({ endpoint, excluded }) => (excluded === null ? [endpoint] : [])).sort();
  if (verdict.type === 'forward') {
    const wanted = [...verdict.endpoints].sort();
    if (used.join() !== wanted.join()) return `these endpoints are explained as used: ${used.join(', ')}`;
    return masquerade === null ? 'nothing is said of masquerading' : null;
  }
  if (frontend !== null && used.length > 0 && !(verdict.type === 'drop' && verdict.because === 'source-range'))
    return `these endpoints are explained as used: ${used.join(', ')}`;
  return null;
}

function isHashed(balance: Explanation['balance']): boolean {
  return balance !== null && balance.slots !== null && balance.by !== 'random';
}

/** By hash a packet has one endpoint, where the plan names those that all packets have. */
function isOneOf(byRules: string, byPlan: string): boolean {
  const [all = '', ...planned] = byPlan.split(' ').reverse();
  return planned.some((endpoint) =>
    endpoint.endsWith('(m)') ? byRules === `${endpoint.slice(0, -3)} m` : byRules === `${endpoint} ${all}`,
  );
}

function kernelVerdict(world: ScenarioWorld, story: Story, packet: KernelPacket, weighted = false): string {
  return normalVerdict(printKernelVerdict(world.verdict(packet, story.localAddresses, weighted)));
}

function* probes(table: FamilyTable, family: Family, story: Story): IterableIterator<KernelPacket> {
  const own = story.localAddresses.filter((address) => familyOf(address) === family);
  const sources = new Set<IPAddress>([...story.sources.values()].filter((address) => familyOf(address) === family));
  for (const address of own) sources.add(address);
  for (const address of ['203.0.113.77', '2001:db8:99::77'])
    for (const parsed of [parseAddress(address)])
      if (parsed !== null && familyOf(parsed) === family) sources.add(parsed);
  for (const address of table.hairpinAddresses)
    yield { source: address, destination: address, port: 80, protocol: 'TCP', inputInterface: 'eth0' };
  for (const frontend of table.frontends()) {
    const senders = new Set(sources);
    if (frontend.endpoints.count > 0) senders.add(frontend.endpoints.address(0));
    for (const destination of frontend.address === null ? own : [frontend.address]) {
      for (const source of senders) {
        const inputInterface = own.includes(source) ? null : 'eth0';
        const { port, protocol } = frontend;
        yield { source, destination, port, protocol, inputInterface };
        yield { source, destination, port: port === 65_535 ? 1 : port + 1, protocol, inputInterface };
        yield { source, destination, port, protocol: protocol === 'UDP' ? 'TCP' : 'UDP', inputInterface };
      }
    }
  }
}
