// What one who may write Services can do to a node in mode ipvs.
// needs: iptables, ip_vs
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'ipvs-legacy';
await import('../hostile.test.js');
