import t from 'tap';

import { ConntrackReconciler } from '../../src/dataplane/conntrack/reconciler.js';
import type { FlowView } from '../../src/dataplane/conntrack/flow-scope.js';
import type { ConntrackAddon, FlowFilter, FlowListing, NftFamily } from '../../src/native/contract.js';
import { addressFromBytes, type Family } from '../../src/base/ip.js';
import type { FrontendKey } from '../../src/plan/types.js';
import { listing, printRecords, table, type FlowText, type FrontendText } from './conntrack-records.js';

/** Answers every listing with all flows of the protocol, remembers what it was asked, and fails when told to. */
class RecordingKernel implements Pick<ConntrackAddon, 'conntrackList' | 'conntrackDelete'> {
  readonly filters: string[] = [];
  readonly deletions: string[] = [];
  readonly failing = new Set<string>();
  readonly #flows: readonly FlowText[];
  readonly #family: Family;

  constructor(family: Family, flows: readonly FlowText[]) {
    this.#family = family;
    this.#flows = flows;
  }

  conntrackList(filter: FlowFilter): Promise<FlowListing> {
    const destination = filter.destination === null ? '*' : addressFromBytes(filter.destination);
    const unanswered = filter.unanswered ? ' unanswered' : '';
    this.filters.push(`${filter.family} ${filter.protocol} ${destination} ${filter.port ?? '*'}${unanswered}`);
    if (this.failing.has(`list ${filter.protocol}`)) return Promise.reject(new Error(`list ${filter.protocol} failed`));
    const protocol = filter.protocol === 17 ? 'UDP' : 'SCTP';
    return Promise.resolve(
      listing(
        this.#family,
        this.#flows.filter((flow) => (flow.protocol ?? 'UDP') === protocol),
      ),
    );
  }

  conntrackDelete(family: NftFamily, records: Uint8Array): Promise<{ deleted: number; missing: number }> {
    const lines = printRecords(family === 'ip' ? 'IPv4' : 'IPv6', records);
    this.deletions.push(...lines);
    // What a native module rejects with is not always an Error of this realm.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    if (this.failing.has('delete')) return Promise.reject('delete failed');
    return Promise.resolve({ deleted: lines.length - 1, missing: 1 });
  }
}

function view(
  family: Family,
  frontends: readonly FrontendText[],
  changed: readonly FrontendKey[],
  full = false,
): FlowView {
  return { table: table(family, frontends), isNodePortAddress: () => true, full, changed: new Set(changed) };
}

const ALL: readonly FrontendText[] = [
  { at: '10.96.0.10 53', to: ['10.244.1.10 53'] },
  { at: '10.96.0.10 54', to: ['10.244.1.10 53'] },
  { at: '10.96.0.11 53', to: ['10.244.1.10 53'] },
  { at: 'nodeport 53', to: ['10.244.1.10 53'] },
  { protocol: 'SCTP', at: '10.96.0.10 53', to: ['10.244.1.10 53'] },
  { protocol: 'TCP', at: '10.96.0.10 53', to: [] },
];

interface PlanningCase {
  readonly name: string;
  readonly changed: readonly FrontendKey[];
  readonly full?: boolean;
  readonly frontends?: readonly FrontendText[];
  readonly filters: readonly string[];
}

const PLANNING: readonly PlanningCase[] = [
  { name: 'nothing changed', changed: [], filters: [] },
  {
    name: 'of TCP what nothing was replied to',
    changed: ['10.96.0.10:53/TCP', '10.96.9.9:53/TCP'],
    filters: ['ip 6 * 53 unanswered'],
  },
  { name: 'one frontend', changed: ['10.96.0.10:53/UDP'], filters: ['ip 17 10.96.0.10 53'] },
  { name: 'one address', changed: ['10.96.0.10:53/UDP', '10.96.0.10:54/UDP'], filters: ['ip 17 10.96.0.10 *'] },
  { name: 'one port', changed: ['10.96.0.10:53/UDP', '10.96.0.11:53/UDP'], filters: ['ip 17 * 53'] },
  { name: 'neither', changed: ['10.96.0.10:54/UDP', '10.96.0.11:53/UDP'], filters: ['ip 17 * *'] },
  { name: 'a node port has no address', changed: ['nodeport:53/UDP'], filters: ['ip 17 * 53'] },
  { name: 'address and node port', changed: ['10.96.0.10:54/UDP', 'nodeport:53/UDP'], filters: ['ip 17 * *'] },
  { name: 'a gone frontend', changed: ['10.96.7.7:99/SCTP'], filters: ['ip 132 10.96.7.7 99'] },
  {
    name: 'a protocol each',
    changed: ['10.96.0.10:53/SCTP', '10.96.0.10:53/UDP', '10.96.0.10:53/TCP'],
    filters: ['ip 17 10.96.0.10 53', 'ip 132 10.96.0.10 53', 'ip 6 10.96.0.10 53 unanswered'],
  },
  { name: 'a full pass', changed: [], full: true, filters: ['ip 17 * *', 'ip 132 * *', 'ip 6 * * unanswered'] },
  {
    name: 'a full pass without SCTP, with a gone SCTP frontend',
    changed: ['10.96.7.7:99/SCTP'],
    full: true,
    frontends: ALL.slice(0, 1),
    filters: ['ip 17 * *', 'ip 132 * *'],
  },
  {
    name: 'a full pass over TCP alone',
    changed: [],
    full: true,
    frontends: ALL.slice(5),
    filters: ['ip 6 * * unanswered'],
  },
];

