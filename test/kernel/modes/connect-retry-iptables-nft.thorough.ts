// needs: iptables, nft, conntrack
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'iptables-nft';
await import('../connect-retry.test.js');
