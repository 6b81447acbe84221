import { descriptorOf } from '../../base/descriptor.js';
import type { Claim, ClaimOptions } from '../host.js';
import { claimNetwork } from '../network-claim.js';

/**
 * Claims the network by an abstract Unix socket (unix(7)). Each network namespace has names of its own, whatever files its processes see, and the kernel
 * frees a name with the process that has it. Every user may listen on one. So only a process of root, or of this process's own user, counts as a proxy:
 * others could keep a node without rules.
 */
export async function claimNetworkNamespace({ identity, peer }: ClaimOptions): Promise<Claim | null> {
  const names = peer();
  const name = names.peerName();
  if (name === '') return null;
  return await claimNetwork({
    path: `\0${name}`,
    identity,
    strangerAt: (socket) => {
      const user = names.peerUser(descriptorOf(socket) ?? 0);
      return user === null || user === 0 || user === process.getuid?.()
        ? null
        : `a process of user ${user}, which is no proxy, listens where proxies do`;
    },
  });
}
