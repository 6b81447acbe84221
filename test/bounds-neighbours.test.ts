// Each bound of SECURITY.md: one tenant or client takes all that it can have, and what a neighbour gets then.
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { MAX_CONNECTIONS as LISTENER_CONNECTIONS } from '../src/serve/listener.js';
import { MAX_CONNECTIONS as HEALTH_CHECK_CONNECTIONS } from '../src/serve/service-health.js';
import { documented } from './support/bounds.js';
import * as fill from './support/full-bounds.js';

/** Fills the bound for one, and asserts what a neighbour gets. */
type Fill = (t: Test) => void | Promise<void>;
/** A test elsewhere does so: its file, and its title as it is written there, or the name of a case. */
type Elsewhere = readonly [file: string, title: string];

const LISTENER = 'test/serve/listener.test.ts';
const HOSTILE = 'test/support/hostile/rows.ts';
const DEPARTURES = 'test/plan/departures.test.ts';
const EVENTS = 'test/sources/kubernetes/event-sender.test.ts';
const CONTENT = 'test/sources/manifest-content.test.ts';
const NODES = 'packages/nodes/test/nodes.test.ts';

const SHOWN: Readonly<Record<string, Fill | Elsewhere>> = {
  'frontends of a Service in one IP family': [HOSTILE, '1,000 ports × 1,000 external IPs'],
  'endpoints and source ranges of a Service, summed over its frontends, in one IP family': [
    HOSTILE,
    '100 ports × 5,000 endpoints',
  ],
  'entries of one sync of changes': [
    'test/control/divided-plans.test.ts',
    'a small change overtakes large ones, and these are planned one after the other',
  ],
  'time of planning in one turn': [
    'test/control/planning.test.ts',
    'a long plan yields to the event loop, and is sent whole',
  ],
  'rules of the dispatch that an IPv4 connection walks, mode iptables': [
    'test/dataplane/iptables/rules-walked.test.ts',
    'addresses chosen against one IPv4 address add 16 jumps for each nibble',
  ],
  'clients with affinity, mode nftables': [
    'test/dataplane/nftables/affinity.test.ts',
    'a full client map of one Service takes no clients from another',
  ],
  'first packets to Services with affinity, mode nftables': [
    'test/kernel/affinity-bounds.test.ts',
    'a full memory of first packets moves no client',
  ],
  'slots of all Services in one IP family, mode nftables': fill.fillSlots,
  'endpoints that one plan compares for slots, in one IP family': [
    'test/plan/slot-tables.test.ts',
    'while very many slots change, each plan has the small changes of others and a part of the tables',
  ],
  'slots of one table, mode nftables': [
    'test/plan/slot-tables.test.ts',
    'while very many slots change, each plan has the small changes of others and a part of the tables',
  ],
  'endpoints that a table of slots shares, mode nftables': [
    'test/plan/balance.test.ts',
    'slots are limited per endpoint, per Service and per node',
  ],
  'zones that an annotation names': ['test/sources/service.test.ts', 'annotations about zones are read'],
  'removed endpoints that are remembered, in one IP family': [
    DEPARTURES,
    'a flood of removed endpoints takes the places of half, what has none is due at once, and others have room',
  ],
  'draining endpoints that are remembered, in one IP family': [
    DEPARTURES,
    'endpoints that drain for a day take no place of removals, and no more than half of their own',
  ],
  'clients of removed endpoints that are reset': [
    'test/control/ending-connections.test.ts',
    'ten thousand connections are reset at 5,000 clients a second, each client asked at most twice',
  ],
  'names and lists of objects that are kept once': fill.fillNames,
  'frontends that went during a change of the mode': [
    'test/control/stale-flows.test.ts',
    'removed frontends are remembered while rules of another mode are in the kernel',
  ],
  'refused frontends that are counted, mode ipvs': [
    'test/dataplane/ipvs/refused.test.ts',
    'a half full set of refused packets is emptied, and counting goes on',
  ],
  'endpoints with traffic that are counted between two readings': [
    'test/native/flow-counter.test.ts',
    'the flow counter has a limit of rows, and sums up the rest',
  ],
  'listeners for node ports on loopback': fill.fillLoopbackListeners,
  'connections to node ports on loopback': fill.fillLoopbackConnections,
  'the text of a refusal of the API server': fill.fillRefusal,
  'broken objects of one manifest': fill.fillBroken,
  'changes whose time is measured while the kernel takes none': [
    'test/record/progress.test.ts',
    'a change beyond the remembered ones is pending while it is left to a later plan',
  ],
  'changes that are traced at a time': [
    'test/observe/trace-changes.test.ts',
    'tracing the changes of one turn has linear cost, and unsampled ones cost nothing',
  ],
  'log lines of broken objects': [
    'test/sources/kubernetes/reflector-failures.test.ts',
    'an object that is broken in another way in each version does not fill the log',
  ],
  'log lines of conflicts and limits': [
    'test/control/conflict-reports.test.ts',
    'a Service in conflict with thousands of others does not fill the log',
  ],
  events: [EVENTS, 'events are sent at the rate of the flags'],
  'waiting events': [
    EVENTS,
    'events recorded before the connection are sent first, and those over the limit are dropped',
  ],
  'text of others in a message': fill.fillMessage,
  'lines of a log file that wait for the disk': [
    'test/observe/rotated-file.test.ts',
    'a client that writes too much leaves room for lines of others',
  ],
  'connections to a health or metrics address': fill.fillConnections(LISTENER_CONNECTIONS),
  'connections to health check node ports': fill.fillConnections(HEALTH_CHECK_CONNECTIONS),
  'time of the main thread for one client of the listeners': fill.fillOneClient,
  'time of the main thread for all clients of other machines': fill.fillAllClients,
  'text of a client that waits for its time': [
    LISTENER,
    'a client that has used its share is closed if it has sent much, and gets no more connections',
  ],
  'unanswered requests of one connection': [
    LISTENER,
    'pipelined requests are answered in order, and too many end the connection',
  ],
  'TLS handshakes': fill.fillHandshakes,
  'TLS handshakes of one client': fill.fillHandshakesOfOne,
  'clients whose TLS handshakes are counted apart': fill.fillClientsApart,
  'clients that were last answered with success': fill.fillAdmitted,
  'reviews of tokens and permissions at a time': [
    'packages/secured/test/access.test.ts',
    'rate limits hold for requests from many addresses and for many paths',
  ],
  'explanations at a time': ['packages/page/test/ui.test.ts', 'the page explains a packet step by step'],
  'browsers that follow changes': [
    'packages/page/test/ui-live.test.ts',
    'the event stream limits the number of clients',
  ],
  'a profile': [
    'test/serve/metrics-server.test.ts',
    'profiles have the format of pprof, one at a time, with names and no contents',
  ],
  'a frame or item of the API server': [
    'test/sources/kubernetes/codec-faults.test.ts',
    'a watch frame has at most 16 MB',
  ],
  'the answer of a manifest URL': [
    'test/sources/manifest-url.test.ts',
    'failing answers of a manifest URL keep the last state, and are logged once, as is the recovery',
  ],
  'a manifest file': [
    'test/sources/manifest-troubles.test.ts',
    'a manifest that is no file, or has no end, delays no source',
  ],
  'a manifest in YAML': [CONTENT, 'YAML beyond the limit is refused, JSON is not'],
  "a node's answers to the command `nodes`": [NODES, 'nodes gives up a node whose answer does not end, and names it'],
  "the report of a node's proxy": [NODES, 'nodes reports hostile nodes by name, and all others as usual'],
  "a node's part of a bug report": [NODES, 'a bug report keeps nodes of long names apart, and takes 8 MiB of each'],
  'spans that wait for the collector': [
    'test/cli/tracing.test.ts',
    'an absent or slow trace collector costs counted spans, and at most a second at the end',
  ],
};

