import type { Lab } from '../lab/lab.js';
import { configuredMode, labMode } from '../lab/mode.js';
import { ADDRESSES } from '../lab/topology.js';
import { walk } from '../rules-walked.js';
import { VICTIM } from './rows.js';

/**
 * How many rules each chain has that connections of any Service may meet, in mode nftables. Maps and sets are found by hashes, so what a connection costs is
 * in the number of rules; times would say how busy this machine is.
 */
export async function rulesByChain(lab: Lab): Promise<ReadonlyMap<string, number>> {
  if (labMode() !== 'nftables') return new Map();
  const listing = await lab.output('node', ['nft', '-s', 'list', 'table', 'ip', 'kube-proxy']);
  const chains = [...listing.matchAll(/\tchain (\S+) \{\n(.*?)\n?\t\}\n/gs)];
  return new Map(chains.map(([, name = '', text = '']) => [name, text.split('\n').length]));
}

/**
 * How many rules of mode iptables a connection to the Service of others walks in the chains that are divided: where its address is looked up, and where the
 * address of its endpoint is not found.
 */
export async function rulesWalked(lab: Lab): Promise<ReadonlyMap<string, number>> {
  const { name, flavor } = configuredMode(labMode());
  if (name !== 'iptables' || flavor === null) return new Map();
  const chains = new Map<string, string[]>();
  for (const table of ['nat', 'filter', 'raw']) {
    const saved = await lab.output('node', [`iptables-${flavor}-save`, '-t', table]);
    for (const [, chain = '', rule = ''] of saved.matchAll(/^-A (\S+) (.*)$/gm)) {
      const rules = chains.get(`${table} ${chain}`) ?? [];
      rules.push(rule);
      chains.set(`${table} ${chain}`, rules);
    }
  }
  const translated = { address: ADDRESSES['pod-a'].IPv4, port: VICTIM.port };
  const ways = [
    ['nat', 'KUBE-SERVICES', ['KUBE-SVC-IP-'], VICTIM],
    ['raw', 'KUBE-RETRY-TCP', ['KUBE-RETRY-T'], VICTIM],
    ['filter', 'KUBE-SERVICES', ['KUBE-SERVICES-', 'KUBE-REF-SV-'], translated],
    ['filter', 'KUBE-EXTERNAL-SERVICES', ['KUBE-EXTERNAL-SERVICES-', 'KUBE-REF-EX-'], translated],
    ['filter', 'KUBE-PROXY-FIREWALL', ['KUBE-PROXY-FIREWALL-', 'KUBE-REF-FW-'], translated],
    ['nat', 'KUBE-SVC-HAIRPIN', ['KUBE-SVC-HAIRPIN-', 'KUBE-SVC-HP-'], translated],
  ] as const;
  return new Map(
    ways.map(([table, chain, divisions, to]) => {
      const { rules } = walk((each) => chains.get(`${table} ${each}`) ?? [], chain, to, divisions);
      return [`${table} ${chain}`, rules];
    }),
  );
}
