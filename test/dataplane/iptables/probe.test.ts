// What others do is found by the traces that it leaves, and everything is listed only then.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { tracesOf } from '../../../src/dataplane/iptables/traces.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

const WEB = [service('web', { clusterIPs: ['10.96.0.1'] }), slice('web', [{ address: '10.1.0.1', node: 'other' }])];

async function running(flavor: IptablesFlavor): Promise<Rig> {
  // The first sync tries a rule that counts packets, and one that names a timeout policy.
  const rig = new Rig(undefined, 'IPv4', { retryTimes: { tcp: 1, dns: 2 } }, flavor);
  rig.kernel.accounts = new Map();
  rig.commit([...NODE_ROWS, ...WEB]);
  await rig.sync();
  return rig;
}

/** Whether a probe found a difference, and whether it listed anything; the one before was long ago. */
async function look(rig: Rig): Promise<{ readonly differs: boolean; readonly lists: boolean }> {
  rig.wait(60_000);
  const { length } = rig.kernel.listed;
  const differs = await rig.dataplane.probe();
  return { differs, lists: rig.kernel.listed.length > length };
}

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`${flavor}: after a start and own changes a probe lists nothing`, async (t) => {
    const rig = await running(flavor);
    t.same(await look(rig), { differs: false, lists: false });
    rig.commit([slice('web', [{ address: '10.1.0.2', node: 'other' }])]);
    await rig.sync();
    t.same(await look(rig), { differs: false, lists: false });
  });

  t.test(`${flavor}: a probe lists foreign changes once`, async (t) => {
    const rig = await running(flavor);
    rig.kernel.tamper('nat', (chains) => chains.set('DOCKER', ['-j RETURN']), flavor);
    t.same(await look(rig), { differs: false, lists: true });
    t.same(await look(rig), { differs: false, lists: false });
  });

  t.test(`${flavor}: a probe finds damage until it is repaired`, async (t) => {
    const rig = await running(flavor);
    for (const chain of ['KUBE-SERVICES', 'PREROUTING']) {
      rig.kernel.tamper('nat', (chains) => chains.set(chain, []), flavor);
      t.same(await look(rig), { differs: true, lists: true }, chain);
      t.same(await look(rig), { differs: true, lists: true }, 'nothing was repaired yet');
      t.equal((await rig.sync(true)).repairs.length, 1);
      t.same(await look(rig), { differs: false, lists: false });
    }
  });

  t.test(`${flavor}: a probe lists again after a lost answer, and finds damage beside a sync`, async (t) => {
    const rig = await running(flavor);
    rig.commit([slice('web', [{ address: '10.1.0.2', node: 'other' }])]);
    rig.kernel.faults.push('lose-ack');
    await t.rejects(rig.sync());
    await rig.sync();
    t.same(await look(rig), { differs: false, lists: true });
    t.same(await look(rig), { differs: false, lists: false });
    rig.kernel.tamper('nat', (chains) => chains.set('KUBE-POSTROUTING', []), flavor);
    rig.commit([slice('web', [{ address: '10.1.0.3', node: 'other' }])]);
    await rig.sync();
    t.same(await look(rig), { differs: true, lists: true });
  });
}

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`${flavor}: after a probe that found nothing, a change of the tables calls for the next one`, async (t) => {
    const rig = await running(flavor);
    t.equal(rig.dataplane.awaitChange, null, 'nothing was looked at yet');
    const changed = async (change: () => unknown): Promise<void> => {
      await look(rig);
      await look(rig);
      const { awaitChange } = rig.dataplane;
      if (awaitChange === null) throw new Error('a probe is due');
      let calls = 0;
      const end = awaitChange(() => calls++);
      await sleep(20);
      t.equal(calls, 0, 'nothing is to be done');
      await change();
      while (calls === 0) await sleep(1);
      end();
    };
    await changed(() => {
      rig.kernel.tamper('nat', (chains) => chains.set('DOCKER', ['-j RETURN']), flavor);
    });
    await changed(async () => {
      const endpoints = ['10.1.0.2', '10.1.0.3'].map((address) => ({ address, node: 'other' }));
      rig.commit([slice('web', endpoints)]);
      await rig.sync();
    });
    rig.kernel.tamper('nat', (chains) => chains.set('KUBE-SERVICES', []), flavor);
    t.same(await look(rig), { differs: true, lists: true });
  });
}