/** Bounds that no test fills, by the reason. */
const UNSHOWN: Readonly<Record<string, readonly string[]>> = {
  'a bound of the kernel alone, whose effect no rule of ours changes': [
    'clients with affinity, mode iptables',
    'clients with affinity, mode ipvs',
  ],
  'it has one user, so no neighbour': [
    'connections to the status socket',
    'connections of the command `ui` to the status socket',
  ],
};

t.test('each bound is filled by a test, or there is a reason', (t) => {
  const rows = Object.keys(documented('SECURITY.md'));
  t.ok(rows.length > 40, 'the rows are found');
  const [shown, unshown] = [Object.keys(SHOWN), Object.values(UNSHOWN).flat()];
  t.same([...shown, ...unshown].toSorted(), rows.toSorted(), 'no row is forgotten, none is in both lists');
  t.end();
});

for (const [row, proof] of Object.entries(SHOWN))
  t.test(`a neighbour of one at its limit: ${row}`, async (t) => {
    if (typeof proof === 'function') {
      await proof(t);
      return;
    }
    const [file, title] = proof;
    const quoted = [`'${title}'`, `"${title}"`, `\`${title}\``];
    t.ok(
      quoted.some((text) => readFileSync(file, 'utf8').includes(text)),
      `${file}: ${title}`,
    );
  });
