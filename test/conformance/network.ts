import type { Lab } from '../support/lab/lab.js';
import { NETWORK, type NetworkDescription } from '../support/lab/topology.js';

const { router } = NETWORK;
const BLACKHOLES = router?.blackholes ?? [];
const PREFIXES = {
  ip: BLACKHOLES.filter(({ to }) => !to.includes(':')),
  ip6: BLACKHOLES.filter(({ to }) => to.includes(':')),
};

/** The laboratory's network. Its router answers every packet: by default the kernel limits ICMP errors. */
export const NETWORK_OF_CASES: NetworkDescription = {
  ...NETWORK,
  router: { ...router, sysctls: { 'net/ipv4/icmp_ratemask': 0, 'net/ipv6/icmp/ratemask': '127' } },
};

/**
 * Has the router refuse what the node lets through for addresses of Services, so that escaping and dropped packets differ. A route that prohibits them would
 * answer each sender once a second (error_cost of ip-sysctl.rst, which belongs to the whole machine).
 */
export async function refuseEscapes(lab: Lab): Promise<void> {
  const rules = Object.entries(PREFIXES).map(
    ([family, prefixes]) =>
      `iifname "eth0" ${family} daddr { ${prefixes.map(({ to }) => to).join(', ')} } reject with icmpx admin-prohibited`,
  );
  const chain = `chain escapes { type filter hook prerouting priority 0; ${rules.join('; ')}; }`;
  await lab.output('router', ['nft', '-f', '-'], `table inet gateway {\n${chain}\n}\n`);
}
