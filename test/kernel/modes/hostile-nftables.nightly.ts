// Hostile Services in mode nftables, with those that take minutes.
import { MODE_VARIABLE } from '../../support/lab/mode.js';

process.env[MODE_VARIABLE] = 'nftables';
await import('../hostile.test.js');
