// needs: nft
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ask } from '../../../src/cli/ask.js';
import { LINGER_MS } from '../../../src/dataplane/nftables/uses.js';
import type { ProcessStatus } from '../../../src/observe/process-status.js';
import type { ExplainedPacket } from '../../../src/serve/explain-packet.js';
import { usually } from '../extent.js';
import { lineDifference, LINGERING, type PlanAndDump } from './difference.js';
import { Inspector } from './inspect.js';
import { endpoint, eventually, type Closable, type CommandResult, type Lab } from './lab.js';
import { configuredMode, labMode, modeConfiguration, type LabMode } from './mode.js';
import { endpointSlice, node, service, type Manifest } from './objects.js';
import { PROGRAM } from '../program.js';
import { RunningHere, RunningProcess, type Running } from './running.js';
import { ADDRESSES, PREFIXES } from './topology.js';

/** Name of the node under test. */
export const NODE_NAME = 'node-1';

export interface ProxyOptions {
  /** Fields of KubeProxyConfiguration that replace the laboratory's. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The test process's, see mode.ts, when not given. */
  readonly mode?: LabMode;
  /** Further command-line flags. */
  readonly flags?: readonly string[];
  /** What the manifests hold at the start, besides the Node. */
  readonly objects?: readonly Manifest[];
  /** In place of the laboratory's Node with its first two addresses. */
  readonly node?: Manifest;
  /** Where the process reads objects from in place of manifests, which then only tell `plan` and `dump` what is to be. */
  readonly cluster?: Cluster;
  /** A program and its arguments that the process is started by. */
  readonly launcher?: readonly string[];
  /** The distribution's tools cannot list the rules, because of rules of others. */
  readonly unlisted?: boolean;
  /** Environment variables of the process. */
  readonly env?: Readonly<Record<string, string>>;
  /** A program with kube-proxy's command line and nothing besides, in place of ours; it needs a cluster. */
  readonly program?: string;
}

/** An API server: which objects it has, and what the process needs to read them. */
export interface Cluster {
  /** Replaces all objects. */
  replace(objects: readonly Manifest[]): Promise<void>;
  /** Fields of KubeProxyConfiguration by which the process finds it. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** What the process lives as long as: a tap test, which shows the process's log if it fails. */
export interface ProxyScope {
  teardown(end: () => Promise<void>): unknown;
  passing(): boolean;
  comment(text: string): void;
}

/** nf_conntrack_max belongs to the host and cannot be set in a namespace: maxPerCore 0 leaves it alone. */
const CONFIG = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  clusterCIDR: `${PREFIXES.pods.IPv4},${PREFIXES.pods.IPv6}`,
  conntrack: { maxPerCore: 0 },
};

/** A Service that changes its port with every write, so that a client sees which write the node has reached. */
const MARKER = {
  name: 'marker',
  IPv4: '10.96.255.254',
  IPv6: 'fd00:10:96::fffe',
  firstPort: 20000,
  targetPort: 9999,
} as const;
const MARKER_PORT = [{ port: MARKER.targetPort }];
// An emulated machine on busy cores takes minutes for what takes seconds here.
const START_TIMEOUT_MS = 300_000;
const SETTLE_TIMEOUT_MS = 100_000;
const LOOK_AGAIN_MS = 20;
/** After how many changes plan and kernel are compared, and the distribution's tools list the rules: each costs as much processor time as the change. */
const ONE_IN = usually({ compared: 2, listed: 4 }, { compared: 1, listed: 1 });

/** The process of each laboratory, for those who know the laboratory only. */
const PROXIES = new WeakMap<Lab, Proxy>();

/** The running process of a laboratory; null when there is none. */
export function runningProxy(lab: Lab): Proxy | null {
  const proxy = PROXIES.get(lab);
  return proxy?.isRunning === true ? proxy : null;
}

/** The process under test in the node's namespace, on manifests of its own. */
export class Proxy {
  readonly #lab: Lab;
  readonly #folder: string;
  readonly #options: ProxyOptions;
  #labMode: LabMode;
  #node: Manifest | null;
  #process: Running | null = null;
  #inspector: Inspector | null = null;
  #generation = 0;
  #log = '';

