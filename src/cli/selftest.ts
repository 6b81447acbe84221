import { closeSync } from 'node:fs';
import { errorCode, messageOf } from '../base/error-message.js';
import { printEndpoint } from '../base/endpoint-list.js';
import { familyOf, isLoopback, parseAddress, type Family, type IPAddress } from '../base/ip.js';
import type { OutputForm } from '../commands/shared-flags.js';
import type { Config } from '../config/config.js';
import type { Machine } from '../control/mode.js';
import type { ProbeAddon } from '../native/contract.js';
import type { ProcessStatus } from '../observe/process-status.js';
import type { ExplainedPacket } from '../serve/explain-packet.js';
import {
  packed,
  SELFTEST_BLOCKS,
  SELFTEST_LONGEST_MS,
  SELFTEST_PORT,
  SELFTEST_TARGET_PORT,
  selftestAddresses,
  type SelftestAddresses,
  type SelftestEndpoint,
  type SelftestScene,
} from '../control/selftest-scene.js';
import { EXPLAIN_PAGE, SELFTEST_PAGE, STATUS_PAGE } from '../serve/status-pages.js';
import type { ServiceDetail } from '../serve/service-answers.js';
import { ask, hold } from './ask.js';
import { AskError } from './ask-error.js';
import { printSelftest, type SelftestRow } from './print-selftest.js';
import {
  bridgeRows,
  clientOf,
  NOTHING_SENT,
  ON_BRIDGE,
  ownTrials,
  senderOf,
  type Client,
  type Ports,
  trialTo,
  type Tested,
  type Trial,
  type Wire,
} from './selftest-trial.js';
import { serveSources } from './selftest-server.js';
import { agreesWith, isLost, outcomeOf, reasonsOf } from './selftest-outcome.js';
import { findService, readAnswer } from './services.js';

interface Asked {
  readonly config: Config;
  /** Which are tried; empty: one of the test itself. */
  readonly services: readonly string[];
  readonly output: OutputForm | 'junit';
  /** How long an answer is waited for. */
  readonly seconds: number;
}

/** Packets that wait for an answer at once: each takes a thread. */
const AT_ONCE = 3;
/** How long the kernel may take to hold the Service of the test. */
const PROGRAMMED_MS = 30_000;
const LOOK_AGAIN_MS = 100;

/** Sends packets to Services as clients do, and says what came of it. The exit status. */
export async function selftest(
  asked: Asked,
  { addon, host }: Machine,
  write: (text: string) => Promise<void>,
): Promise<0 | 1 | 2> {
  const test = new Selftest(asked, addon.probe, host.localAddresses);
  try {
    const rows = await test.run();
    await write(printSelftest(rows, asked.output));
    if (rows.some(({ result }) => result === 'failed')) return 1;
    return rows.some(({ result }) => result === 'passed') ? 0 : 2;
  } finally {
    await test.end();
  }
}

function isOfOthers({ kind, severity }: ExplainedPacket['observations'][number]): boolean {
  return kind === 'foreign-rules' && severity === 'warning';
}

class Selftest {
  private readonly block = process.pid % SELFTEST_BLOCKS;
  private readonly node: Client = { name: 'node', space: null, link: null, address: () => null };
  private readonly skipped: SelftestRow[] = [];
  private readonly ends: (() => void | Promise<void>)[] = [];

  constructor(
    private readonly asked: Asked,
    private readonly probe: ProbeAddon,
    private readonly localAddresses: () => readonly IPAddress[],
  ) {}

  async run(): Promise<readonly SelftestRow[]> {
    const status = (await this.read(`${STATUS_PAGE}?output=json`)) as ProcessStatus;
    const families = status.families.map(({ family }) => family);
    const addresses = families.map((family) => selftestAddresses(this.block, family));
    const client = await this.openClient(addresses);
    const { services } = this.asked;
    const trials =
      services.length === 0
        ? await this.ownTrials(client, addresses)
        : (await Promise.all(services.map((named) => this.trialsOf(named, client)))).flat();
    const rows = await this.tryAll(trials, status.node);
    const isSeen = rows.some(({ what, result }) => what === ON_BRIDGE && result === 'failed');
    return [...rows, ...(isSeen ? [] : bridgeRows(status)), ...this.skipped];
  }

  /** Whatever was made goes; what is left when this is killed goes with the process. */
  async end(): Promise<void> {
    for (const end of this.ends.reverse()) await end();
  }

