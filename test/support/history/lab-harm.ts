import { CHAIN } from '../../../src/dataplane/ipvs/names.js';
import type { SeededRandom } from '../random.js';
import type { Lab } from '../lab/lab.js';
import { configuredMode, type LabMode } from '../lab/mode.js';

/** What somebody does to our rules with nft, iptables, ipset, ipvsadm or ip: one deed of many. What is not there cannot be harmed. */
export async function harm(lab: Lab, mode: LabMode, random: SeededRandom): Promise<void> {
  const { name, flavor } = configuredMode(mode);
  const deed = flavor === null ? await ofNft(lab, random) : await ofPrograms(lab, name, flavor, random);
  if (deed !== null) await lab.run('node', deed);
}

type Deed = readonly string[] | null;

async function ofNft(lab: Lab, random: SeededRandom): Promise<Deed> {
  const family = random.pick(['ip', 'ip6'] as const);
  const table = [family, 'kube-proxy'];
  const listed = await lab.run('node', ['nft', 'list', 'table', ...table]);
  const names = (type: string): readonly string[] =>
    [...listed.stdout.matchAll(new RegExp(`^\\t${type} (\\S+) {$`, 'gm'))].map(([, each]) => each ?? '');
  const [chains, maps] = [names('chain'), names('map')];
  if (chains.length === 0) return null;
  const chain = random.pick(chains);
  return random.pick([
    ['nft', 'delete', 'table', ...table],
    ['nft', 'flush', 'table', ...table],
    ['nft', 'flush', 'chain', ...table, chain],
    ['nft', 'add', 'rule', ...table, chain, 'counter', 'return'],
    ['nft', 'add', 'chain', ...table, 'service-ABCDEFGH-default/gone'],
    ...maps.map((map) => ['nft', 'flush', 'map', ...table, map]),
  ]);
}

/** Chains of the mode's own. Those of another mode go when a process starts, not while it runs. */
const GONE = {
  iptables: { nat: 'KUBE-SVC-AAAAAAAAAAAAAAAA', filter: 'KUBE-SERVICES-9' },
  ipvs: { nat: CHAIN.loadBalancer, filter: CHAIN.sourceRanges },
} as const;

async function ofPrograms(lab: Lab, mode: string, flavor: 'nft' | 'legacy', random: SeededRandom): Promise<Deed> {
  const table = random.pick(['nat', 'filter'] as const);
  const program = random.pick([`iptables-${flavor}`, `ip6tables-${flavor}`]);
  const iptables = (...parameters: readonly string[]): readonly string[] => [program, '-w', '-t', table, ...parameters];
  const saved = (await lab.run('node', [`${program}-save`, '-t', table])).stdout;
  const chains = [...saved.matchAll(/^:(KUBE-\S+)/gm)].map(([, each]) => each ?? '');
  if (chains.length === 0) return null;
  const chain = random.pick(chains);
  const deeds = [
    iptables('-F'),
    iptables('-F', chain),
    iptables('-D', chain, '1'),
    iptables('-I', chain, '-j', 'RETURN'),
    iptables('-N', (mode === 'ipvs' ? GONE.ipvs : GONE.iptables)[table]),
  ];
  if (mode !== 'ipvs') return random.pick(deeds);
  const sets = [...(await lab.run('node', ['ipset', 'list', '-n'])).stdout.matchAll(/^KUBE-\S+$/gm)];
  return random.pick([
    ...deeds,
    ['ipvsadm', '-C'],
    ['ip', 'link', 'del', 'kube-ipvs0'],
    ['ip', 'address', 'flush', 'dev', 'kube-ipvs0'],
    ...sets.map(([set]) => ['ipset', 'flush', set]),
  ]);
}