  private constructor(lab: Lab, folder: string, options: ProxyOptions) {
    this.#lab = lab;
    this.#folder = folder;
    this.#options = options;
    this.#labMode = options.mode ?? labMode();
    this.#node = options.node ?? node(NODE_NAME, { addresses: Object.values(ADDRESSES.node) });
  }

  /** Starts the process and waits until it is healthy and has programmed everything. */
  static async start(t: ProxyScope, lab: Lab, options: ProxyOptions = {}): Promise<Proxy> {
    const proxy = await Proxy.prepare(t, lab, options);
    await proxy.write(options.objects ?? []);
    await proxy.restart();
    return proxy;
  }

  /** Everything but the manifests, which do not exist before the first write, and the process, which does not run before `launch`. */
  static async prepare(t: ProxyScope, lab: Lab, options: ProxyOptions = {}): Promise<Proxy> {
    const folder = await mkdtemp(join(tmpdir(), 'lab-'));
    const proxy = new Proxy(lab, folder, options);
    if (options.program === undefined) PROXIES.set(lab, proxy);
    const markers: Closable[] = [];
    t.teardown(async () => {
      if (lab.isHere && proxy.isRunning && t.passing()) await proxy.consistent();
      await proxy.stop('SIGKILL');
      await proxy.#inspector?.close();
      await Promise.all(markers.map((marker) => marker.close()));
      await rm(folder, { recursive: true });
      if (!t.passing()) t.comment(proxy.log);
    });
    await proxy.useMode(proxy.mode);
    for (const address of [ADDRESSES['pod-a'].IPv4, ADDRESSES['pod-a'].IPv6]) {
      markers.push(await lab.serve('pod-a', endpoint(address, MARKER.targetPort), 'TCP', MARKER.name));
    }
    return proxy;
  }

