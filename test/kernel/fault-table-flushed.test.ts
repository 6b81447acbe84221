// A chain of ours that another program empties, in each mode that needs no ip_vs: repaired, and named by `status`.
// needs: nft, iptables
import t from 'tap';
import { usually } from '../support/extent.js';
import { flushedChain } from './flushed-chain.js';

const MODES = ['nftables', 'iptables-nft', 'iptables-legacy'] as const;

for (const mode of usually(MODES.slice(0, 2), MODES))
  t.test(`a flushed chain is repaired and named by status, ${mode}`, (t) => flushedChain(t, mode));
