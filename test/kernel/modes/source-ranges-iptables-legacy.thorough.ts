// needs: iptables
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'iptables-legacy';
await import('../source-ranges.test.js');