  private async openClient(addresses: readonly SelftestAddresses[]): Promise<Client | null> {
    const link = `pmc${process.pid}`;
    const wires = addresses.map(({ family, client }): Wire => ({ family, end: client }));
    const space = await this.openSpace(link, wires, 'packets of a client outside this node');
    return space === null ? null : clientOf('client', space, link, wires);
  }

  /** Null: it cannot be had, which is among the rows. */
  private async openSpace(
    link: string,
    wires: readonly Wire[],
    what: string,
    bridge: string | null = null,
  ): Promise<number | null> {
    try {
      const space = await this.probe.probeSpace(
        link,
        wires.map(({ family, end: { inside, outside, prefix } }) => ({
          inside: packed(inside, family),
          outside: packed(outside, family),
          prefix,
        })),
        bridge,
      );
      this.ends.push(() => {
        closeSync(space);
      });
      return space;
    } catch (error) {
      const isDenied = errorCode(error) === 'ERR_NETLINK' && /EPERM/.test(messageOf(error));
      const advice = isDenied ? '; it takes CAP_SYS_ADMIN, as in a privileged pod' : '';
      this.skip(what, `no network namespace: ${messageOf(error)}${advice}`);
      return null;
    }
  }

  private skip(what: string, text: string): void {
    this.skipped.push({ what, result: 'skipped', text, ...NOTHING_SENT });
  }

  /** A Service that the process serves for as long as we are connected, and a server behind it. */
  private async ownTrials(client: Client | null, addresses: readonly SelftestAddresses[]): Promise<readonly Trial[]> {
    const server = await this.openSpace(
      `pms${process.pid}`,
      addresses.map(({ family, server }) => ({ family, end: server })),
      'packets to an endpoint outside this node',
    );
    if (client === null || server === null) return this.nodeTrials(addresses);
    for (const {
      family,
      server: { inside },
    } of addresses)
      await this.serve(server, inside, family);
    const held = await hold(this.asked.config.statusSocket, `${SELFTEST_PAGE}?block=${this.block}`);
    this.ends.push(held.release);
    const scene = JSON.parse(held.text) as SelftestScene;
    await this.programmed(client, addresses);
    const { name, families } = scene.bridge ?? { name: '', families: [] };
    const bridged: Trial[] = [];
    for (const each of addresses)
      if (families.includes(each.family)) bridged.push(...(await this.bridgeTrials(name, each)));
    const usual = addresses.flatMap((each) => {
      const nodeAddress = scene.families.find(({ family }) => family === each.family)?.nodeAddress ?? null;
      if (nodeAddress === null) this.skip(`node port of ${each.family}`, 'no address of this node answers node ports');
      return [
        ...ownTrials('endpoint', this.node, each.server.inside, SELFTEST_TARGET_PORT),
        ...ownTrials('cluster IP', client, each.clusterIP),
        ...ownTrials('cluster IP', this.node, each.clusterIP),
        ...(nodeAddress === null ? [] : ownTrials('node port', client, nodeAddress, scene.nodePort)),
        ...ownTrials('load balancer address', client, each.loadBalancer),
      ];
    });
    return [...usual, ...bridged];
  }

  /** As a pod asks a Service whose endpoint is at the same bridge. If this is killed, the kernel takes the gateway's address back. */
  private async bridgeTrials(bridge: string, { family, bridged }: SelftestAddresses): Promise<readonly Trial[]> {
    const { client: wire, server: end, loadBalancer } = bridged;
    const what = `packets of ${family} over bridge ${bridge}`;
    const lease = (seconds: number): Promise<void> =>
      this.probe.probeLease(bridge, packed(wire.outside, family), wire.prefix, seconds);
    try {
      await lease(SELFTEST_LONGEST_MS / 1000);
    } catch (error) {
      this.skip(what, `the bridge takes no address: ${messageOf(error)}`);
      return [];
    }
    // The bridge may have gone, with its addresses.
    this.ends.push(() => lease(0).catch(() => undefined));
    const space = await this.openSpace(`pmp${process.pid}-${family}`, [{ family, end: wire }], what, bridge);
    if (space === null) return [];
    const server = await this.openSpace(`pme${process.pid}-${family}`, [{ family, end }], what, bridge);
    if (server === null) return [];
    await this.serve(server, end.inside, family);
    const { error } = await this.probe.probeReach(space, {
      protocol: 'UDP',
      address: packed(end.inside, family),
      port: SELFTEST_TARGET_PORT,
      payload: new Uint8Array([10]),
      reads: true,
      timeoutMs: this.asked.seconds * 1000,
    });
    if (error !== null) {
      this.skip(what, 'the bridge does not carry packets from port to port');
      return [];
    }
    const client = clientOf(`bridge ${bridge}`, space, bridge, [{ family, end: wire }]);
    await this.programmed(client, [{ family, clusterIP: loadBalancer }]);
    return ownTrials(ON_BRIDGE, client, loadBalancer);
  }

