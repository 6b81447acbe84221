import { FAMILIES } from '../../src/base/ip.js';
import type { Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { NETWORK, type NetworkDescription } from '../support/lab/topology.js';

const { router } = NETWORK;
const DESTINATIONS = (router?.blackholes ?? []).map(({ to }) => to);
const PREFIXES = {
  IPv4: DESTINATIONS.filter((to) => !to.includes(':')),
  IPv6: DESTINATIONS.filter((to) => to.includes(':')),
};
const XTABLES = {
  IPv4: ['-4', 'iptables-legacy-restore', 'icmp-admin-prohibited'],
  IPv6: ['-6', 'ip6tables-legacy-restore', 'icmp6-adm-prohibited'],
} as const;

/** The laboratory's network. Its router answers every packet: by default the kernel limits ICMP errors. */
export const NETWORK_OF_CASES: NetworkDescription = {
  ...NETWORK,
  router: { ...router, sysctls: { 'net/ipv4/icmp_ratemask': 0, 'net/ipv6/icmp/ratemask': '127' } },
};

/**
 * Has the router refuse what the node lets through for addresses of Services, so that escaping and dropped packets differ. A route that prohibits them would
 * answer each sender once a second (error_cost of ip-sysctl.rst, which belongs to the whole machine).
 */
export async function refuseEscapes(lab: Lab, mode: LabMode): Promise<void> {
  await (mode.endsWith('-legacy') ? refuseByXtables(lab) : refuseByNftables(lab));
}

async function refuseByNftables(lab: Lab): Promise<void> {
  const rules = FAMILIES.map((family) => {
    const name = family === 'IPv4' ? 'ip' : 'ip6';
    return `iifname "eth0" ${name} daddr { ${PREFIXES[family].join(', ')} } reject with icmpx admin-prohibited`;
  });
  const chain = `chain escapes { type filter hook prerouting priority 0; ${rules.join('; ')}; }`;
  await lab.output('router', ['nft', '-f', '-'], `table inet gateway {\n${chain}\n}\n`);
}

/** A kernel may have these tables alone. REJECT is for packets that have a way. */
async function refuseByXtables(lab: Lab): Promise<void> {
  for (const family of FAMILIES) {
    const [option, restore, reject] = XTABLES[family];
    const rules = PREFIXES[family].map((to) => `-A FORWARD -i eth0 -d ${to} -j REJECT --reject-with ${reject}`);
    await lab.output('router', [restore], `*filter\n${rules.join('\n')}\nCOMMIT\n`);
    for (const to of PREFIXES[family]) {
      await lab.output('router', ['ip', option, 'rule', 'add', 'iif', 'eth0', 'to', to, 'lookup', '100', 'pref', '1']);
      await lab.output('router', ['ip', option, 'route', 'add', to, 'dev', 'eth1', 'table', '100']);
    }
  }
}
