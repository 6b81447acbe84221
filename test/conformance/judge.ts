import { FAMILIES, type Family } from '../../src/base/ip.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, Lab, type Closable } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { node, serviceCIDR, type Manifest } from '../support/lab/objects.js';
import { checkRows } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy, type ProxyOptions, type ProxyScope } from '../support/lab/proxy.js';
import { PREFIXES } from '../support/lab/topology.js';
import { Allocation } from './addresses.js';
import type { Act, AddressAct, Case, ObjectSpec } from './case.js';
import { rowsOf, serversOf, type FlowRow } from './flows.js';
import { NETWORK_OF_CASES, refuseEscapes } from './network.js';
import { manifests } from './objects.js';
import { PLACES, type Place } from './places.js';

const SERVICE_CIDR = serviceCIDR('kubernetes', [PREFIXES.services.IPv4, PREFIXES.services.IPv6]);
/** Where clients are that have to get answers through the node which translated their question. */
const CLIENTS = { IPv4: '203.0.113.0/24', IPv6: '2001:db8:203::/64' } as const;

const ROWS_AT_ONCE = 48;

/** Counts outcomes, and lives as long as a case: a test of tap, or main.ts. */
export interface Judgement extends ProxyScope {
  equal(found: string, wanted: string, message: string): unknown;
  test(name: string, judged: (t: Judgement) => Promise<void>): Promise<unknown>;
}

