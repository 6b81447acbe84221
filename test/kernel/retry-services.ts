import { dualStack } from '../support/lab/packet-table.js';

/** Ports whose unanswered attempts are balanced anew. */
export const PORTS = [
  { name: 'web', port: 80 },
  { name: 'dns', port: 53, protocol: 'UDP' as const },
];

/** A Service by the node's times, and one by times of its own. */
export const OBJECTS = [
  ...dualStack('web', { number: 41, ports: PORTS, endpoints: ['remote-a'] }),
  ...dualStack('patient', {
    number: 42,
    ports: PORTS,
    endpoints: ['remote-a'],
    annotations: { 'pointsman.dev/connect-retry': '3s', 'pointsman.dev/udp-retry': '5s' },
  }),
];

/** Leaves what the sysctls are to the test. */
export const CONFIG = { conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' } };
