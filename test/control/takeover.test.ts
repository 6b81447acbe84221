import t from 'tap';
import { Takeover } from '../../src/control/takeover.js';
import { footprintsOn, modeDefinition } from '../../src/dataplane/modes.js';
import type { IpsetAddon } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { KernelError } from '../support/fake-kernel/kernel-error.js';
import { WITHOUT_SETS } from '../support/fake-kernel/without-ipvs.js';
import { eventually } from '../support/lab/lab.js';
import { RecordingLog } from '../support/recording-log.js';

/** A node whose one leftover set is in use at first. */
class NodeWithSet extends FakeKernel {
  passes = 0;
  inUse = true;
  private sets = ['KUBE-CLUSTER-IP'];

  override readonly ipset: IpsetAddon = {
    ...WITHOUT_SETS,
    ipsetNames: () => {
      this.passes++;
      return Promise.resolve(this.sets);
    },
    ipsetApply: ([first]) => {
      const busy = new KernelError('EBUSY', 'ipset apply', { object: null, index: 0, element: null });
      const isBusy = this.inUse && first !== undefined;
      if (!isBusy) this.sets = [];
      return Promise.resolve({ refused: isBusy ? [busy] : [], bytes: 0 });
    },
  };
}

const ALL = footprintsOn('linux');

t.test('leftovers of other modes are removed until there are none, and each is logged once', async (t) => {
  const log = new RecordingLog();
  const addon = new NodeWithSet(loadAddon().nftables);
  const finished: number[] = [];
  const takeover = new Takeover({
    addon,
    families: ['IPv4', 'IPv6'],
    all: ALL,
    own: { footprint: modeDefinition('nftables').footprint, flavor: null },
    log,
    onFinished: () => void finished.push(addon.passes),
  });
  const passes = (count: number): Promise<unknown> =>
    eventually(`${count} passes`, () => {
      if (addon.passes === count) return Promise.resolve(true);
      takeover.proceed();
      return Promise.resolve(null);
    });
  takeover.proceed();
  takeover.proceed();
  await passes(1);
  await passes(2);
  addon.inUse = false;
  await passes(3);
  await eventually('the last report', () => Promise.resolve(log.lines.length > 1 || null));
  takeover.proceed();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(addon.passes, 3, 'one at a time, and none after the last');
  t.same(finished, [3]);
  t.strictSame(log.lines, [
    'warn could not remove rules of another proxy mode, will be retried',
    'info 0 removed rules of another proxy mode',
  ]);
});

t.test('after retire() leftovers are not removed, as they may belong to the active mode', async (t) => {
  const addon = new NodeWithSet(loadAddon().nftables);
  const own = { footprint: modeDefinition('nftables').footprint, flavor: null };
  const onFinished = (): void => {
    t.fail('the mode in force may need it');
  };
  const takeover = new Takeover({ addon, families: ['IPv4'], all: ALL, own, log: new RecordingLog(), onFinished });
  takeover.proceed();
  await takeover.retire();
  t.equal(addon.passes, 1, 'the pass under way has ended');
  takeover.proceed();
  await takeover.retire();
  t.equal(addon.passes, 1);
});

t.test('leftovers whose removal cannot be loaded are reported once, and retried', async (t) => {
  const log = new RecordingLog();
  const addon = new NodeWithSet(loadAddon().nftables);
  addon.inUse = false;
  const own = { footprint: modeDefinition('nftables').footprint, flavor: null };
  let finished = false;
  const parts = { addon, families: ['IPv4'] as const, all: ALL, own, log, onFinished: () => void (finished = true) };
  let loads = 0;
  const takeover = new Takeover(parts, () => {
    loads++;
    return loads <= 2 ? Promise.reject(new Error('no such file')) : import('../../src/dataplane/removal/remove.js');
  });
  for (let pass = 1; pass <= 2; pass++) {
    t.match(await takeover.proceed(), { removed: false, finished: false });
    t.strictSame(log.lines, ['warn could not remove rules of another proxy mode, will be retried']);
  }
  t.notOk(finished);
  t.match(await takeover.proceed(), { removed: true, finished: true });
  t.ok(finished);
});
