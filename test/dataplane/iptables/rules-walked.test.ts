// How many rules of dispatch chains the first packet of a connection walks, counted exactly, and what another Service's frontends add to that.
import t from 'tap';
import { jumpTarget } from '../../support/fake-iptables/rule-text.js';
import { service, slice } from '../../support/rows.js';
import type { Row } from '../../../src/state/rows.js';
import { cluster } from './cluster.js';
import type { Rig } from './rig.js';

/** Web-10 of the cluster. */
const VICTIM = '10.96.0.10';

function bits(address: string): number {
  return address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
}

/** Whether a rule of a dispatch chain selects an address; those of the chain's tail select node ports. */
function selects(rule: string, address: string): boolean {
  const [, value = '', mask = '32'] = /^-d ([\d.]+)(?:\/(\S+))? /.exec(rule) ?? [];
  if (value === '') return false;
  const kept = mask.includes('.') ? bits(mask) : mask === '32' ? 0xffffffff : NaN;
  return ((bits(address) & kept) ^ (bits(value) & kept)) === 0;
}

/** Rules up to the one that leads to the Service's own chain. */
function walked(rig: Rig, chain: string, address: string): number {
  let count = 0;
  for (const rule of rig.kernel.rules('nat', chain) ?? []) {
    count++;
    if (!selects(rule, address)) continue;
    const target = jumpTarget(rule) ?? '';
    return /^KUBE-SVC-IP-/.test(target) ? count + walked(rig, target, address) : count;
  }
  throw new Error(`no rule of ${chain} selects ${address}`);
}

/** One Service with as many frontends. */
function other(addresses: readonly string[]): readonly Row[] {
  return [
    service('other', { clusterIPs: ['10.96.200.1'], externalIPs: addresses }),
    slice('other', [{ address: '10.0.0.1' }]),
  ];
}

async function withOther(addresses: readonly string[]): Promise<readonly [before: number, after: number]> {
  const rig = await cluster(200, 1);
  const before = walked(rig, 'KUBE-SERVICES', VICTIM);
  rig.commit(other(addresses));
  await rig.sync();
  const after = walked(rig, 'KUBE-SERVICES', VICTIM);
  return [before, after];
}

t.test('200 Services: two short chains, and the frontends with the same last byte', async (t) => {
  const [before, after] = await withOther(['203.0.113.1']);
  t.same([before, after], [11 + 1 + 1, 11 + 1 + 1], 'of another last byte it costs nothing');
});

t.test('1,000 frontends of another Service are spread over the chains of 256 last bytes', async (t) => {
  const spread = Array.from({ length: 1000 }, (_, at) => `1.0.${at >> 8}.${at & 255}`);
  const [before, after] = await withOther(spread);
  t.same([before, after], [13, 17]);
});

t.test('frontends whose addresses all have the last byte of a Service are walked by its connections', async (t) => {
  const same = Array.from({ length: 1000 }, (_, at) => `1.${at >> 8}.${at & 255}.10`);
  const [before, after] = await withOther(same);
  t.same([before, after], [13, 1013]);
  const [, beside] = await withOther(same.map((address) => address.replace(/10$/, '11')));
  t.equal(beside, 13, 'those of another last byte cost nothing');
});
