import t from 'tap';
import { NO_RETRIES } from '../../src/base/conntrack-timeouts.js';
import { retryOf, retrySeconds } from '../../src/plan/retry.js';

const TIMES = { tcp: 1, dns: 2 };
const NOTHING = { connectRetry: null, udpRetry: null, affinitySeconds: null };
const HTTP = { protocol: 'TCP', port: 80 } as const;
const DNS = { protocol: 'UDP', port: 53 } as const;
const QUIC = { protocol: 'UDP', port: 443 } as const;

t.test("a frontend has its own retry time only if it differs from the node's", (t) => {
  const rows: readonly (readonly [Parameters<typeof retrySeconds>, reported: number | null, inForce: number | null])[] =
    [
      [[NOTHING, HTTP, 80, TIMES, 'all'], null, 1],
      [[NOTHING, HTTP, 30080, TIMES, 'all'], null, 1],
      [[{ ...NOTHING, connectRetry: 1 }, HTTP, 80, TIMES, 'all'], null, 1],
      [[{ ...NOTHING, connectRetry: 5 }, HTTP, 80, TIMES, 'all'], 5, 5],
      [[{ ...NOTHING, connectRetry: 0 }, HTTP, 80, TIMES, 'all'], 0, null],
      [[{ ...NOTHING, connectRetry: 5 }, DNS, 53, TIMES, 'all'], null, 2],
      [[{ ...NOTHING, connectRetry: 5 }, HTTP, 80, NO_RETRIES, 'all'], 5, 5],
      [[{ ...NOTHING, connectRetry: 0 }, HTTP, 80, NO_RETRIES, 'all'], null, null],
      [[NOTHING, DNS, 53, TIMES, 'all'], null, 2],
      // The rule for DNS goes by the port that is asked for.
      [[NOTHING, DNS, 30053, TIMES, 'all'], 2, 2],
      [[NOTHING, QUIC, 53, TIMES, 'all'], 0, null],
      [[{ ...NOTHING, udpRetry: 0 }, DNS, 53, TIMES, 'all'], 0, null],
      [[{ ...NOTHING, udpRetry: 0 }, DNS, 30053, TIMES, 'all'], null, null],
      [[NOTHING, QUIC, 443, TIMES, 'all'], null, null],
      [[{ ...NOTHING, udpRetry: 3 }, QUIC, 443, TIMES, 'all'], 3, 3],
      [[{ ...NOTHING, udpRetry: 3 }, HTTP, 80, TIMES, 'all'], null, 1],
      // Where the mode remembers clients by their first packet.
      [[{ ...NOTHING, affinitySeconds: 600 }, HTTP, 80, TIMES, 'without-affinity'], 0, null],
      [[{ ...NOTHING, affinitySeconds: 600, udpRetry: 3 }, QUIC, 443, TIMES, 'without-affinity'], null, null],
      [[NOTHING, HTTP, 80, TIMES, 'without-affinity'], null, 1],
      [[{ ...NOTHING, affinitySeconds: 600 }, HTTP, 80, TIMES, 'all'], null, 1],
      [[{ ...NOTHING, connectRetry: 3, udpRetry: 3 }, { protocol: 'SCTP', port: 80 }, 80, TIMES, 'all'], null, null],
    ];
  for (const [parameters, reported, inForce] of rows) {
    const [, { protocol }, port, times] = parameters;
    const seconds = retrySeconds(...parameters);
    t.equal(seconds, reported, JSON.stringify(parameters));
    t.equal(retryOf({ protocol, port, retrySeconds: seconds }, times), inForce, JSON.stringify(parameters));
  }
  t.end();
});
