// A chain of ours that another program empties, in each mode that needs no ip_vs: repaired, and named by `status`.
// needs: nft, iptables
import t from 'tap';
import { flushedChain } from './flushed-chain.js';

for (const mode of ['nftables', 'iptables-nft', 'iptables-legacy'] as const)
  t.test(`a flushed chain is repaired and named by status, ${mode}`, (t) => flushedChain(t, mode));