t.test('nft: families await the next change of nf_tables together', async (t) => {
  let generation = 7;
  const unused = (): never => {
    throw new Error('not asked for');
  };
  const nftables = { nftGeneration: () => Promise.resolve(generation), nftGenerationWatch: () => () => undefined };
  const traces = tracesOf({ nftables, iptables: { iptablesSizes: unused, iptablesSizesWatch: unused } }, 'nft');
  const one = await traces('IPv4').mark();
  const other = await traces('IPv6').mark();
  t.same([await one.isTouched(), await other.isTouched()], [false, false]);
  const { awaitChange } = one;
  t.type(awaitChange, 'function');
  t.equal(other.awaitChange, awaitChange);
  await traces('IPv4').count(1, () => Promise.resolve(generation++));
  t.same([await one.isTouched(), other.awaitChange], [false, awaitChange]);
  t.not(one.awaitChange, awaitChange, 'after a stream of ours for the one that follows it');
});

t.test('nft: a probe whose listing waited does not delay the next', async (t) => {
  const rig = await running('nft');
  const list = rig.kernel.iptablesList.bind(rig.kernel);
  rig.kernel.iptablesList = async (...asked) => {
    // Streams of ours come first, and other programs have the cores.
    rig.wait(5000);
    return await list(...asked);
  };
  rig.kernel.tamper('nat', (chains) => chains.set('DOCKER', ['-j RETURN']), 'nft');
  t.same(await look(rig), { differs: false, lists: true });
  rig.kernel.tamper('nat', (chains) => chains.set('KUBE-SERVICES', []), 'nft');
  rig.wait(1000);
  t.equal(await rig.dataplane.probe(), true);
});

t.test('nft: damage is found although the generation could not be read at the last listing', async (t) => {
  const rig = await running('nft');
  const { generation } = rig;
  const listUnread = async (): Promise<void> => {
    rig.generation = () => Promise.reject(new Error('ENOBUFS'));
    await rig.sync(true);
    rig.generation = generation;
  };
  await listUnread();
  t.same(await look(rig), { differs: false, lists: true }, 'there may have been a change');
  t.same(await look(rig), { differs: false, lists: false });
  await listUnread();
  rig.kernel.tamper('nat', (chains) => chains.set('KUBE-POSTROUTING', []), 'nft');
  t.same(await look(rig), { differs: true, lists: true });
  await rig.sync(true);
  await listUnread();
  rig.kernel.tamper('nat', (chains) => chains.set('KUBE-POSTROUTING', []), 'nft');
  // Listings take a share of the time.
  rig.wait(3_600_000);
  t.equal(await rig.dataplane.audit(), true);
});

t.test('nft: damage is found although our stream after it had no effect', async (t) => {
  const rig = await running('nft');
  rig.commit([slice('web', [])]);
  await rig.sync();
  await look(rig);
  // Somebody flushes the table just before the refusal is removed, which is all that this stream does in it.
  rig.kernel.tamper('filter', (chains) => {
    for (const name of chains.keys()) chains.set(name, []);
  });
  const { commits } = rig.kernel;
  rig.commit([slice('web', [{ address: '10.1.0.1', node: 'other' }])]);
  const sent = await rig.during(() => rig.sync());
  t.same(
    sent.filter((operation) => operation.includes(' filter ')),
    ['chain filter KUBE-SERVICES'],
  );
  t.equal(rig.kernel.commits, commits + 2, 'the kernel counts the changes of nat and raw alone');
  t.same(await look(rig), { differs: true, lists: true });
});

t.test('a kernel that refuses table sizes is not listed, and syncs go on', async (t) => {
  const rig = new Rig(undefined, 'IPv4', {}, 'legacy');
  rig.kernel.iptablesSizes = () => Promise.reject(new Error('EPERM'));
  rig.commit([...NODE_ROWS, ...WEB]);
  await rig.sync();
  t.same(await look(rig), { differs: false, lists: false });
});
