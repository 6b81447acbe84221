// The bounds that SECURITY.md and docs/admission.md name are those of the code.
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { MAX_OBJECTS } from '../packages/nodes/src/differences.js';
import { NODE_MS } from '../packages/nodes/src/look.js';
import { HEALTH_TIMEOUT_MS } from '../packages/nodes/src/proxy-asker.js';
import { MAX_NODE_PROBLEMS } from '../packages/page/src/node-answer.js';
import {
  ADDRESS_HANDSHAKES_AT_ONCE,
  ADDRESS_HANDSHAKES_PER_SECOND,
  HANDSHAKES_AT_ONCE,
  HANDSHAKES_PER_SECOND,
} from '../packages/secured/src/handshakes.js';
import { MAX_REFUSAL_BYTES, MAX_WARNING_BYTES, MAX_WARNINGS } from '../packages/webhook/src/judge.js';
import {
  BODY_DEADLINE_MS,
  MAX_BODY_BYTES,
  MAX_PENDING_BYTES,
  MAX_WAITING_BYTES,
} from '../packages/webhook/src/pages.js';
import { MAX_DEPTH, MAX_VALUES } from '../packages/webhook/src/review.js';
import { DEFAULT_BALANCE } from '../src/base/balance.js';
import { LINES_AT_ONCE, LINES_PER_SECOND } from '../src/base/line-limit.js';
import { MAX_MESSAGE_BYTES } from '../src/base/outside-text.js';
import { DEFAULT_SERVICE_LIMITS } from '../src/base/service-limits.js';
import { DEFAULT_EVENT_RATES } from '../src/config/event-rates.js';
import { LINES } from '../src/control/conflict-reports.js';
import { CHALLENGES } from '../src/control/ending-connections.js';
import { SLICE_MS } from '../src/control/planning.js';
import { MOST_ENTRIES } from '../src/control/sync-cycle.js';
import { declaredText, RECENT_SECONDS } from '../src/dataplane/nftables/schema.js';
import { MOST_DEPARTURES, NAMESPACE_DEPARTURES } from '../src/plan/known-departures.js';
import { AFFINITY_ENTRIES } from '../src/plan/frontend-limit.js';
import { MOST_PAIRS } from '../src/plan/planner.js';
import { MOST_CLIENT_ROOMS } from '../src/plan/service-plan.js';
import { ALL_CLIENTS_BURST_MS, ALL_CLIENTS_MS, CLIENT_BURST_MS, CLIENT_MS } from '../src/serve/client-shares.js';
import { MAX_CONNECTIONS as LISTENER_CONNECTIONS } from '../src/serve/listener.js';
import {
  MAX_CONNECTIONS as LOOPBACK_CONNECTIONS,
  MAX_LISTENERS,
  NAMESPACE_CONNECTIONS,
  NAMESPACE_LISTENERS,
} from '../src/serve/node-port-listeners.js';
import { MAX_CONNECTIONS as HEALTH_CHECK_CONNECTIONS } from '../src/serve/service-health.js';
import { MAX_CONNECTIONS as STATUS_CONNECTIONS } from '../src/serve/status-socket.js';
import { MAX_FRAME_BYTES } from '../src/sources/kubernetes/codec/frames.js';
import { QUEUED } from '../src/sources/kubernetes/events/event-sender.js';
import { MAX_BODY_BYTES as MAX_MANIFEST_BYTES } from '../src/sources/manifests/http-get.js';
import { boundsOf, documented, numberOf, ROWS, WITHOUT_ROW, type Bounds } from './support/bounds.js';
import { MOST_WALKED } from './support/rules-walked.js';

const KIB = 1 << 10;
const MIB = 1 << 20;
const { frontends, entries } = DEFAULT_SERVICE_LIMITS;
const EVENTS = [DEFAULT_EVENT_RATES.burst, DEFAULT_EVENT_RATES.qps];
/** The size that the kernel gives to a map of clients, which has none of ours: what is not sent is left out of a listing. */
const AFFINITY = declaredText('clients-', '{ size 65535') === '{' ? 65_535 : NaN;
/** The kernel's default (xt_recent.c), which no code of ours has. */
const IP_LIST_TOT = 100;

/** A bound that is not exported: `file NAME`. */
function of(bound: string): number {
  const [file = '', name = ''] = bound.split(' ');
  return numberOf(boundsOf(file).get(name) ?? '');
}

const HANDSHAKES: Bounds = {
  'TLS handshakes': [HANDSHAKES_PER_SECOND, HANDSHAKES_AT_ONCE],
  'TLS handshakes of one client': [ADDRESS_HANDSHAKES_PER_SECOND, ADDRESS_HANDSHAKES_AT_ONCE],
  events: EVENTS,
  'waiting events': [QUEUED],
};