  /** The same without a network namespace: the server has an address of this node, as a pod in the node's network has. */
  private async nodeTrials(addresses: readonly SelftestAddresses[]): Promise<readonly Trial[]> {
    const endpoints: SelftestEndpoint[] = [];
    for (const { family } of addresses) {
      const address = this.localAddresses().find(
        (each) => familyOf(each) === family && !isLoopback(each) && !each.startsWith('fe80:'),
      );
      if (address === undefined) this.skip(`a Service of ${family}`, 'this node has no address of it');
      else endpoints.push({ family, address, ports: await this.serve(null, address, family) });
    }
    if (endpoints.length === 0) return [];
    this.skip('node ports of the test Service', 'they are tested from a client outside this node');
    const query = new URLSearchParams({ block: String(this.block) });
    for (const { address, ports } of endpoints) query.append('endpoint', [address, ports.TCP, ports.UDP].join());
    const held = await hold(this.asked.config.statusSocket, `${SELFTEST_PAGE}?${query.toString()}`);
    this.ends.push(held.release);
    const served = addresses.filter(({ family }) => endpoints.some((each) => each.family === family));
    await this.programmed(this.node, served);
    return [
      ...endpoints.flatMap(({ address, ports }) => ownTrials('endpoint', this.node, address, ports)),
      ...served.flatMap(({ clusterIP, loadBalancer }) => [
        ...ownTrials('cluster IP', this.node, clusterIP),
        ...ownTrials('load balancer address', this.node, loadBalancer),
      ]),
    ];
  }

  private async serve(space: number | null, address: IPAddress, family: Family): Promise<Ports> {
    const { ports, close } = await serveSources(this.probe, space, address, family);
    this.ends.push(close);
    return ports;
  }

  /** Resolves once the kernel holds the Service of the test. */
  private async programmed(
    client: Client,
    addresses: readonly Pick<SelftestAddresses, 'family' | 'clusterIP'>[],
  ): Promise<void> {
    const deadline = Date.now() + PROGRAMMED_MS;
    for (const { family, clusterIP } of addresses) {
      for (;;) {
        const explained = await this.explain(client, family, printEndpoint(clusterIP, SELFTEST_PORT), 'TCP');
        if (typeof explained === 'object' && explained.verdict.type === 'forward' && explained.kernel.agrees !== false)
          break;
        if (Date.now() > deadline)
          throw new AskError(`the proxy did not program the Service of the test in ${PROGRAMMED_MS / 1000} s`);
        await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      }
    }
  }

  private async trialsOf(named: string, client: Client | null): Promise<readonly Trial[]> {
    const { config } = this.asked;
    const key = await findService(config, named);
    if (key === null) throw new AskError(`there is no Service ${named}`);
    const detail = (await readAnswer(config, 'service', { key })) as ServiceDetail;
    const more = detail.frontendCount - detail.frontends.length;
    if (more > 0) this.skip(key, `${more} more addresses and ports`);
    if (detail.nothing !== null) this.skip(key, detail.nothing);
    const endpoints = new Map<string, Trial>();
    for (const { protocol, rows } of detail.endpoints)
      for (const { endpoint, used } of rows) {
        const what = `endpoint of ${key}`;
        for (const trial of used ? this.trials(what, this.node, `${endpoint}/${protocol}`, false) : [])
          endpoints.set(`${endpoint}/${protocol}`, trial);
      }
    const frontends = detail.frontends.flatMap(({ key: frontend, kind, explain }) => {
      if (explain === null) {
        this.skip(`${kind} ${frontend} of ${key}`, 'no address of this node answers node ports');
        return [];
      }
      // From this node, too, which rules treat apart.
      const clients = kind === 'cluster IP' || client === null ? [this.node] : [];
      return [...(client === null ? [] : [client]), ...clients].flatMap((from) =>
        this.trials(`${kind} of ${key}`, from, explain, true),
      );
    });
    return [...endpoints.values(), ...frontends];
  }