export interface Choice {
  readonly mode: LabMode;
  /** A program with kube-proxy's command line that is judged in place of ours; it reads objects from an API server. */
  readonly program?: string;
  /** Environment variables of our program. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A case with what it has of the run. */
interface Placed {
  readonly each: Case;
  readonly allocation: Allocation;
}

/**
 * Runs cases in one mode: those that share a process in rounds, the first step of all, then the second of all; then the others one by one.
 * Each outcome is one assertion.
 */
export async function judge(t: Judgement, cases: readonly Case[], choice: Choice): Promise<void> {
  const placed = cases.map((each, index): Placed => ({ each, allocation: new Allocation(index) }));
  const lab = await laboratory(t, cases, choice.mode);
  const shared = placed.filter(({ each }) => each.own === undefined);
  if (shared.length > 0)
    await t.test('cases of one process', (t) => judgeTogether(t, { lab, ...choice, options: {} }, shared));
  for (const one of placed.filter(({ each }) => each.own !== undefined))
    await t.test(`${one.each.id}: ${one.each.title}`, async (t) => {
      const { config = {}, nodeAddresses = 'node', podCIDRs, after = [] } = one.each.own ?? {};
      t.teardown(async () => {
        for (const act of after) await perform(act, lab, one);
      });
      const options = { config, node: nodeAt(nodeAddresses, podCIDRs) };
      await judgeTogether(t, { lab, ...choice, options }, [one]);
    });
}

/** The surroundings of a process and its cases. */
interface Scene extends Choice {
  readonly lab: Lab;
  readonly options: ProxyOptions;
}

/** With every server that a case asks for, each once. */
async function laboratory(t: Judgement, cases: readonly Case[], mode: LabMode): Promise<Lab> {
  const lab = await Lab.start(t, NETWORK_OF_CASES);
  await refuseEscapes(lab, mode);
  for (const family of FAMILIES) {
    await lab.addPodAddress('pod-c', PLACES.visitor[family]);
    await lab.addRoute('remote-node', CLIENTS[family], PLACES.node[family]);
  }
  const servers = new Map(cases.flatMap(serversOf).map((server) => [server.join(' '), server]));
  await Promise.all(
    [...servers.values()].flatMap(([place, port, protocol]) =>
      FAMILIES.map((family) => lab.serve(place, endpoint(PLACES[place][family], port), protocol)),
    ),
  );
  return lab;
}

async function judgeTogether(
  t: Judgement,
  { lab, mode, program, env = {}, options }: Scene,
  cases: readonly Placed[],
): Promise<void> {
  const rounds = Math.max(...cases.map(({ each }) => each.steps.length));
  const held: Closable[] = [];
  await lab.output('node', ['conntrack', '-F']);
  let proxy: Proxy | null = null;
  for (let round = 0; round < rounds; round++) {
    const current = cases.filter(({ each }) => each.steps.length > round);
    for (const one of current) for (const act of one.each.steps[round]?.acts ?? []) await perform(act, lab, one, proxy);
    const objects = [
      SERVICE_CIDR,
      ...current.flatMap(({ each, allocation }) => manifests(each.id, allocation, objectsAt(each, round))),
    ];
    if (proxy === null) {
      const peer = program === undefined ? {} : { program, cluster: await ControlPlane.start(t, lab) };
      proxy = await Proxy.start(t, lab, { ...options, ...peer, env, mode, objects });
      await proxy.consistent();
    } else await proxy.apply(objects);
    const rows = current.flatMap(({ each, allocation }) =>
      rowsOf(each, each.steps[round]?.flows ?? [], objectsAt(each, round), allocation, mode),
    );
    const state = rounds === 1 ? '' : `step ${round + 1}`;
    // The kernel draws source ports when it masquerades, and gives a later connection of the node itself another port where its own is taken.
    const isHidden = ({ expect }: FlowRow): boolean => expect.includes('masqueraded');
    const ordered = [...rows.filter((row) => !isHidden(row)), ...rows.filter(isHidden)];
    // In parts: test/run.ts ends what prints nothing for long, and an emulated machine takes seconds for each.
    for (let from = 0; from < ordered.length; from += ROWS_AT_ONCE)
      await checkRows(t, lab, ordered.slice(from, from + ROWS_AT_ONCE), state);
    const kept = rows.filter(({ hold }) => hold);
    held.push(...(await Promise.all(kept.map(({ from, to, protocol = 'TCP' }) => lab.open({ from, to, protocol })))));
  }
  await Promise.all(held.map((each) => each.close()));
}

async function perform(act: Act, lab: Lab, { each, allocation }: Placed, proxy: Proxy | null = null): Promise<void> {
  if ('restart' in act) await proxy?.restart();
  else if ('nodeAddresses' in act) proxy?.replaceNode(nodeAt(act.nodeAddresses, each.own?.podCIDRs));
  else if ('run' in act) await lab.output(act.in, act.run, act.input);
  else
    for (const address of FAMILIES.flatMap((family) => addressesOf(act.address, family, each, allocation)))
      await (act.add ? lab.addAddress(act.to, act.link, address) : lab.removeAddress(act.to, act.link, address));
}

/** As prefixes of one address. */
function addressesOf(
  address: AddressAct['address'],
  family: Family,
  { steps }: Case,
  allocation: Allocation,
): readonly string[] {
  const length = family === 'IPv4' ? 32 : 128;
  if (!('balancersOf' in address)) return [`${address[family]}/${length}`];
  const { balancersOf } = address;
  const counts = steps.flatMap(({ objects = [] }) =>
    objects.map((spec) => ('service' in spec && spec.service === balancersOf ? (spec.balancers ?? 0) : 0)),
  );
  return Array.from(
    { length: Math.max(...counts) },
    (_, index) => `${allocation.address(balancersOf, 'balancer', index + 1, family)}/${length}`,
  );
}

function nodeAt(place: Place, podCIDRs: readonly string[] | undefined): Manifest {
  return node(NODE_NAME, { addresses: Object.values(PLACES[place]), ...(podCIDRs === undefined ? {} : { podCIDRs }) });
}

/** The objects of a step: its own, or those of the last step before it that has some. */
function objectsAt({ steps }: Case, round: number): readonly ObjectSpec[] {
  return steps.slice(0, round + 1).findLast(({ objects }) => objects !== undefined)?.objects ?? [];
}
