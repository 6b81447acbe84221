import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { errorCode, messageOf } from '../base/error-message.js';
import { printEndpoint } from '../base/endpoint-list.js';
import { familyOf, isLoopback, parseAddress, type Family, type IPAddress } from '../base/ip.js';
import type { LoadedConfig } from '../config/load.js';
import type { Machine } from '../control/mode.js';
import type { ProbeAddon } from '../native/contract.js';
import type { ProcessStatus } from '../observe/process-status.js';
import type { ExplainedPacket } from '../serve/explain-packet.js';
import {
  packed,
  SELFTEST_BLOCKS,
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
import { agreesWith, isLost, outcomeOf, reasonsOf } from './selftest-outcome.js';
import { findService, readAnswer } from './services.js';

type Asked = Extract<LoadedConfig, { readonly command: 'selftest' }>;
type Tested = 'TCP' | 'UDP';
type Ports = SelftestEndpoint['ports'];

/** Packets that wait for an answer at once: each takes a thread. */
const AT_ONCE = 3;
/** How long the kernel may take to hold the Service of the test. */
const PROGRAMMED_MS = 30_000;
const LOOK_AGAIN_MS = 100;

/** Where packets are sent from. */
interface Client {
  readonly name: string;
  /** Null: this node's own network. */
  readonly space: number | null;
  /** For `explain --from`. */
  readonly sender: (family: Family) => string;
}

/** Something to try. */
interface Trial {
  readonly what: string;
  readonly client: Client;
  readonly protocol: Tested;
  readonly address: IPAddress;
  readonly port: number;
  /** It is the test's own server that answers, with the address that it sees. */
  readonly isOwn: boolean;
  /** Whether rules are on the way, of which `explain` tells. */
  readonly isExplained: boolean;
}

/** Of the Service that the process serves for the test. @param port one, or one for each protocol. */
function ownTrials(what: string, client: Client, address: IPAddress, port: number | Ports = SELFTEST_PORT): Trial[] {
  return (['TCP', 'UDP'] as const).map((protocol) => {
    const own = typeof port === 'number' ? port : port[protocol];
    return { what, client, protocol, address, port: own, isOwn: true, isExplained: what !== 'endpoint' };
  });
}

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
    test.end();
  }
}

const NOTHING_SENT = { from: '', to: '', protocol: null, source: null, milliseconds: null, agrees: null } as const;

/** Clients of the test are on no bridge of pods, whose packets may take a way past the rules: that fails without a packet. */
function bridgeRows({ observations }: Pick<ProcessStatus, 'observations'>): readonly SelftestRow[] {
  const bridges = observations.filter(({ kind }) => kind === 'bridge');
  return bridges.map(({ text }) => ({ what: 'pods on one bridge', result: 'failed', text, ...NOTHING_SENT }));
}

class Selftest {
  private readonly block = process.pid % SELFTEST_BLOCKS;
  private readonly node: Client = { name: 'node', space: null, sender: () => 'node' };
  private readonly skipped: SelftestRow[] = [];
  private readonly ends: (() => void)[] = [];

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
    return [...(await this.tryAll(trials, status.node)), ...bridgeRows(status), ...this.skipped];
  }

  /** Whatever was made goes; what is left when this is killed goes with the process. */
  end(): void {
    for (const end of this.ends.reverse()) end();
  }

  private async openClient(addresses: readonly SelftestAddresses[]): Promise<Client | null> {
    const link = `pmc${process.pid}`;
    const space = await this.openSpace(link, addresses, 'client', 'packets of a client outside this node');
    if (space === null) return null;
    const sender = (family: Family): string =>
      `${addresses.find((each) => each.family === family)?.client.inside ?? ''}%${link}`;
    return { name: 'client', space, sender };
  }

  /** Null: it cannot be had, which is among the rows. */
  private async openSpace(
    link: string,
    addresses: readonly SelftestAddresses[],
    end: 'client' | 'server',
    what: string,
  ): Promise<number | null> {
    try {
      const space = await this.probe.probeSpace(
        link,
        addresses.map(({ family, [end]: { inside, outside, prefix } }) => ({
          inside: packed(inside, family),
          outside: packed(outside, family),
          prefix,
        })),
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
      addresses,
      'server',
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
    return addresses.flatMap((each) => {
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

  /** Tells each client by which address it is seen. @param space null: this node's own network, on any port. */
  private async serve(space: number | null, address: IPAddress, family: Family): Promise<Ports> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).end(socket.remoteAddress ?? '');
    });
    const datagrams = createSocket(family === 'IPv4' ? 'udp4' : 'udp6');
    datagrams.on('message', (_, { address: seen, port }) => {
      datagrams.send(seen, port, seen);
    });
    const listening = Promise.all([once(server, 'listening'), once(datagrams, 'listening')]);
    const at = { address: packed(address, family), port: SELFTEST_TARGET_PORT };
    const open = async (protocol: Tested): Promise<{ readonly fd: number } | null> =>
      space === null ? null : { fd: await this.probe.probeListen(space, { protocol, ...at }) };
    server.unref().listen((await open('TCP')) ?? { host: address, port: 0 });
    datagrams.unref().bind((await open('UDP')) ?? { address });
    this.ends.push(() => {
      server.close();
      datagrams.close();
    });
    await listening;
    const bound = server.address();
    if (bound === null || typeof bound === 'string') throw new TypeError('no port');
    return { TCP: bound.port, UDP: datagrams.address().port };
  }

  /** Resolves once the kernel holds the Service of the test. */
  private async programmed(client: Client, addresses: readonly SelftestAddresses[]): Promise<void> {
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
        const trial = used ? this.trial(what, this.node, `${endpoint}/${protocol}`, false) : null;
        if (trial !== null) endpoints.set(`${endpoint}/${protocol}`, trial);
      }
    const frontends = detail.frontends.flatMap(({ key: frontend, kind, explain }) => {
      if (explain === null) {
        this.skip(`${kind} ${frontend} of ${key}`, 'no address of this node answers node ports');
        return [];
      }
      // From this node, too, which rules treat apart.
      const clients = kind === 'cluster IP' || client === null ? [this.node] : [];
      return [...(client === null ? [] : [client]), ...clients].flatMap(
        (from) => this.trial(`${kind} of ${key}`, from, explain, true) ?? [],
      );
    });
    return [...endpoints.values(), ...frontends];
  }

  /** @param to as `10.96.0.10:53/UDP`. */
  private trial(what: string, client: Client, to: string, isExplained: boolean): Trial | null {
    const [, host = '', port = '', protocol = ''] = /^\[?([^\]]+?)\]?:(\d+)\/(\w+)$/.exec(to) ?? [];
    const address = parseAddress(host);
    if (address === null || (protocol !== 'TCP' && protocol !== 'UDP')) {
      this.skip(`${what}: ${to}`, 'the test supports TCP and UDP');
      return null;
    }
    return { what, client, protocol, address, port: Number(port), isOwn: false, isExplained };
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
    return seen === selftestAddresses(this.block, family).client.inside;
  }

  /** Why it cannot be said, in a text. */
  private async explain(
    client: Client,
    family: Family,
    to: string,
    protocol: Tested,
  ): Promise<ExplainedPacket | string> {
    const query = new URLSearchParams({ from: client.sender(family), to: `${to}/${protocol}`, output: 'json' });
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
