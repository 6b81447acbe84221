// needs: namespaces
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { printEndpoint } from '../../../src/base/endpoint-list.js';
import { parseAddress, type Family } from '../../../src/base/ip.js';
import type { Protocol } from '../../../src/base/protocol.js';
import {
  Agent,
  type AgentAnswer,
  type AgentTraffic,
  type Fate,
  type HttpAnswer,
  type Outcome,
  type TimedOutcome,
} from './agent.js';
import { HERE_VARIABLE, usually } from '../extent.js';
import { ADDRESSES, NETWORK, type NetworkDescription } from './topology.js';

export { HERE_VARIABLE } from '../extent.js';
export type { Failure, Fate, HttpAnswer, Outcome, TimedOutcome } from './agent.js';

export interface Traffic {
  /** Namespace that sends. */
  readonly from: string;
  /** `address:port`, `[v6]:port`. */
  readonly to: string;
  /** TCP when not given. */
  readonly protocol?: Protocol;
  /** Address to send from; the kernel's choice when not given. */
  readonly source?: string;
  readonly sourcePort?: number;
  /** Size of the request; 16 when not given. */
  readonly bytes?: number;
  /** When silence counts as a timeout; 300 when not given. */
  readonly timeoutMs?: number;
}

export type Answer = AgentAnswer;

/** How often the same is asked; see Lab.verdict. */
export interface Repeats {
  readonly most?: number;
  readonly least?: number;
  readonly expected?: number;
}

export interface CommandResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a laboratory lives as long as: a tap test. */
export interface Scope {
  teardown(end: () => Promise<void>): unknown;
}

/** Something open in the laboratory: a server, or a client that keeps its source port. */
export interface Closable {
  close(): Promise<void>;
}

export interface Connection extends Closable {
  /** Asks once more over the same connection or from the same source port. */
  exchange(options?: { readonly bytes?: number; readonly timeoutMs?: number }): Promise<Answer>;
}

export interface TCPConnection extends Connection {
  /** Sends without waiting for an answer. */
  send(): Promise<void>;
  /** Waits for the end of the connection while it is idle. */
  fate(timeoutMs: number): Promise<Fate>;
  /** How many segments the client's kernel sent again so far. */
  repeats(): Promise<number>;
}

export interface Watch {
  /** Waits until all that is asked was sent after this call: requests under way have their answers. */
  turn(): Promise<void>;
  stop(): Promise<readonly TimedOutcome[]>;
}

/** Where starting programs takes long one agent serves all laboratories, one after the other. */
const resident: { agent: Agent | null } = { agent: null };

function residentAgent(): Agent {
  resident.agent ??= new Agent();
  resident.agent.resume();
  return resident.agent;
}

/** How long to wait for what must come, in milliseconds: the program runs in this process where machines are emulated, perhaps on busy cores, and in `npm test`. */
export function patience(ms: number): number {
  return process.env[HERE_VARIABLE] === undefined ? ms : usually(1, 10) * ms;
}

/** Enough requests that one of up to three equally likely endpoints stays unseen once in fifty million runs. */
const REQUESTS = 48;
/** An answer that must come may wait for a busy machine. What must be dropped is given less by who asks for it. */
const ANSWER_TIMEOUT_MS = 5000;
const EVENTUALLY_MS = 100_000;
/** The longest pause after a look that took that long. */
const LONG_LOOK_MS = 100;
/** Less than test/run.ts waits for a word of a file, so that it is said what did not come. */
const LONGEST_MS = 250_000;

/** The namespaces of topology.ts with servers, clients and processes in them. It ends with its test, and with the test process whatever happens. */
export class Lab {
  readonly #agent: Agent;
  /** The process that holds the namespaces. */
  readonly pid: number;
  readonly #namespaces: Readonly<Record<string, number>>;

  /** Whether the node is this process's own namespace. */
  readonly isHere: boolean;

