import { DEFAULT_SERVICE_LIMITS } from '../../src/base/service-limits.js';
import { loadAll } from 'js-yaml';
import { parseAddress, parsePrefix, type IPAddress, type IPPrefix } from '../../src/base/ip.js';
import { parseProtocol } from '../../src/base/protocol.js';
import type { ModeTraits, PlanSettings } from '../../src/plan/facts.js';
import { readContent } from '../../src/sources/manifests/content.js';
import { Pacer } from '../../src/sources/manifests/pacer.js';
import { printProblem } from '../../src/sources/manifests/problems.js';
import { Interner } from '../../src/sources/translate/intern.js';
import type { RowRef } from '../../src/state/rows.js';
import type { StateChange } from '../../src/state/writer.js';
import type { ApiObject } from './api-objects.js';
import type { Flow } from './fake-kernel/flows.js';
import type { KernelPacket } from './fake-kernel/packet.js';
import { scenarioConfig, type ScenarioMode } from './scenario-world.js';

/**
 * A story: one text file of sections, each headed by `== word`. `node` comes first, where the node is not the usual one; every `apply`, `delete`,
 * `connect` or `flows` section starts a step, and what is expected after it follows: `plan`, `packets`, `remembered`, `operations`, `flows left`.
 * Lines that start with `#` are comments. The README of test/scenarios lists them.
 */
export interface Story {
  readonly settings: PlanSettings;
  readonly localAddresses: readonly IPAddress[];
  /** Addresses by the names the story gives them. */
  readonly sources: ReadonlyMap<string, IPAddress>;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly changes: readonly StateChange[];
  /** The same as requests to an API server, in order. */
  readonly writes: readonly StoryWrite[];
  /** Connections that happen, each to the endpoint named in its verdict. */
  readonly connections: readonly PacketExpectation[];
  readonly flows: readonly Flow[];
  readonly plan: readonly PlanExpectation[];
  readonly packets: readonly PacketExpectation[];
  /** Packets of clients that the rules remember: what the plan allows is wider. */
  readonly remembered: readonly PacketExpectation[];
  /** Beginnings of `IPv4 1 transactions 3 elements 0 rules`; null: not counted. */
  readonly operations: readonly string[] | null;
  /** As printed by printFlow, sorted; null: not looked at. */
  readonly flowsLeft: readonly string[] | null;
}

export type StoryWrite =
  { readonly type: 'put'; readonly object: ApiObject } | { readonly type: 'delete'; readonly ref: RowRef };

/** Lines that start with `prefix` are exactly these; with an empty prefix the lines are among the others. */
export interface PlanExpectation {
  readonly prefix: string;
  readonly lines: readonly string[];
  readonly absent: readonly string[];
}

export interface PacketExpectation {
  readonly text: string;
  readonly packet: KernelPacket;
  /** `reject`, `drop`, `none`, or sorted endpoints and then `m` or `-`. */
  readonly verdict: string;
}

interface Section {
  readonly words: readonly string[];
  /** Names of the modes that it is for; null: for all. */
  readonly modes: readonly string[] | null;
  readonly text: string;
  readonly lines: readonly string[];
}

const ACTIONS = ['apply', 'delete', 'connect', 'flows'];

/**
 * A story as one mode tells it. `usual` is what every story begins with: a `node` section, whose lines the story's own can replace, and objects,
 * which it can do without.
 *
 * @param modes those that a story may name.
 * @throws Error for a story that does not parse or whose objects are not valid.
 */
export async function parseStory(
  file: string,
  { text, usual }: { readonly text: string; readonly usual: string },
  mode: ScenarioMode,
  modes: readonly ScenarioMode[],
): Promise<Story> {
  const { definition } = mode;
  const traits = definition.traits(scenarioConfig(mode));
  const [usualNode, ...usualSteps] = sections(usual);
  const steps = [...sections(text)];
  const own = steps[0]?.words[0] === 'node' ? steps.shift() : undefined;
  const settings = new NodeSection([...(usualNode?.lines ?? []), ...(own?.lines ?? [])]);
  const reader = new StepReader(file, settings, { name: definition.name, traits });
  for (const section of settings.usualObjects ? [...usualSteps, ...steps] : steps) {
    const stranger = section.modes?.find((name) => modes.every((mode) => mode.definition.name !== name));
    if (stranger !== undefined) throw new Error(`${file}: no mode "${stranger}" tells stories`);
    await reader.read(section);
  }
  return {
    settings: settings.planSettings(traits),
    localAddresses: settings.addresses('local'),
    sources: settings.sources,
    steps: reader.steps,
  };
}

function sections(text: string): readonly Section[] {
  const parts = `\n${text}`.split(/^== */m).slice(1);
  return parts.map((part) => {
    const [head = '', ...body] = part.split('\n');
    const lines = body.map((line) => line.trimEnd()).filter((line) => line !== '' && !line.startsWith('#'));
    const [heading = '', names = null] = head.split(' in ');
    const modes = names === null ? null : names.trim().split(/\s+/);
    return { words: heading.trim().split(/\s+/), modes, text: body.join('\n'), lines };
  });
}