  /** None: the address or the protocol is not supported, which is among the rows. */
  private trials(what: string, client: Client, to: string, isExplained: boolean): readonly Trial[] {
    const trial = trialTo(what, client, to, isExplained);
    if (trial === null) this.skip(`${what}: ${to}`, 'the test supports TCP and UDP');
    return trial === null ? [] : [trial];
  }

  private async tryAll(trials: readonly Trial[], nodeName: string): Promise<readonly SelftestRow[]> {
    const rows = trials.map((): SelftestRow | null => null);
    const waiting = trials.entries();
    const work = async (): Promise<void> => {
      for (const [place, trial] of waiting) rows[place] = await this.tryOne(trial, nodeName);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return rows.flatMap((row) => row ?? []);
  }

  private async tryOne(trial: Trial, nodeName: string): Promise<SelftestRow> {
    const { what, client, protocol, address, port, isOwn, isExplained } = trial;
    const family = familyOf(address);
    const to = printEndpoint(address, port);
    const row = { what, from: client.name, to, protocol, source: null, milliseconds: null, agrees: null };
    const explained = isExplained ? await this.explain(client, family, to, protocol) : null;
    if (typeof explained === 'string') return { ...row, result: 'skipped', text: explained };
    if (explained !== null && client.space !== null && isLost(explained, nodeName)) {
      const text = 'an answer from another node would not find its way: the source is kept';
      return { ...row, result: 'skipped', text };
    }
    // Others may let the node's pods through, but not the test's addresses.
    if (what === ON_BRIDGE && explained !== null && explained.observations.some(isOfOthers))
      return { ...row, result: 'skipped', text: reasonsOf(explained).join('; ') };
    const place = { protocol, address: packed(address, family), port };
    const { error, answer, milliseconds } = await this.probe.probeReach(client.space, {
      ...place,
      payload: new Uint8Array(isOwn || protocol === 'UDP' ? [10] : []),
      reads: isOwn,
      timeoutMs: this.asked.seconds * 1000,
    });
    const source = isOwn && error === null ? new TextDecoder().decode(answer) : null;
    const seen = { ...row, source, milliseconds };
    const isSilent = protocol === 'UDP' && error === 'ETIMEDOUT';
    if (isSilent && !isOwn && explained?.verdict.type !== 'drop')
      return {
        ...seen,
        result: 'skipped',
        text: 'nothing came back: few servers answer a datagram that they cannot read',
      };
    if (explained === null) return { ...seen, ...outcomeOf(error, true, ''), agrees: null };
    const agrees = agreesWith(explained, error) && this.isExpectedSource(explained, client, family, source);
    const isForwarded = explained.verdict.type === 'forward';
    const wrongSource = isForwarded && error === null && !agrees ? `the endpoint sees the source ${source ?? ''}` : '';
    const why = [wrongSource, ...reasonsOf(explained)].filter((text) => text !== '').join('; ');
    return { ...seen, ...outcomeOf(error, isForwarded && agrees, why), agrees };
  }

  /** Whether the server saw what the masquerade says. */
  private isExpectedSource(explained: ExplainedPacket, client: Client, family: Family, source: string | null): boolean {
    const { verdict } = explained;
    if (source === null || verdict.type !== 'forward') return true;
    const seen = parseAddress(source);
    if (seen === null) return false;
    if (verdict.masquerade || client.space === null) return this.localAddresses().includes(seen);
    return seen === client.address(family);
  }

  /** Why it cannot be said, in a text. */
  private async explain(
    client: Client,
    family: Family,
    to: string,
    protocol: Tested,
  ): Promise<ExplainedPacket | string> {
    const query = new URLSearchParams({ from: senderOf(client, family), to: `${to}/${protocol}`, output: 'json' });
    try {
      return (await this.read(`${EXPLAIN_PAGE}?${query.toString()}`)) as ExplainedPacket;
    } catch (error) {
      if (error instanceof AskError) return error.message;
      throw error;
    }
  }

  private async read(page: string): Promise<unknown> {
    return JSON.parse((await ask(this.asked.config.statusSocket, page)).text) as unknown;
  }
}