const PAGES: Readonly<Record<string, Bounds>> = {
  'SECURITY.md': {
    ...HANDSHAKES,
    'frontends of a Service in one IP family': [frontends],
    'endpoints and source ranges of a Service, summed over its frontends, in one IP family': [
      entries,
      AFFINITY_ENTRIES,
    ],
    'entries of one sync of changes': [MOST_ENTRIES],
    'time of planning in one turn': [SLICE_MS],
    'rules of the dispatch that an IPv4 connection walks, mode iptables': [MOST_WALKED],
    'clients with affinity, mode nftables': [AFFINITY, MOST_CLIENT_ROOMS * AFFINITY, MOST_CLIENT_ROOMS],
    'first packets to Services with affinity, mode nftables': [AFFINITY, RECENT_SECONDS],
    'clients with affinity, mode iptables': [IP_LIST_TOT],
    'clients with affinity, mode ipvs': [],
    'slots of all Services in one IP family, mode nftables': [DEFAULT_BALANCE.slots],
    'endpoints that one plan compares for slots, in one IP family': [MOST_PAIRS / MIB],
    'slots of one table, mode nftables': [of('src/plan/types.ts MOST_SLOTS')],
    'endpoints that a table of slots shares, mode nftables': [of('src/plan/slot-table.ts MOST_TABLE_ENDPOINTS')],
    'zones that an annotation names': [of('src/sources/translate/balance.ts MOST_ZONES')],
    'removed endpoints that are remembered, in one IP family': [MOST_DEPARTURES, NAMESPACE_DEPARTURES],
    'draining endpoints that are remembered, in one IP family': [],
    'clients of removed endpoints that are reset': [CHALLENGES.perSecond, CHALLENGES.burst],
    'names and lists of objects that are kept once': [
      numberOf(/DEFAULT_BYTES = (.*)/.exec(readFileSync('src/sources/translate/intern.ts', 'utf8'))?.[1] ?? '') / MIB,
      of('src/sources/translate/intern.ts LONGEST_SHARED'),
    ],
    'frontends that went during a change of the mode': [of('src/control/stale-flows.ts MOST_GONE_EARLY')],
    'refused frontends that are counted, mode ipvs': [of('src/dataplane/ipvs/refusal-counters.ts MOST_COUNTED')],
    'endpoints with traffic that are counted between two readings': [of('src/cli/telemetry.ts MOST_WAYS')],
    'changes whose time is measured while the kernel takes none': [
      of('src/record/progress.ts MAX_CHANGES'),
      of('src/record/progress.ts MAX_TRIGGERS'),
    ],
    'changes that are traced at a time': [of('src/observe/traces/changes.ts MAX_FOLLOWED')],
    'log lines of conflicts and limits': [LINES],
    'log lines of broken objects': [LINES_AT_ONCE, LINES_PER_SECOND],
    'lines of a log file that wait for the disk': [of('src/observe/rotated-file.ts MAX_WAITING') / MIB],
    'spans that wait for the collector': [of('src/observe/traces/exporting.ts MAX_WAITING')],
    'text of a client that waits for its time': [of('src/serve/paced-reading.ts MOST_HELD_BYTES') / KIB],
    'unanswered requests of one connection': [of('src/serve/connection-limit.ts MAX_UNANSWERED')],
    'clients whose TLS handshakes are counted apart': [of('src/base/token-buckets.ts MAX_BUCKETS')],
    'clients that were last answered with success': [of('packages/secured/src/handshakes.ts MAX_ADMITTED')],
    'reviews of tokens and permissions at a time': [of('packages/secured/src/reviews.ts MAX_UNDER_WAY')],
    'explanations at a time': [of('packages/page/src/server.ts MAX_EXPLAINING')],
    'browsers that follow changes': [of('packages/page/src/live.ts MAX_CLIENTS')],
    'connections of the command `ui` to the status socket': [of('packages/page/src/forward.ts MAX_SOCKETS')],
    'a profile': [of('src/serve/profile-answer.ts MAX_SECONDS')],
    'the text of a refusal of the API server': [
      of('src/sources/kubernetes/watch/exchange.ts MAX_ERROR_BODY_BYTES') / KIB,
    ],
    'a manifest file': [of('src/sources/manifests/file-reading.ts MAX_FILE_BYTES') / MIB],
    'a manifest in YAML': [of('src/sources/manifests/parse.ts MAX_YAML_CHARS') / MIB],
    'broken objects of one manifest': [of('src/sources/manifests/parse.ts MAX_BROKEN')],
    "a node's part of a bug report": [
      of('packages/nodes/src/bugreport.ts MOST_BYTES') / MIB,
      of('packages/nodes/src/bugreport.ts MOST_BYTES_OF_MANY') / MIB,
    ],
    'text of others in a message': [MAX_MESSAGE_BYTES],
    'a frame or item of the API server': [MAX_FRAME_BYTES / MIB],
    'the answer of a manifest URL': [MAX_MANIFEST_BYTES / MIB],
    'connections to a health or metrics address': [LISTENER_CONNECTIONS],
    'connections to health check node ports': [HEALTH_CHECK_CONNECTIONS],
    'listeners for node ports on loopback': [MAX_LISTENERS, NAMESPACE_LISTENERS],
    'connections to node ports on loopback': [LOOPBACK_CONNECTIONS, NAMESPACE_CONNECTIONS],
    'connections to the status socket': [STATUS_CONNECTIONS],
    'time of the main thread for one client of the listeners': [CLIENT_MS, CLIENT_BURST_MS],
    'time of the main thread for all clients of other machines': [ALL_CLIENTS_MS, ALL_CLIENTS_BURST_MS],
    "a node's answers to the command `nodes`": [(NODE_MS + HEALTH_TIMEOUT_MS) / 1000],
    "the report of a node's proxy": [MAX_NODE_PROBLEMS, MAX_OBJECTS],
  },
  'docs/admission.md': {
    ...HANDSHAKES,
    'size of a review': [MAX_BODY_BYTES / MIB],
    'values of a review': [MAX_VALUES],
    'lists and mappings within each other in a review': [MAX_DEPTH],
    'time for its body': [BODY_DEADLINE_MS / 1000],
    'memory of incomplete reviews': [MAX_PENDING_BYTES / MIB],
    'whole reviews that wait for a step': [MAX_WAITING_BYTES / MIB],
    connections: [LISTENER_CONNECTIONS],
    'frontends of a Service in one family': [frontends],
    'source ranges of a Service, summed over its load balancer frontends': [entries],
    'entries of `ports`, `externalIPs`, `loadBalancerSourceRanges`, `ingress`': [frontends],
    'text of a rejection': [MAX_REFUSAL_BYTES],
    'warnings in an answer': [MAX_WARNINGS, MAX_WARNING_BYTES],
  },
};