/** `name: value` lines about the node that runs the story. */
class NodeSection {
  readonly sources = new Map<string, IPAddress>();
  private readonly values = new Map<string, string>();

  constructor(lines: readonly string[]) {
    for (const line of lines) {
      const [name = '', ...value] = line.split(': ');
      const source = /^source (\S+)$/.exec(name);
      if (source !== null) this.sources.set(source[1] ?? '', address(value.join(': ').trim()));
      else this.values.set(name, value.join(': ').trim());
    }
  }

  get usualObjects(): boolean {
    return this.values.get('objects') !== 'none';
  }

  planSettings(traits: ModeTraits): PlanSettings {
    const [detection, ...operands] = this.words('local detection');
    const [operand = ''] = operands;
    return {
      nodeName: this.values.get('name') ?? '',
      bindAddress: address('0.0.0.0'),
      allowExternalIPs: this.values.get('external IPs') !== 'no',
      localDetection:
        detection === 'BridgeInterface'
          ? { type: detection, name: operand }
          : detection === 'InterfaceNamePrefix'
            ? { type: detection, prefix: operand }
            : detection === 'NodeCIDR'
              ? { type: detection }
              : { type: 'ClusterCIDR', prefixes: operands.map(prefix) },
      masqueradeAll: this.values.get('masquerade all') === 'yes',
      masqueradeBit: 14,
      affinityIPv6Prefix: this.values.has('affinity prefix') ? Number(this.values.get('affinity prefix')) : 128,
      nodePortAddresses: this.values.has('node port addresses')
        ? this.words('node port addresses').map((word) => (word === 'primary' ? word : prefix(word)))
        : ['primary'],
      retryTimes: { tcp: this.seconds('connect retry'), dns: this.seconds('dns retry') },
      limits: DEFAULT_SERVICE_LIMITS,
      traits,
    };
  }

  /** Null for what is not there. */
  private seconds(name: string): number | null {
    const text = this.values.get(name);
    return text === undefined ? null : Number(text);
  }

  addresses(name: string): readonly IPAddress[] {
    return this.words(name).map(address);
  }

  private words(name: string): readonly string[] {
    return (this.values.get(name) ?? '').split(/\s+/).filter((word) => word !== '');
  }
}

type Draft = { -readonly [Field in keyof Step]: Step[Field] };

class StepReader {
  readonly steps: Draft[] = [];
  private readonly names = new Interner();
  /** An expectation was read since the last action. */
  private closed = true;

  constructor(
    private readonly file: string,
    private readonly node: NodeSection,
    private readonly mode: { readonly name: string; readonly traits: ModeTraits },
  ) {}

  async read(section: Section): Promise<void> {
    const { words, lines } = section;
    const heading = words.join(' ');
    const action = ACTIONS.includes(heading);
    // Where a connection may go, rules that remember decide, and modes differ in what they remember.
    if (action && heading !== 'connect' && section.modes !== null)
      throw new Error(`${this.file}: "${heading}" is for all modes`);
    if (action && this.closed) this.steps.push(emptyStep());
    this.closed = !action;
    const step = this.steps[this.steps.length - 1];
    if (step === undefined) throw new Error(`${this.file}: nothing happened before "${heading}"`);
    if (section.modes?.includes(this.mode.name) === false) return;
    switch (heading) {
      case 'apply':
        step.changes = [...step.changes, ...(await this.applied(section.text))];
        step.writes = [...step.writes, ...documents(section.text).map((object) => ({ type: 'put' as const, object }))];
        return;
      case 'delete':
        step.changes = [...step.changes, ...lines.map(removal)];
        step.writes = [...step.writes, ...lines.map((line) => ({ type: 'delete' as const, ref: refIn(line) }))];
        return;
      case 'connect':
        step.connections = lines.map((line) => this.expectation(line));
        return;
      case 'flows':
        step.flows = lines.map(flow);
        return;
      case 'flows left':
        step.flowsLeft = [...lines].sort();
        return;
      case 'packets':
        step.packets = [...step.packets, ...lines.map((line) => this.expectation(line))];
        return;
      case 'remembered':
        step.remembered = [...step.remembered, ...lines.map((line) => this.expectation(line))];
        return;
      case 'operations':
        step.operations = [...(step.operations ?? []), ...lines];
        return;
      default:
        if (words[0] !== 'plan') throw new Error(`${this.file}: unknown section "${heading}"`);
        step.plan = [...step.plan, planExpectation(words.slice(1).join(' '), lines)];
    }
  }

  /** Objects as a manifest gives them; one that is not for us counts as removed. */
  private async applied(text: string): Promise<readonly StateChange[]> {
    const content = await readContent(text, this.file, this.names, new Pacer());
    const problems = content.problems.filter(({ severity }) => severity === 'error');
    if (problems.length > 0) throw new Error(problems.map(printProblem).join('\n'));
    return [
      ...[...content.rows.values()].map((row): StateChange => ({ type: 'upsert', row })),
      ...[...content.absent].map((key) => removal(key.replaceAll('/', ' '))),
    ];
  }