  get configFile(): string {
    return join(this.#folder, 'config.json');
  }

  /** The file that holds all objects; the folder it is in is the process's --manifests. */
  get manifestFile(): string {
    return join(this.#folder, 'manifests', 'objects.json');
  }

  /** Where the running process can be asked. */
  get statusSocket(): string {
    return join(this.#folder, 'status.sock');
  }

  get isRunning(): boolean {
    return this.#process !== null && this.#process.end === null;
  }

  /** What the running process says of a packet, as `pointsman explain` asks it. */
  async explain(from: string, to: string): Promise<ExplainedPacket> {
    const query = new URLSearchParams({ from, to, output: 'json' }).toString();
    return JSON.parse((await ask(this.statusSocket, `/explain?${query}`)).text) as ExplainedPacket;
  }

  async status(): Promise<ProcessStatus> {
    return JSON.parse((await ask(this.statusSocket, '/status?output=json')).text) as ProcessStatus;
  }

  get mode(): LabMode {
    return this.#labMode;
  }

  /** The process runs in this mode, from its next start on if it does not run. */
  async useMode(mode: LabMode): Promise<void> {
    this.#labMode = mode;
    await writeFile(this.configFile, JSON.stringify(this.#mode().config, null, 2));
    await this.#process?.reconfigure(this.#argv());
  }

  /** The node's rules as the mode's own tools print them, both families together. */
  async rules(): Promise<string> {
    const { name, flavor } = configuredMode(this.mode);
    if (flavor === null) return await this.#lab.ruleset();
    const programs = [[`iptables-${flavor}-save`], [`ip6tables-${flavor}-save`]];
    if (name === 'ipvs') programs.push(['ipset', 'save'], ['ipvsadm', '-Sn']);
    return (await Promise.all(programs.map((program) => this.#lab.output('node', program)))).join('');
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Whether the process was started and has ended by itself. */
  get ended(): boolean {
    return this.#process !== null && this.#process.end !== null;
  }

  /** Everything the process has written to standard output and standard error. */
  get log(): string {
    return this.#log;
  }

  /**
   * Replaces all objects, waits until the node works by them in both families, and checks that kernel and plan agree: in `npm test` after every other
   * change, and under emulation, where that takes longer than the change, at the end of the test alone. The distribution's tools list everything after
   * some changes. Resolves to how many milliseconds the change took.
   */
  async apply(objects: readonly Manifest[]): Promise<number> {
    const started = Date.now();
    await this.write(objects);
    await this.synced();
    const taken = Date.now() - started;
    if (this.#options.program !== undefined) {
      // Objects that came with the marker may have missed its sync; they cannot miss the next.
      await this.write(objects);
      await this.synced();
      return taken;
    }
    const isCompared = !this.#lab.isHere && this.#generation % ONE_IN.compared === 0;
    if (isCompared) await this.#agrees(this.#generation % ONE_IN.listed === 0);
    // In mode ipvs one change is several messages, of which that of the marker is one.
    else await this.#until('no change waits', SETTLE_TIMEOUT_MS, async () => (await this.status()).pendingMs === null);
    return taken;
  }

  /** Rejects unless the distribution's tools list everything (but where they are slow, under emulation), and the kernel holds what the manifests ask for. */
  async consistent(): Promise<void> {
    if (this.#options.program !== undefined) return;
    await this.#agrees(!this.#lab.isHere);
  }

  /** Rejects unless the kernel holds what the manifests ask for, and where it is asked for the distribution's tools list it. */
  async #agrees(toolsList: boolean): Promise<void> {
    const lists =
      toolsList && this.#options.unlisted !== true
        ? [this.rules(), ...(this.mode === 'nftables' ? [this.#lab.rulesetJson()] : [])]
        : [];
    let [held] = await Promise.all([this.#contents(), ...lists]);
    if (held.plan === '') throw new Error(`the plan is empty: ${held.errors.join('; ')}`);
    // What is deleted after its last use may take a moment longer: chains of mode nftables LINGER_MS, notes of gone flows less.
    const started = Date.now();
    while (lineDifference(held) !== '' && Date.now() - started < SETTLE_TIMEOUT_MS) {
      // A process that has ended takes nothing away any more: one look after its end is the last.
      const last = this.ended;
      const waited = Date.now() - started;
      await pause(LINGERING.test(lineDifference(held)) ? Math.max(LOOK_AGAIN_MS, LINGER_MS - waited) : LOOK_AGAIN_MS);
      held = await this.#contents();
      if (last) break;
    }
    const difference = lineDifference(held);
    if (difference !== '') throw new Error(`plan and dump differ:\n${difference}${held.errors.join('\n')}`);
  }

  /** From the next write on this is the node under test; null: there is no such object. */
  replaceNode(manifest: Manifest | null): void {
    this.#node = manifest;
  }

  /** Replaces all objects, in one rename, without waiting. */
  async write(objects: readonly Manifest[]): Promise<void> {
    this.#generation++;
    const own = [...(this.#node === null ? [] : [this.#node]), ...this.#marker()];
    await mkdir(join(this.#folder, 'manifests'), { recursive: true });
    const unfinished = join(this.#folder, 'manifests', '.objects.json');
    await writeFile(
      unfinished,
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...own, ...objects] }, null, 1),
    );
    await rename(unfinished, this.manifestFile);
    await this.#options.cluster?.replace([...own, ...objects]);
  }

  /** Waits until the last write has reached the kernel in both families. */
  async synced(timeoutMs = 200_000): Promise<void> {
    for (const address of [MARKER.IPv4, MARKER.IPv6]) {
      const to = endpoint(address, MARKER.firstPort + this.#generation);
      await this.#until(`write ${this.#generation} in the kernel (${to})`, timeoutMs, async () => {
        const answer = await this.#lab.request({ from: 'pod-b', to, timeoutMs: this.#lab.isHere ? 2000 : 50 });
        return 'name' in answer && answer.name === MARKER.name;
      });
    }
  }

  /** Starts the process again with the same configuration and manifests; one that still runs is killed first. */
  async restart(): Promise<void> {
    await this.stop('SIGKILL');
    this.launch();
    await this.ready();
  }

  /** Starts the process without waiting for it, by a command of its own if there is one. */
  launch(
    env: Readonly<Record<string, string>> = this.#options.env ?? {},
    by: readonly string[] = this.#options.launcher ?? [],
  ): void {
    const argv = this.#argv();
    const receive = (text: string): void => {
      this.#log += text;
    };
    if (this.#lab.isHere) {
      if (by.length > 0 || Object.keys(env).length > 0) throw new Error('it is started in this process');
      this.#process = new RunningHere(argv, receive);
      return;
    }
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const command = ['env', ...variables, ...by, this.#options.program ?? PROGRAM, ...argv];
    this.#process = new RunningProcess(this.#lab.spawn('node', command), receive);
  }

  /** Waits until the process is healthy and everything written is in the kernel. */
  async ready(): Promise<void> {
    await this.#until('healthy process', START_TIMEOUT_MS, async () => {
      const answer = await this.#lab.http('node', 'http://127.0.0.1:10256/healthz');
      return 'status' in answer && answer.status === 200;
    });
    await this.synced();
  }

  /** Waits until the process has ended by itself, or all that was written is in the kernel and nothing is left to do. Whether it has ended. */
  async diesOrSettles(): Promise<boolean> {
    const child = this.#process;
    if (child === null) return true;
    try {
      await this.ready();
      await this.consistent();
      // The kernel had the last of it before the process heard so: whether it ends for that shows once it has nothing left to do.
      await this.ready();
    } catch (error) {
      if (child.end === null) throw error;
    }
    return child.end !== null;
  }

  /** Ends the process and waits for it; resolves to its exit code, null if it was not running or died of a signal. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#process;
    this.#process = null;
    if (child?.end === null) await child.stop(signal);
    return child?.exitCode ?? null;
  }

  /** Runs `plan`, `render`, `dump`, or the program without a subcommand, with the flags of the running process and more. */
  run(command: 'plan' | 'render' | 'dump' | null, flags: readonly string[] = []): Promise<CommandResult> {
    const words = command === null ? [] : [command];
    return this.#lab.run('node', [PROGRAM, ...words, ...this.#flags(), ...flags]);
  }

  /** Runs --init-only as the process is configured, with all privileges. */
  initialise(launcher: readonly string[] = []): Promise<CommandResult> {
    const flags = this.#options.cluster === undefined ? this.#flags() : this.#nodeFlags();
    return this.#lab.run('node', [...launcher, PROGRAM, ...flags, '--init-only']);
  }

  /** What `plan` and `dump` print with the flags of the running process. */
  async #contents(): Promise<PlanAndDump> {
    if (this.#lab.isHere) {
      const { planAndDump } = await import('./plan-and-dump.js');
      return await planAndDump(this.#flags());
    }
    this.#inspector ??= new Inspector(this.#lab);
    return await this.#inspector.planAndDump(this.#flags());
  }

  #argv(): string[] {
    const { cluster, flags = [], program } = this.#options;
    const own = program === undefined ? ['--status-socket', this.statusSocket, '-v', '2'] : ['-v', '2'];
    return [...(cluster === undefined ? this.#flags() : this.#nodeFlags()), ...own, ...flags];
  }

  #flags(): string[] {
    return [...this.#nodeFlags(), '--manifests', join(this.#folder, 'manifests')];
  }

  #nodeFlags(): string[] {
    // A name in the file is there to be changed.
    const name = this.#options.config?.['hostnameOverride'] === undefined ? ['--hostname-override', NODE_NAME] : [];
    return ['--config', this.configFile, ...name, ...this.#mode().flags];
  }

  #mode(): ReturnType<typeof modeConfiguration> {
    const { cluster, config } = this.#options;
    return modeConfiguration(this.mode, { ...CONFIG, ...cluster?.config, ...config });
  }

  #marker(): Manifest[] {
    const port = { port: MARKER.firstPort + this.#generation, targetPort: MARKER.targetPort };
    const podA = ADDRESSES['pod-a'];
    return [
      service(MARKER.name, { namespace: 'lab', clusterIPs: [MARKER.IPv4, MARKER.IPv6], ports: [port] }),
      endpointSlice(MARKER.name, [{ address: podA.IPv4, node: NODE_NAME }], MARKER_PORT, { namespace: 'lab' }),
      endpointSlice(MARKER.name, [{ address: podA.IPv6, node: NODE_NAME }], MARKER_PORT, { namespace: 'lab' }),
    ];
  }

  async #until(what: string, timeoutMs: number, condition: () => Promise<boolean>): Promise<void> {
    const child = this.#process;
    try {
      await eventually(
        what,
        async () => {
          if (child !== null && child.end !== null) throw new Error(`the process has ended (${child.end})`);
          return (await condition()) || null;
        },
        timeoutMs,
      );
    } catch (error) {
      const tail = this.#log.split('\n').slice(-60).join('\n');
      throw new Error(`${error instanceof Error ? error.message : String(error)}\nLog of the process:\n${tail}`);
    }
  }
}
