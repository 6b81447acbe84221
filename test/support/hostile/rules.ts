import type { Lab } from '../lab/lab.js';
import { configuredMode, labMode } from '../lab/mode.js';
import { ADDRESSES } from '../lab/topology.js';
import { walk } from '../rules-walked.js';
import { VICTIM } from './rows.js';

/**
 * How many rules each chain has that connections of any Service may meet, in modes nftables and ipvs. Maps and sets are found by hashes, so what a connection
 * costs is in the number of rules; times would say how busy this machine is. Virtual services are found by a hash too, of 256 buckets whatever their number
 * (IP_VS_SVC_TAB_BITS): 10,000 frontends are 40 more to compare.
 */
export async function rulesByChain(lab: Lab): Promise<ReadonlyMap<string, number>> {
  const { name, flavor } = configuredMode(labMode());
  if (name === 'iptables') return new Map();
  const counts = new Map<string, number>();
  for (const family of ['ip', 'ip6'] as const) {
    if (flavor === null) {
      // Without elements: a map of clients may have thousands.
      const listing = await lab.output('node', ['nft', '-s', '-t', 'list', 'table', family, 'kube-proxy']);
      for (const [, chain = '', text = ''] of listing.matchAll(/\tchain (\S+) \{\n(.*?)\n?\t\}\n/gs))
        counts.set(`${family} ${chain}`, text.split('\n').length);
      continue;
    }
    const saved = await lab.output('node', [`${family}tables-${flavor}-save`]);
    let table = '';
    for (const [, title, chain = ''] of saved.matchAll(/^(?:\*(\S+)|-A (\S+) .*)$/gm)) {
      const at = `${family} ${table} ${chain}`;
      if (title === undefined) counts.set(at, (counts.get(at) ?? 0) + 1);
      else table = title;
    }
  }
  return counts;
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
