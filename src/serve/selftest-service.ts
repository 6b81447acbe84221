import { Readable } from 'node:stream';
import { isLoopback, familyOf, parseAddress, prefixContains, type IPAddress, type IPPrefix } from '../base/ip.js';
import { frontendKey } from '../plan/frontend-key.js';
import { familiesCarried } from '../observe/bridges.js';
import { podNetworks } from './observed-node.js';
import type { FamilyView, RunningProcess } from './running-process.js';
import {
  bridgedRows,
  SELFTEST_BLOCKS,
  SELFTEST_LONGEST_MS,
  SELFTEST_NAMESPACE,
  selftestAddresses,
  selftestEndpoint,
  selftestRows,
  type SelftestEndpoint,
  type SelftestScene,
} from '../control/selftest-scene.js';
import type { StatusAnswer } from './status-socket.js';

/** Of a node's ports by default. */
const FIRST_NODE_PORT = 30_000;
const NODE_PORTS = 2768;

/**
 * Serves a Service of its own for a test, for as long as the one who asks stays connected: it goes with the connection, however that ends. What a killed
 * process leaves of it in the kernel goes as anything that is not in the plan.
 *
 * @param given addresses of this node that answer in place of the usual endpoints; only their families are served.
 */
export async function lendService(
  running: RunningProcess,
  block: number,
  given: readonly SelftestEndpoint[] = [],
): Promise<StatusAnswer> {
  // Read before all else: what follows goes without a pause.
  const bridge = given.length > 0 ? null : await bridgeOfPods(running);
  const { snapshot, families, host } = running;
  if (!snapshot.ready) return problem(`the process is still reading ${running.waitingFor().join(', ')}`);
  if (!Number.isInteger(block) || block < 0 || block >= SELFTEST_BLOCKS)
    return problem(`block: must be less than ${SELFTEST_BLOCKS}`);
  const name = `test-${block}`;
  if (snapshot.service(`${SELFTEST_NAMESPACE}/${name}`) !== undefined)
    return problem(`another test has the addresses of block ${block}: try again`);
  const nodePort = freeNodePort(families, block);
  if (nodePort === null) return problem('no node port is free');
  const local = host.localAddresses();
  const stranger = given.find(({ address }) => !local.includes(address));
  if (stranger !== undefined) return problem(`endpoint: ${stranger.address} is no address of this node`);
  const addresses = families
    .filter(({ family }) => given.length === 0 || given.some((each) => each.family === family))
    .map(({ family }) => selftestAddresses(block, family));
  const endpoints = given.length === 0 ? addresses.map(selftestEndpoint) : given;
  const scene: SelftestScene = {
    service: `${SELFTEST_NAMESPACE}/${name}`,
    nodePort,
    bridge,
    families: families.map(({ family, table }) => ({
      family,
      nodeAddress:
        local.find(
          (address) => familyOf(address) === family && answersNodePorts(address, table.node.nodePortPrefixes),
        ) ?? null,
    })),
  };
  const { nodeName } = running.planned();
  const bridged = addresses.filter(({ family }) => bridge?.families.includes(family) === true);
  const takeBack = running.lend([
    ...selftestRows(name, addresses, endpoints, nodePort, nodeName),
    ...(bridged.length === 0 ? [] : bridgedRows(name, bridged, nodeName)),
  ]);
  const stream = new Readable({
    read: () => undefined,
    destroy: (error, done) => {
      clearTimeout(limit);
      takeBack();
      done(error);
    },
  });
  const limit = setTimeout(() => stream.destroy(), SELFTEST_LONGEST_MS).unref();
  stream.push(`${JSON.stringify(scene)}\n`);
  return { status: 200, stream };
}

/** The one that loses answers, if there is one. */
async function bridgeOfPods(running: RunningProcess): Promise<SelftestScene['bridge']> {
  const facts = await running.host.networkFacts();
  const pods = podNetworks(running);
  const served = running.families.map(({ family }) => family);
  const bridges = (facts?.bridges ?? []).flatMap(({ name, ...bridge }) => {
    const families = familiesCarried({ name, ...bridge }, served, pods);
    return families.length === 0 ? [] : [{ name, families, loses: families.some((each) => !bridge.filters[each]) }];
  });
  const { name, families } = bridges.find(({ loses }) => loses) ?? bridges[0] ?? {};
  return name === undefined || families === undefined ? null : { name, families };
}

/** Of `address,port of TCP,port of UDP`. A text: what is wrong with it. */
export function readEndpoint(text: string): SelftestEndpoint | string {
  const [host = '', ...numbers] = text.split(',');
  const address = parseAddress(host);
  const [TCP = NaN, UDP = NaN] = numbers.map(Number);
  const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65_536;
  if (address === null || !isPort(TCP) || !isPort(UDP))
    return `endpoint: ${JSON.stringify(text.slice(0, 100))}: not an address and two ports`;
  return { family: familyOf(address), address, ports: { TCP, UDP } };
}

function problem(text: string): StatusAnswer {
  return { status: 400, text };
}

function answersNodePorts(address: IPAddress, prefixes: readonly IPPrefix[] | null): boolean {
  if (isLoopback(address) || address.startsWith('fe80:')) return false;
  return (
    prefixes === null ||
    prefixes.some((prefix) => familyOf(prefix) === familyOf(address) && prefixContains(prefix, address))
  );
}

function freeNodePort(families: readonly FamilyView[], start: number): number | null {
  for (let step = 0; step < NODE_PORTS; step++) {
    const port = FIRST_NODE_PORT + ((start + step) % NODE_PORTS);
    const isTaken = families.some(({ table }) =>
      (['TCP', 'UDP'] as const).some((protocol) => table.frontend(frontendKey(null, port, protocol)) !== undefined),
    );
    if (!isTaken) return port;
  }
  return null;
}
