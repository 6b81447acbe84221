// needs: iptables, ip_vs, conntrack
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'ipvs-legacy';
await import('../others-tracking.test.js');
