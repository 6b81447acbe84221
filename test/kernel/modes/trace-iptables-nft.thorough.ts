// needs: iptables
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'iptables-nft';
await import('../trace.test.js');
