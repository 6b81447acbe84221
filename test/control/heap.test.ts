import t, { type Test } from 'tap';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { FAMILIES } from '../../src/base/ip.js';
import { ConflictReports } from '../../src/control/conflict-reports.js';
import { Progress } from '../../src/record/progress.js';
import { Planner } from '../../src/plan/planner.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { translateService } from '../../src/sources/translate/service.js';
import type { RowRef, ServiceRow } from '../../src/state/rows.js';
import { Store } from '../../src/state/store.js';
import { usually } from '../support/extent.js';
import { serviceObject } from '../support/api-objects.js';
import { FakeClock } from '../support/fake-clock.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { slice } from '../support/rows.js';

/** So many Services of each kind come and go in a round. */
const SERVICES = usually(500, 2000);
const KINDS = [
  {},
  { sessionAffinity: 'ClientIP' },
  { externalIPs: ['203.0.113.9'] },
  { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/8'] },
  { type: 'NodePort' },
] as const;
/** A Service that is remembered takes some hundred bytes at least. */
const MOST_BYTES = 100 * SERVICES * KINDS.length;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function heap(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    // What a weak reference was asked for stays until the end of a turn of the event loop.
    await new Promise(setImmediate);
    collect();
  }
  return process.memoryUsage().heapUsed;
}

let made = 0;

/** Another Service than any before: name, namespace, port names and addresses are its own, but for an external IP that all of a kind claim. */
function next(names: Interner): readonly [ServiceRow, ReturnType<typeof slice>] {
  const number = made++;
  const kind = KINDS[number % KINDS.length] ?? {};
  const nodePort = 'type' in kind ? { nodePort: 30_000 + (number % 2500) } : {};
  const [name, namespace] = [`s${number}`, `ns${number}`];
  const spec = {
    ...kind,
    clusterIP: `10.${96 + ((number >> 16) & 15)}.${(number >> 8) & 255}.${number & 255}`,
    ports: [{ name: `p${number}`, port: 80, protocol: number % 2 === 0 ? 'TCP' : 'UDP', ...nodePort }],
  };
  const status = { loadBalancer: { ingress: [{ ip: `198.51.${(number >> 8) & 255}.${number & 255}` }] } };
  const { row } = translateService(serviceObject(name, spec, { metadata: { name, namespace }, status }), names);
  if (row === null) throw new Error('no Service of ours');
  const endpoints = [{ address: `10.1.${(number >> 8) & 255}.${number & 255}`, node: `node-${number}` }];
  const ports = [{ name: `p${number}`, port: 80, protocol: row.ports[0]?.protocol ?? 'TCP' }];
  return [row, slice(name, endpoints, { namespace, ports })];
}

/** Rows of a round, in parts, and what removes them. */
async function comeAndGo(
  names: Interner,
  apply: (rows: ReturnType<typeof next>[number][], gone: readonly RowRef[]) => Promise<unknown>,
): Promise<void> {
  const refs: RowRef[] = [];
  const count = SERVICES * KINDS.length;
  for (let done = 0; done < count; done += 1000) {
    const rows = Array.from({ length: Math.min(1000, count - done) }, () => next(names)).flat();
    for (const { kind, namespace, name } of rows) refs.push({ kind, namespace, name });
    await apply(rows, []);
  }
  await apply([], refs);
}

/** The heap after several rounds is what it was after the first ones, by which tables that are bounded are full. */
async function staysSmall(t: Test, round: () => Promise<void>): Promise<void> {
  await round();
  await round();
  const before = await heap();
  await round();
  await round();
  const grown = (await heap()) - before;
  t.ok(grown < MOST_BYTES, `${grown} bytes more`);
}

t.test('state, plan, progress and reports keep nothing of removed Services', async (t) => {
  const names = new Interner(100_000);
  const store = new Store();
  const writer = store.register('test');
  const planner = new Planner(planSettings());
  const clock = new FakeClock();
  const progress = new Progress(FAMILIES, clock, () => 0n);
  const reports = new ConflictReports({ clock, log: new RecordingLog(), events: { record: () => undefined } });
  store.onChange((edits) => {
    progress.committed(edits, true);
  });
  writer.complete();
  await staysSmall(t, () =>
    comeAndGo(names, (rows, gone) => {
      writer.apply(rows.map((row) => ({ type: 'upsert', row })));
      writer.apply(gone.map((ref) => ({ type: 'remove', ref })));
      progress.take();
      planner.update(store.snapshot, store.takeChanges());
      progress.planned();
      for (const family of FAMILIES) {
        const table = planner.tables[family];
        progress.of(family)?.sending(table.takeChange().frontends);
        progress.of(family)?.acknowledge();
        reports.update(table);
      }
      return Promise.resolve();
    }),
  );
  t.equal(clock.waiting, 0);
});