  /** `SOURCE [on INTERFACE] -> ADDRESS:PORT/PROTOCOL` */
  private packet(text: string): KernelPacket {
    const found = /^(\S+)(?: on (\S+))? -> (\S+):(\d+)\/(\w+)$/.exec(text.trim());
    const protocol = parseProtocol(found?.[5] ?? '');
    if (found === null || protocol === null) throw new Error(`${this.file}: not a packet: ${text}`);
    const [, from = '', on, to = '', port] = found;
    const source = this.node.sources.get(from) ?? address(from);
    const local = this.node.addresses('local').includes(source);
    return {
      source,
      destination: address(to.replace(/^\[|\]$/g, '')),
      port: Number(port),
      protocol,
      inputInterface: on ?? (local ? null : 'eth0'),
    };
  }

  /** What only modes that guard cluster addresses do not pass on (behaviour VD-15, VD-16). */
  private verdict(text: string): string {
    const { guardsClusterAddresses, balancesOnly } = this.mode.traits;
    const guarded = { 'unused-port': 'reject', unallocated: 'drop' }[text.trim()];
    if (guarded !== undefined) return guardsClusterAddresses ? guarded : 'none';
    if (!balancesOnly) return text;
    // It refuses nothing, and sources are the platform's business.
    return text.replace(/^(reject|drop)$/, 'none').replace(/\(m\)| m$/g, (mark) => (mark === ' m' ? ' -' : ''));
  }

  private expectation(text: string): PacketExpectation {
    const [packet = '', verdict = ''] = text.split(/ : +/);
    return { text, packet: this.packet(packet), verdict: normalVerdict(this.verdict(verdict)) };
  }
}

/** The same verdict with its endpoints in one order. */
export function normalVerdict(verdict: string): string {
  const words = verdict.trim().split(/\s+/);
  if (words.length === 1) return verdict.trim();
  return [...words.slice(0, -1).sort(), ...words.slice(-1)].join(' ');
}

function emptyStep(): Draft {
  return {
    changes: [],
    writes: [],
    connections: [],
    flows: [],
    plan: [],
    packets: [],
    remembered: [],
    operations: null,
    flowsLeft: null,
  };
}

/** `Kind namespace name`, or `Kind name` for the namespace default and for what has none. */
function removal(text: string): StateChange {
  return { type: 'remove', ref: refIn(text) };
}

function refIn(text: string): RowRef {
  const words = text.split(' ').filter((word) => word !== '');
  const [kind = '', ...names] = words;
  const name = names[names.length - 1] ?? '';
  const cluster = kind === 'Node' || kind === 'ServiceCIDR';
  const namespace = cluster ? '' : names.length > 1 ? (names[0] ?? '') : 'default';
  const ref = { kind, namespace, name };
  if (!isRef(ref)) throw new Error(`not an object: ${text}`);
  return ref;
}

/** The objects of an `apply` section as they are written. */
function documents(text: string): readonly ApiObject[] {
  return loadAll(text).filter((document): document is ApiObject => typeof document === 'object' && document !== null);
}

function isRef(ref: { readonly kind: string; readonly namespace: string; readonly name: string }): ref is RowRef {
  return ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'].includes(ref.kind);
}

function planExpectation(start: string, lines: readonly string[]): PlanExpectation {
  const full = (line: string): string => (start === '' ? line : `${start} ${line}`);
  return {
    prefix: start,
    lines: lines.filter((line) => !line.startsWith('! ')).map(full),
    absent: lines.filter((line) => line.startsWith('! ')).map((line) => full(line.slice(2))),
  };
}

/** `UDP 10.244.1.10:40000 -> 10.96.0.10:53 by 10.244.1.1:53`, with ` unanswered` behind. */
function flow(text: string): Flow {
  const found = /^(\w+) (\S+):(\d+) -> (\S+):(\d+) by (\S+):(\d+)( unanswered)?$/.exec(text);
  const protocol = parseProtocol(found?.[1] ?? '');
  if (found === null || protocol === null) throw new Error(`not a flow: ${text}`);
  const host = (part: number): IPAddress => address((found[part] ?? '').replace(/^\[|\]$/g, ''));
  return {
    protocol,
    source: host(2),
    sourcePort: Number(found[3]),
    destination: host(4),
    port: Number(found[5]),
    replySource: host(6),
    replyPort: Number(found[7]),
    unanswered: found[8] !== undefined,
  };
}

function address(text: string): IPAddress {
  const parsed = parseAddress(text);
  if (parsed === null) throw new Error(`not an address: ${text}`);
  return parsed;
}

function prefix(text: string): IPPrefix {
  const parsed = parsePrefix(text);
  if (parsed === null) throw new Error(`not a prefix: ${text}`);
  return parsed;
}