for (const { name, changed, full, frontends, filters } of PLANNING) {
  t.test(`conntrack listings of a pass: ${name}`, async (t) => {
    const kernel = new RecordingKernel('IPv4', []);
    const report = await new ConntrackReconciler(kernel).reconcile(view('IPv4', frontends ?? ALL, changed, full));
    t.same(kernel.filters, filters);
    t.same(report, { flows: 0, deleted: 0, errors: [] });
    t.same(kernel.deletions, [], 'nothing stale, nothing sent');
  });
}

const FLOWS: readonly FlowText[] = [
  { to: '10.96.0.10 53', by: '10.244.9.9 53' },
  { to: '10.96.0.10 53', by: '10.244.1.10 53' },
  { to: '10.96.0.11 53', by: '10.96.0.11 53' },
  { protocol: 'SCTP', to: '10.96.0.10 53', by: '10.244.9.9 53' },
];

t.test('a full conntrack pass counts flows and deletions', async (t) => {
  const kernel = new RecordingKernel('IPv4', FLOWS);
  const report = await new ConntrackReconciler(kernel).reconcile(view('IPv4', ALL, [], true));
  t.same(kernel.deletions, [
    'UDP 10.244.0.9 40000 > 10.96.0.10 53 < 10.244.9.9 53 #1',
    'UDP 10.244.0.9 40000 > 10.96.0.11 53 < 10.96.0.11 53 #3',
    'SCTP 10.244.0.9 40000 > 10.96.0.10 53 < 10.244.9.9 53 #1',
  ]);
  t.same(report, { flows: 5, deleted: 1, errors: [] });
});

t.test('a conntrack listing that fails does not block the other protocol', async (t) => {
  const kernel = new RecordingKernel('IPv4', FLOWS);
  kernel.failing.add('list 17');
  const report = await new ConntrackReconciler(kernel).reconcile(view('IPv4', ALL, [], true));
  t.same(
    report.errors.map((error) => error.message),
    ['list 17 failed'],
  );
  t.same(kernel.deletions, ['SCTP 10.244.0.9 40000 > 10.96.0.10 53 < 10.244.9.9 53 #1']);

  kernel.failing.clear();
  const again = await new ConntrackReconciler(kernel).reconcile(view('IPv4', ALL, [], true));
  t.same(again.errors, []);
  t.equal(kernel.deletions.length, 4);
});

t.test('a conntrack deletion that fails is an error of the pass', async (t) => {
  const kernel = new RecordingKernel('IPv4', FLOWS);
  kernel.failing.add('delete');
  const report = await new ConntrackReconciler(kernel).reconcile(view('IPv4', ALL, ['10.96.0.10:53/UDP']));
  t.same(
    report.errors.map((error) => error.message),
    ['delete failed'],
  );
  t.equal(report.deleted, 0);
});

t.test('a conntrack pass of IPv6 lists its own family', async (t) => {
  const kernel = new RecordingKernel('IPv6', [{ to: 'fd00:96::a 53', by: 'fd00:244::1 53' }]);
  const frontends = [{ at: 'fd00:96::a 53', to: [] }];
  const report = await new ConntrackReconciler(kernel).reconcile(view('IPv6', frontends, ['[fd00:96::a]:53/UDP']));
  t.same(kernel.filters, ['ip6 17 fd00:96::a 53']);
  t.same(kernel.deletions, ['UDP fd00:244::9 40000 > fd00:96::a 53 < fd00:244::1 53 #1']);
  t.same(report, { flows: 1, deleted: 0, errors: [] });
});
