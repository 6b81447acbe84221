// What keeps the process from reading objects or writing rules: with the reason, and the remedy that fits it.
import t from 'tap';
import type { SourceState } from '../../src/observe/metrics.js';
import { observeProcess, type ProcessFacts } from '../../src/observe/process-observations.js';

const SERVICES: SourceState = {
  source: 'services',
  synced: true,
  sinceLastEventMs: 2000,
  failures: {},
  trouble: null,
  isWatched: true,
  received: 3,
};
const WELL: ProcessFacts = {
  uptimeMs: 60_000,
  sources: [SERVICES, { source: '/etc/manifests', synced: true, sinceLastEventMs: null, failures: {} }],
  apiServer: null,
  waitingFor: [],
  refusedConfiguration: null,
  refusedSeconds: null,
  failures: [],
};

t.test('a healthy process has no observations', (t) => {
  t.same(observeProcess(WELL), []);
  t.end();
});

t.test('each API server error has its remedy, and resources with one cause are grouped', (t) => {
  for (const [trouble, remedy] of [
    ['unauthorized: 401: Unauthorized', /token or certificate/],
    ['forbidden: 403: services is forbidden', /ClusterRole system:node-proxier/],
    ['unavailable: connect ECONNREFUSED', /curl -k URL\/livez/],
    ['silent: nothing received for 180 s', /curl -k URL\/livez/],
    ['throttled: 429', /flowschemas/],
    ['undecodable: frame', /see the log of the API server/],
  ] as const) {
    const sources = ['services', 'endpointslices'].map((source) => ({ ...SERVICES, source, trouble }));
    t.match(observeProcess({ ...WELL, sources }), [
      {
        kind: 'api-server',
        severity: 'warning',
        remedy,
        text: `services, endpointslices cannot be read from the API server, what was read stays in use: ${trouble}`,
      },
    ]);
  }
  const cidrs = { ...SERVICES, source: 'servicecidrs', trouble: 'forbidden: 403' };
  t.match(
    observeProcess({ ...WELL, sources: [cidrs] }),
    [{ severity: 'note' }],
    'every Service is served without them',
  );
  t.end();
});

t.test('an unresponsive API server is observed after five seconds at the start, later at an overdue bookmark', (t) => {
  const unread = { ...SERVICES, synced: false, sinceLastEventMs: null, isWatched: false, received: 0 };
  const starting = { ...WELL, sources: [unread], waitingFor: ['kubernetes services'] };
  t.same(observeProcess({ ...starting, uptimeMs: 4999 }), []);
  t.match(observeProcess({ ...starting, uptimeMs: 5000 }), [{ text: /silent: no answer in the 5 s since the start$/ }]);
  t.same(observeProcess({ ...starting, sources: [{ ...unread, received: 1 }] }), [], 'a long list');
  t.same(observeProcess({ ...starting, waitingFor: [] }), [], 'a resource that the server does not have');
  t.same(observeProcess({ ...WELL, sources: [{ ...SERVICES, sinceLastEventMs: 99_999 }] }), []);
  t.match(observeProcess({ ...WELL, sources: [{ ...SERVICES, sinceLastEventMs: 100_000 }] }), [
    { text: /silent: nothing received for 100 s$/ },
  ]);
  t.end();
});

t.test('an API server that answers no request now is observed, with all that is read from it', (t) => {
  const slices = { ...SERVICES, source: 'endpointslices' };
  const manifests = { source: '/etc/manifests', synced: true, sinceLastEventMs: null, failures: {} };
  const apiServer = 'unavailable: 10.0.0.1:6443: no answer within 3 s';
  const observed = (...sources: readonly SourceState[]): readonly unknown[] =>
    observeProcess({ ...WELL, apiServer, sources: [...sources, manifests] });
  const text = (of: string): string => `${of} cannot be read from the API server, what was read stays in use: `;
  t.match(observed(SERVICES, slices), [
    { severity: 'warning', text: `${text('services, endpointslices')}${apiServer}`, remedy: /curl -k URL\/livez/ },
  ]);
  t.match(
    observed({ ...SERVICES, trouble: 'forbidden: 403' }, slices),
    [{ text: `${text('services')}forbidden: 403` }, { text: `${text('endpointslices')}${apiServer}` }],
    'what a resource itself is told comes first',
  );
  t.same(observed(), [], 'manifests are read without it');
  t.end();
});

t.test('rules that cannot be written are observed, families with one cause together, with a remedy', (t) => {
  const failing = (reason: string): ProcessFacts => ({
    ...WELL,
    failures: [
      { family: 'IPv4', reason },
      { family: 'IPv6', reason },
    ],
  });
  for (const [reason, remedy] of [
    ['nft: EPERM (Operation not permitted)', /CAP_NET_ADMIN/],
    [
      'nft: EPERM (Operation not permitted); another process owns the table (flags owner, netlink port 7)',
      /^end that process/,
    ],
    ['nft: EOPNOTSUPP', /docs\/kernels\.md/],
    ['ENOBUFS', /see the log/],
  ] as const)
    t.match(observeProcess(failing(reason)), [
      { kind: 'sync', text: `rules of IPv4 and IPv6 cannot be written, the existing ones stay: ${reason}`, remedy },
    ]);
  t.end();
});

t.test('a changed configuration that is refused is observed', (t) => {
  t.match(observeProcess({ ...WELL, refusedConfiguration: 'mode: no such mode', refusedSeconds: 62.5 }), [
    {
      kind: 'configuration',
      severity: 'warning',
      text: /refused for 62 s, .*: mode: no such mode$/,
      remedy: /correct the file/,
    },
  ]);
  t.end();
});
