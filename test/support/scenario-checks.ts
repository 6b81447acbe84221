import { FAMILIES, familyOf, parseAddress, type Family, type IPAddress } from '../../src/net/ip.js';
import { printTable } from '../../src/plan/text.js';
import type { FamilyTable } from '../../src/plan/types.js';
import type { FakeKernel } from './fake-kernel/fake-kernel.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { references, type FakeTable } from './fake-kernel/table.js';
import { printKernelVerdict } from './fake-kernel/trace.js';
import { printVerdict, sourceKind, tracePacket } from './plan-tracer.js';
import { normalVerdict, type PacketExpectation, type PlanExpectation, type Story } from './scenario-file.js';
import type { ScenarioProcess } from './scenario-process.js';

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
  kernel: FakeKernel,
  process: ScenarioProcess,
  story: Story,
  expectations: readonly PacketExpectation[],
): Findings {
  return expectations.flatMap(({ text, packet, verdict }) => {
    const byPlan = planVerdict(process, story, packet);
    const byRules = kernelVerdict(kernel, story, packet);
    if (byPlan === verdict && byRules === verdict) return [];
    return [`${text}: the plan says "${byPlan}", the rules say "${byRules}"`];
  });
}

/** Where rules remember a client: they choose among what the plan allows. */
export function checkRemembered(
  kernel: FakeKernel,
  story: Story,
  expectations: readonly PacketExpectation[],
): Findings {
  return expectations.flatMap(({ text, packet, verdict }) => {
    const byRules = kernelVerdict(kernel, story, packet);
    return byRules === verdict ? [] : [`${text}: the rules say "${byRules}"`];
  });
}

/** Every frontend, and the port beside it, from every kind of source: plan and rules must agree. */
export function checkEverywhere(kernel: FakeKernel, process: ScenarioProcess, story: Story): Findings {
  const findings: Findings = [];
  for (const family of FAMILIES) {
    for (const packet of probes(process.table(family), family, story)) {
      const byPlan = planVerdict(process, story, packet);
      const byRules = kernelVerdict(kernel, story, packet);
      if (byPlan === byRules) continue;
      const { source, destination, port, protocol } = packet;
      findings.push(
        `${source} -> ${destination}:${port}/${protocol}: the plan says "${byPlan}", the rules say "${byRules}"`,
      );
    }
  }
  return findings;
}

/** No chain that nothing leads to, no set that no rule uses. */
export function checkLeftovers(kernel: FakeKernel): Findings {
  return (['ip', 'ip6'] as const).flatMap((family) => {
    const table = kernel.table(family);
    return table === null ? [] : leftovers(table).map((name) => `nothing uses ${family} ${name}`);
  });
}

/** How many elements every set has. Which ones, the dump says. */
export function elementCounts(kernel: FakeKernel): readonly string[] {
  return (['ip', 'ip6'] as const).flatMap((family) =>
    [...(kernel.table(family)?.sets.values() ?? [])]
      .filter(({ name }) => !name.startsWith('clients-'))
      .map(({ name, elements }) => `${family} ${name} ${elements.size}`)
      .sort(),
  );
}

function leftovers(table: FakeTable): readonly string[] {
  const chains = new Set<string>();
  const sets = new Set<string>(['stale-flows', 'stale-nodeport-flows']);
  for (const { rules } of table.chains.values()) {
    for (const { statements } of rules) {
      const referred = references(statements);
      for (const name of referred.chains) chains.add(name);
      for (const name of referred.sets) sets.add(name);
    }
  }
  for (const { elements } of table.sets.values())
    for (const { chain } of elements.values()) if (chain !== null) chains.add(chain);
  // Maps of endpoints are used by class chains alone, and there may be none.
  const optional = /endpoints(-\d+)?$/;
  return [
    ...[...table.chains.values()]
      .filter(({ name, hook }) => hook === null && !chains.has(name))
      .map(({ name }) => `chain ${name}`),
    ...[...table.sets.keys()].filter((name) => !sets.has(name) && !optional.test(name)).map((name) => `set ${name}`),
  ];
}

function planVerdict(process: ScenarioProcess, story: Story, packet: KernelPacket): string {
  const table = process.table(familyOf(packet.destination));
  const from = sourceKind(table.node, packet.source, packet.inputInterface, story.localAddresses);
  return normalVerdict(printVerdict(tracePacket(table, { ...packet, from }, story.localAddresses)));
}

function kernelVerdict(kernel: FakeKernel, story: Story, packet: KernelPacket): string {
  return normalVerdict(printKernelVerdict(kernel.trace(packet, story.localAddresses)));
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
