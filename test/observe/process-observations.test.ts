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
  waitingFor: [],
  refusedConfiguration: null,
  failures: [],
};

t.test('a process that reads and writes everything', (t) => {
  t.same(observeProcess(WELL), []);
  t.end();
});

t.test('each kind of answer of the API server has its remedy; resources with one reason are named together', (t) => {
  for (const [trouble, remedy] of [
    ['unauthorized: 401: Unauthorized', /token or certificate/],
    ['forbidden: 403: services is forbidden', /ClusterRole system:node-proxier/],
    ['unavailable: connect ECONNREFUSED', /curl -k URL\/livez/],
    ['silent: nothing came for 180 s', /curl -k URL\/livez/],
    ['throttled: 429', /flowschemas/],
    ['undecodable: frame', /see the log of the API server/],
  ] as const) {
    const sources = ['services', 'endpointslices'].map((source) => ({ ...SERVICES, source, trouble }));
    t.match(observeProcess({ ...WELL, sources }), [
      {
        kind: 'api-server',
        severity: 'warning',
        remedy,
        text: `services, endpointslices cannot be read from the API server, what was read before stays: ${trouble}`,
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

t.test('a server that hangs: at the start after five seconds, later when a bookmark is overdue', (t) => {
  const unread = { ...SERVICES, synced: false, sinceLastEventMs: null, isWatched: false, received: 0 };
  const starting = { ...WELL, sources: [unread], waitingFor: ['kubernetes services'] };
  t.same(observeProcess({ ...starting, uptimeMs: 4999 }), []);
  t.match(observeProcess({ ...starting, uptimeMs: 5000 }), [{ text: /silent: no answer in the 5 s since the start$/ }]);
  t.same(observeProcess({ ...starting, sources: [{ ...unread, received: 1 }] }), [], 'a long list');
  t.same(observeProcess({ ...starting, waitingFor: [] }), [], 'a resource that the server does not have');
  t.same(observeProcess({ ...WELL, sources: [{ ...SERVICES, sinceLastEventMs: 99_999 }] }), []);
  t.match(observeProcess({ ...WELL, sources: [{ ...SERVICES, sinceLastEventMs: 100_000 }] }), [
    { text: /silent: nothing came for 100 s$/ },
  ]);
  t.end();
});

t.test('rules that cannot be written: families with one reason together, and what to do by the reason', (t) => {
  const failing = (reason: string): ProcessFacts => ({
    ...WELL,
    failures: [
      { family: 'IPv4', reason },
      { family: 'IPv6', reason },
    ],
  });
  for (const [reason, remedy] of [
    ['nft: EPERM (Operation not permitted)', /CAP_NET_ADMIN/],
    ['nft: EOPNOTSUPP', /docs\/kernels\.md/],
    ['ENOBUFS', /see the log/],
  ] as const)
    t.match(observeProcess(failing(reason)), [
      { kind: 'sync', text: `rules of IPv4 and IPv6 cannot be written, those that are there stay: ${reason}`, remedy },
    ]);
  t.end();
});

t.test('a changed configuration that is refused', (t) => {
  t.match(observeProcess({ ...WELL, refusedConfiguration: 'mode: no such mode' }), [
    {
      kind: 'configuration',
      severity: 'warning',
      text: /refused, .*: mode: no such mode$/,
      remedy: /correct the file/,
    },
  ]);
  t.end();
});
