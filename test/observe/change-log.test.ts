// What was changed in the kernel and why, as lines of JSON.
import { join } from 'node:path';
import t from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { ChangeLog, changeLogFile } from '../../src/observe/change-log.js';
import { WEB, world } from '../control/sync-cycle-world.js';
import { planSettings } from '../support/plan-settings.js';
import { RecordingLog } from '../support/recording-log.js';
import { largeService, largeSlice } from '../support/large-services.js';
import { service, slice } from '../support/rows.js';

interface Line {
  readonly family: string;
  readonly full: boolean;
  readonly frontends: readonly { readonly key: string }[];
  readonly because: readonly object[];
}

interface Scene {
  readonly made: ReturnType<typeof world>;
  readonly versions: Map<string, string>;
  /** Written since the last time. */
  readonly lines: () => readonly Line[];
}

function scene(): Scene {
  const written: string[] = [];
  const versions = new Map<string, string>();
  const file = { write: (line: string) => written.push(line) > 0, close: () => Promise.resolve() };
  const log = new ChangeLog(file, {
    versionOf: (kind, key) => versions.get(`${kind} ${key}`) ?? null,
    labels: () => ({ node: 'worker-1', mode: 'a mode' }),
    now: () => 0,
  });
  const lines = (): readonly Line[] => written.splice(0).map((line) => JSON.parse(line) as Line);
  return { made: world(planSettings(), log), versions, lines };
}

t.test('the change log has a line for each sync with changes, with the versions of the objects', async (t) => {
  const { made, versions, lines } = scene();
  const { cycle, dataplanes, upsert, remove } = made;
  versions.set('Service default/web', '41').set('EndpointSlice default/web-1', '42');
  upsert(
    WEB,
    slice('web', [{ address: '10.0.0.1' }], { name: 'web-1', ports: [{ name: '', port: 53, protocol: 'UDP' }] }),
  );
  await cycle.run({ full: true });
  const [first, second] = lines();
  t.match(first, {
    trail: 'kernel',
    time: '1970-01-01T00:00:00.000Z',
    node: 'worker-1',
    mode: 'a mode',
    family: 'IPv4',
    full: true,
    transactions: 1,
    frontends: [{ key: '10.96.0.10:53/UDP', service: 'default/web', endpoints: 1 }],
  });
  const web = {
    kind: 'Service',
    namespace: 'default',
    name: 'web',
    version: '41',
    change: 'added',
    service: 'default/web',
  };
  t.same(first?.because, [web, { ...web, kind: 'EndpointSlice', name: 'web-1', version: '42' }]);
  t.match(second, { family: 'IPv6', because: [{ kind: 'Service' }] });
  t.equal(second?.because.length, 1, 'a slice is of one family');

  versions.set('Service default/web', '50');
  upsert({ ...WEB, clusterIPs: [parseAddress('10.96.0.11')!, parseAddress('fd00::10')!] });
  dataplanes.IPv4.failures.push(new Error('EBUSY'));
  dataplanes.IPv6.next = { transactions: 0 };
  await t.rejects(cycle.run({ full: false }));
  t.same(lines(), [], 'nothing was changed');
  dataplanes.IPv6.next = { transactions: 0 };
  await cycle.run({ full: false });
  const [retried, ...rest] = lines();
  t.same(rest, []);
  t.match(retried, { family: 'IPv4', because: [{ version: '50', change: 'changed' }] });
  t.match(
    new Map(retried?.frontends.map((frontend) => [frontend.key, frontend])).get('10.96.0.10:53/UDP'),
    { removed: true },
    'changes of a failed sync are in the next',
  );

  remove(WEB);
  cycle.follow({
    ...planSettings(),
    resetRemovedEndpoints: false,
    kubernetes: null,
    healthz: null,
    metrics: { address: parseAddress('::1')!, port: 0 },
  });
  dataplanes.IPv6.next = { transactions: 0 };
  await cycle.run({ full: false });
  const [gone] = lines();
  t.same(gone?.because, [
    { kind: 'Service', namespace: 'default', name: 'web', change: 'removed', service: 'default/web' },
    { kind: 'Configuration', change: 'changed' },
  ]);
});

t.test('a line of the change log does not list the whole cluster', async (t) => {
  const { made, lines } = scene();
  made.upsert(
    ...Array.from({ length: 1200 }, (_, index) =>
      service(`s${index}`, { clusterIPs: [`10.96.${index >> 8}.${index & 255}`] }),
    ),
  );
  await made.cycle.run({ full: true });
  const [line] = lines();
  t.match(line, { frontendsNotShown: 200, becauseNotShown: 200 });
  t.same([line?.frontends.length, line?.because.length], [1000, 1000]);
});

t.test('a change log that cannot be written is reported once', async (t) => {
  const log = new RecordingLog();
  const config = { path: join('/proc', 'nothing', 'changes'), maxBytes: 1, maxBackups: 0, maxAgeMs: 0 };
  const file = changeLogFile(config, log, () => 0);
  await file.prepare();
  t.match(file.fault, /^ENOENT/);
  file.write('a line');
  await file.close();
  t.equal(log.lines.filter((line) => line.startsWith('error changes of the kernel are not logged')).length, 1);
});

t.test('the change log has a delayed change in the line of its own sync', async (t) => {
  const { made, versions, lines } = scene();
  const { cycle, upsert, dataplanes } = made;
  await cycle.run({ full: true });
  lines();
  versions.set('EndpointSlice default/large-0-ipv4', '7');
  upsert(...largeService(0), ...largeService(1), service('small'));
  const because = async (): Promise<readonly unknown[]> => {
    dataplanes.IPv6.next = { transactions: 0 };
    await cycle.run({ full: false });
    return lines().flatMap(({ because }) => because.map((cause): unknown => Reflect.get(cause, 'name')));
  };
  t.same(await because(), ['small']);
  versions.set('EndpointSlice default/large-0-ipv4', '8');
  upsert(largeSlice(0, 2));
  dataplanes.IPv6.next = { transactions: 0 };
  await cycle.run({ full: false });
  const [line, ...others] = lines();
  t.same(others, []);
  t.match(line?.because, [{ name: 'large-0' }, { name: 'large-0-ipv4', version: '8', change: 'changed' }]);
  t.equal(line?.because.length, 2);
  t.same(await because(), ['large-1', 'large-1-ipv4']);
});

t.test('the change log has a line for each external change: process, size, time to the repair', async (t) => {
  const { made, lines } = scene();
  const { cycle, dataplanes, clock, tell } = made;
  await cycle.run({ full: true });
  lines();
  tell({ families: ['IPv6'], missed: false, process: 'nft[9950]' });
  await clock.advance(3);
  dataplanes.IPv6.next = { repairs: ['chain a was lost', 'chain b was lost'] };
  await cycle.run({ full: false });
  const [, sync, change] = lines();
  t.match(sync, { trail: 'kernel', family: 'IPv6', repairs: ['chain a was lost', 'chain b was lost'] });
  t.strictSame(change, {
    trail: 'external-change',
    time: '1970-01-01T00:00:00.000Z',
    node: 'worker-1',
    mode: 'a mode',
    family: 'IPv6',
    process: 'nft[9950]',
    what: 'chain a was lost',
    seconds: 0.003,
    differences: 2,
  });
});
