// The bounds that SECURITY.md and docs/admission.md name are those of the code.
import { readFileSync } from 'node:fs';
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
import { MAX_MESSAGE_BYTES } from '../src/base/outside-text.js';
import { DEFAULT_SERVICE_LIMITS } from '../src/base/service-limits.js';
import { DEFAULT_EVENT_RATES } from '../src/config/event-rates.js';
import { LINES } from '../src/control/conflict-reports.js';
import { SLICE_MS } from '../src/control/planning.js';
import { MOST_ENTRIES } from '../src/control/sync-cycle.js';
import { declaredText, RECENT_SECONDS } from '../src/dataplane/nftables/schema.js';
import { AFFINITY_ENTRIES } from '../src/plan/frontend-limit.js';
import { MOST_CLIENT_ROOMS } from '../src/plan/service-plan.js';
import { ALL_CLIENTS_BURST_MS, ALL_CLIENTS_MS, CLIENT_BURST_MS, CLIENT_MS } from '../src/serve/client-shares.js';
import { MAX_CONNECTIONS as LISTENER_CONNECTIONS } from '../src/serve/listener.js';
import { MAX_CONNECTIONS as HEALTH_CHECK_CONNECTIONS } from '../src/serve/service-health.js';
import { MAX_CONNECTIONS as STATUS_CONNECTIONS } from '../src/serve/status-socket.js';
import { MAX_FRAME_BYTES } from '../src/sources/kubernetes/codec/frames.js';
import { QUEUED } from '../src/sources/kubernetes/events/event-sender.js';
import { MAX_BODY_BYTES as MAX_MANIFEST_BYTES } from '../src/sources/manifests/http-get.js';
import { MOST_WALKED } from './support/rules-walked.js';

const MIB = 1 << 20;
const { frontends, entries } = DEFAULT_SERVICE_LIMITS;
const EVENTS = [DEFAULT_EVENT_RATES.burst, DEFAULT_EVENT_RATES.qps];
/** The size that the kernel gives to a map of clients, which has none of ours: what is not sent is left out of a listing. */
const AFFINITY = declaredText('clients-', '{ size 65535') === '{' ? 65_535 : NaN;
/** The kernel's default (xt_recent.c), which no code of ours has. */
const IP_LIST_TOT = 100;

/** The numbers of each row of a table, by its first cell. */
type Bounds = Readonly<Record<string, readonly number[]>>;

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
    'log lines of conflicts and limits': [LINES],
    'text of others in a message': [MAX_MESSAGE_BYTES],
    'a frame or item of the API server': [MAX_FRAME_BYTES / MIB],
    'the answer of a manifest URL': [MAX_MANIFEST_BYTES / MIB],
    'connections to a health or metrics address': [LISTENER_CONNECTIONS],
    'connections to health check node ports': [HEALTH_CHECK_CONNECTIONS],
    'connections to the status socket': [STATUS_CONNECTIONS],
    'time of the main thread for one client of the listeners': [CLIENT_MS, CLIENT_BURST_MS],
    'time of the main thread for all clients of other machines': [ALL_CLIENTS_MS, ALL_CLIENTS_BURST_MS],
    "a node's answers to the command `nodes`": [(NODE_MS + HEALTH_TIMEOUT_MS) / 1000],
    "the report of a node's proxy": [MAX_NODE_PROBLEMS, MAX_OBJECTS],
  },
  'docs/admission.md': {
    ...HANDSHAKES,
    'size of a review': [MAX_BODY_BYTES / MIB],
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

/** The table of bounds of a page. Numbers in code, such as those of flags' names, do not count. */
function documented(page: string): Bounds {
  const [, section = ''] = readFileSync(page, 'utf8').split('\n## Bounds\n');
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| (.*?) \| (.*?) \|/gm)].filter(
    ([, first = '']) => !/^(?:Resource|-+)$/.test(first),
  );
  return Object.fromEntries(
    rows.map(([, resource = '', bound = '']) => {
      const numbers = bound.replaceAll(/`[^`]*`/g, '').match(/\d[\d,.]*/g) ?? [];
      return [resource, numbers.map((text) => Number(text.replace(/[,.]$/, '').replaceAll(',', '')))];
    }),
  );
}

for (const [page, expected] of Object.entries(PAGES))
  t.test(`${page} names the bounds that the code has`, (t) => {
    t.same(documented(page), expected);
    t.end();
  });