for (const [page, expected] of Object.entries(PAGES))
  t.test(`${page} names the bounds that the code has`, (t) => {
    t.same(documented(page), expected);
    t.end();
  });

/** Every bound of the code, as `file NAME`. */
function allBounds(): readonly string[] {
  const files = ['src', 'packages', 'native']
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`))
    .filter((file) => /\.(?:ts|cc|h)$/.test(file) && !/\/(?:test|node_modules|dist)\//.test(file));
  return files.sort().flatMap((file) => [...boundsOf(file).keys()].map((name) => `${file} ${name}`));
}

t.test('every bound of the code has a row, or a reason to have none', (t) => {
  const all = allBounds();
  t.ok(all.length > 150, 'they are found');
  const rows = Object.entries(ROWS).flatMap(([page, bounds]) => {
    const known = documented(page);
    for (const [bound, row] of Object.entries(bounds)) t.ok(known[row], `${bound}: ${page} has "${row}"`);
    return Object.keys(bounds);
  });
  const without = Object.values(WITHOUT_ROW).flat();
  const named = new Set([...rows, ...without]);
  t.equal(named.size, rows.length + without.length, 'each is named once');
  const fileOf = (bound: string): string => bound.split(' ')[0] ?? '';
  t.same(
    all.filter((bound) => !named.has(bound) && !named.has(fileOf(bound))),
    [],
    'no bound is forgotten: test/support/bounds.ts and SECURITY.md',
  );
  const found = new Set([...all, ...all.map(fileOf)]);
  t.same(
    [...named].filter((bound) => !found.has(bound)),
    [],
    'none is named that is gone',
  );
  t.end();
});

t.test('bounds in SECURITY.md have the part of one tenant, the effect on others and the report', (t) => {
  const [, section = ''] = readFileSync('SECURITY.md', 'utf8').split('\n## Bounds\n');
  const lines = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| '));
  t.ok(lines.length > 40);
  for (const line of lines) {
    const cells = line.split('|').slice(1, -1);
    t.equal(cells.filter((cell) => cell.trim() !== '').length, 5, line.slice(0, 60));
  }
  t.end();
});
