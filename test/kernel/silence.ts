import type { Lab } from '../support/lab/lab.js';

/** Nothing reaches the pod any more, and nobody is told: as when its node has lost power. */
export async function silence(lab: Lab, pod: string): Promise<void> {
  // The node still finds the pod's link address.
  const rules = 'type filter hook input priority 0; policy drop; meta l4proto ipv6-icmp accept;';
  await lab.output(pod, ['nft', '-f', '-'], `table inet silence { chain input { ${rules} }; }`);
}

export async function revive(lab: Lab, pod: string): Promise<void> {
  await lab.output(pod, ['nft', 'delete', 'table', 'inet', 'silence']);
}