  private constructor(agent: Agent, pid: number, namespaces: Readonly<Record<string, number>>, isHere: boolean) {
    this.#agent = agent;
    this.pid = pid;
    this.#namespaces = namespaces;
    this.isHere = isHere;
  }

  static async start(t: Scope, network: NetworkDescription = NETWORK): Promise<Lab> {
    const isHere = process.env[HERE_VARIABLE] !== undefined;
    const agent = isHere ? residentAgent() : new Agent();
    t.teardown(() => (isHere ? agent.reset() : agent.close()));
    const built = await agent.call('build', { network, adopted: isHere ? { node: process.pid } : {} });
    return new Lab(agent, built.pid, built.namespaces, isHere);
  }

  /** A server on an address of the namespace, named as given or after the namespace. It answers with its name and the client's address. */
  async serve(namespace: string, at: string, protocol: Protocol = 'TCP', name: string = namespace): Promise<Closable> {
    const handle = await this.#agent.call('serve', { in: namespace, ...parseEndpoint(at), protocol, name });
    return this.#closable(handle);
  }

  /** Servers in every listed namespace, on its address of each family. */
  async serveAll(
    namespaces: readonly (keyof typeof ADDRESSES)[],
    ports: readonly (readonly [number, Protocol])[],
  ): Promise<void> {
    await Promise.all(
      namespaces.flatMap((namespace) =>
        Object.values(ADDRESSES[namespace]).flatMap((address) =>
          ports.map(([port, protocol]) => this.serve(namespace, endpoint(address, port), protocol)),
        ),
      ),
    );
  }

  /** One connection and one request; never rejects for what happens to packets. */
  request(traffic: Traffic): Promise<Answer> {
    return this.#agent.call('request', agentTraffic(traffic));
  }

  /** Many requests, counted by outcome. */
  burst(traffic: Traffic, count: number, workers = 4): Promise<readonly Outcome[]> {
    return this.#agent.call('burst', { ...agentTraffic(traffic), count, workers });
  }

  /**
   * What becomes of such traffic, as text: `dropped`, another failure, or the sorted addresses that answer, `masqueraded` after those that do
   * not see the sender's address and port. An answer is asked for often enough to meet every endpoint: `most` times, or `least` where `expected` have
   * answered by then.
   */
  async verdict(traffic: Traffic, { least, most = REQUESTS, expected }: Repeats = {}): Promise<string> {
    const first = await this.burst(traffic, 1);
    if (!first.every((outcome) => 'at' in outcome))
      return describeOutcomes([...first, ...(await this.burst(traffic, 1))]).join(', ');
    const enough = least ?? most;
    const outcomes = [...first, ...(await this.burst(traffic, enough - 1))];
    if (enough < most && describeOutcomes(outcomes).length < (expected ?? 0))
      outcomes.push(...(await this.burst(traffic, most - enough)));
    return describeOutcomes(outcomes).join(', ');
  }

  /** Opens a TCP connection, or a UDP or SCTP socket; rejects when a TCP connection does not come about. */
  async open(traffic: Traffic): Promise<TCPConnection> {
    const handle = await this.#agent.call('open', agentTraffic(traffic));
    return {
      ...this.#closable(handle),
      exchange: ({ bytes = 16, timeoutMs = patience(ANSWER_TIMEOUT_MS) } = {}) =>
        this.#agent.call('exchange', { handle, bytes, timeout: timeoutMs / 1000 }),
      send: async () => {
        await this.#agent.call('send', { handle, bytes: 16 });
      },
      fate: (timeoutMs) => this.#agent.call('fate', { handle, timeout: timeoutMs / 1000 }),
      repeats: () => this.#agent.call('repeats', { handle }),
    };
  }

  /** Asks again and again until stopped; in `npm test` with longer pauses. */
  async watch(traffic: Traffic, workers = 4, pauseMs = 1): Promise<Watch> {
    const handle = await this.#agent.call('watch', {
      ...agentTraffic(traffic),
      workers,
      pause: (pauseMs * usually(4, 1)) / 1000,
    });
    return {
      turn: async () => {
        await this.#agent.call('turn', { handle });
      },
      stop: () => this.#agent.call('unwatch', { handle }),
    };
  }

  /** An HTTP GET from the namespace. */
  http(from: string, url: string, timeoutMs = patience(ANSWER_TIMEOUT_MS)): Promise<HttpAnswer> {
    const { host, pathname, search } = new URL(url);
    return this.#agent.call('http', {
      from,
      ...parseEndpoint(host),
      path: pathname + search,
      timeout: timeoutMs / 1000,
    });
  }

  async addAddress(namespace: string, link: string, address: string): Promise<void> {
    await this.#agent.call('address', { in: namespace, link, address, add: true });
  }

  async removeAddress(namespace: string, link: string, address: string): Promise<void> {
    await this.#agent.call('address', { in: namespace, link, address, add: false });
  }

  /** A prefix that the namespace reaches through a gateway from now on. */
  async addRoute(namespace: string, to: string, via: string): Promise<void> {
    await this.#agent.call('route', { in: namespace, to, via, add: true });
  }

  /** One more address for a local pod with a routed veth or behind the bridge, known to the node's routes. */
  async addPodAddress(podName: 'pod-a' | 'pod-b' | 'pod-c', address: string): Promise<void> {
    const to = `${address}/${address.includes(':') ? 128 : 32}`;
    await this.addAddress(podName, 'eth0', to);
    const link = podName === 'pod-c' ? 'cbr0' : podName.replace('pod', 'veth');
    await this.#agent.call('route', { in: 'node', to, link, add: true });
  }

  async setLink(namespace: string, link: string, state: 'up' | 'down' | 'deleted'): Promise<void> {
    await this.#agent.call('link', { in: namespace, link, state });
  }

  /** Reads, or writes and reads back, /proc/sys/`key` in the namespace. */
  sysctl(namespace: string, key: string, value?: string): Promise<string> {
    return this.#agent.call('sysctl', { in: namespace, key, ...(value === undefined ? {} : { value }) });
  }

  /** Resolves once the node routes packets off loopback, which iptables mode lets it a moment after a process is ready: the rules come first. */
  async routesLoopback(): Promise<void> {
    const routed = async (): Promise<boolean> =>
      (await this.sysctl('node', 'net/ipv4/conf/all/route_localnet')).trim() === '1';
    await eventually('packets may be routed off loopback', async () => (await routed()) || null);
  }

  /** Starts a program in the namespace; it is killed with the test process. */
  spawn(namespace: string, command: readonly string[]): ChildProcessWithoutNullStreams {
    const fd = this.#namespaces[namespace];
    if (fd === undefined) throw new Error(`no namespace ${namespace}`);
    const sameUser = readlinkSync('/proc/self/ns/user') === readlinkSync(`/proc/${this.pid}/ns/user`);
    const user = sameUser ? [] : [`--user=/proc/${this.pid}/ns/user`, '--preserve-credentials'];
    const enter = [...user, `--net=/proc/${this.pid}/fd/${fd}`];
    // Not the test runner's environment: its NODE_OPTIONS would load it into every Node process.
    const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin`;
    return spawn('nsenter', [...enter, '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...command], { env: { PATH } });
  }

  /** Runs a program in the namespace to its end. */
  run(namespace: string, command: readonly string[], input = ''): Promise<CommandResult> {
    const child = this.spawn(namespace, command);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin.on('error', () => undefined).end(input);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (status) => {
        resolve({ status, stdout, stderr });
      });
    });
  }

  /** Runs a program in the namespace that must succeed; resolves to what it printed. */
  async output(namespace: string, command: readonly string[], input = ''): Promise<string> {
    const { status, stdout, stderr } = await this.run(namespace, command, input);
    if (status !== 0)
      throw new Error(`${command.join(' ')} in ${namespace}: status ${String(status)}: ${stderr.trim()}`);
    return stdout;
  }

  /** `nft list ruleset` of the node, without the table that counts connection attempts: it comes with `explain` and goes a minute later. */
  async ruleset(): Promise<string> {
    const text = await this.output('node', ['nft', 'list', 'ruleset']);
    return text.replaceAll(/^table \S+ pointsman-attempts \{\n[\s\S]*?^\}\n/gm, '');
  }

  /** `nft -j list ruleset` of the node, parsed. */
  async rulesetJson(): Promise<object> {
    return JSON.parse(await this.output('node', ['nft', '-j', 'list', 'ruleset'])) as object;
  }

  /** Lines of `conntrack -L` of the node in one family. */
  async flows(family: Family = 'IPv4'): Promise<readonly string[]> {
    const listed = await this.output('node', ['conntrack', '-L', '-f', family.toLowerCase()]);
    return listed.split('\n').filter((line) => line !== '');
  }

  #closable(handle: number): Closable {
    return {
      close: async () => {
        await this.#agent.call('close', { handle });
      },
    };
  }
}

/** `10.244.1.10:80`, `10.244.1.10:80 masqueraded`, `dropped`, `refused` … */
export function describeOutcome(outcome: Outcome): string {
  if ('error' in outcome) return outcome.error === 'timeout' || outcome.error === 'denied' ? 'dropped' : outcome.error;
  return outcome.masqueraded ? `${outcome.at} masqueraded` : outcome.at;
}

/**
 * The same of many, sorted, each once. Where the address stays the same, masquerading shows by the port alone, and a port drawn at random is the client's
 * own once in 64,000 times: one such answer among masqueraded ones is that chance.
 */
export function describeOutcomes(outcomes: readonly Outcome[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const outcome of outcomes) {
    const text = describeOutcome(outcome);
    counts.set(text, (counts.get(text) ?? 0) + outcome.count);
  }
  for (const [text, count] of counts) if (count === 1 && counts.has(`${text} masqueraded`)) counts.delete(text);
  return [...counts.keys()].sort();
}

/** `address:port` with brackets around IPv6. */
export function endpoint(address: string, port: number): string {
  const parsed = parseAddress(address);
  if (parsed === null) throw new Error(`not an address: ${address}`);
  return printEndpoint(parsed, port);
}

/**
 * Polls until the condition yields something other than null, at most for the given time. The longer it takes the less often, and after a look that took
 * long, for which programs are started, the pause is as long.
 */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | null>,
  timeoutMs = Math.min(patience(EVENTUALLY_MS), LONGEST_MS),
): Promise<T> {
  const started = Date.now();
  for (;;) {
    const asked = Date.now();
    const met = await condition();
    if (met !== null) return met;
    const now = Date.now();
    const waited = now - started;
    if (waited > timeoutMs) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await pause(Math.max(Math.min(5 + waited / 10, patience(50)), Math.min(now - asked, LONG_LOOK_MS)));
  }
}

function parseEndpoint(text: string): { address: string; port: number } {
  const match = /^\[(.+)\]:(\d+)$/.exec(text) ?? /^([^:]+):(\d+)$/.exec(text);
  if (match?.[1] === undefined) throw new Error(`not address:port: ${text}`);
  return { address: match[1], port: Number(match[2]) };
}

function agentTraffic(traffic: Traffic): AgentTraffic {
  return {
    from: traffic.from,
    protocol: traffic.protocol ?? 'TCP',
    ...parseEndpoint(traffic.to),
    ...(traffic.source === undefined ? {} : { source: traffic.source }),
    ...(traffic.sourcePort === undefined ? {} : { sourcePort: traffic.sourcePort }),
    bytes: traffic.bytes ?? 16,
    timeout: (traffic.timeoutMs ?? patience(ANSWER_TIMEOUT_MS)) / 1000,
  };
}
