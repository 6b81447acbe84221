// In place of the addon in a rehearsal (rehearse.mjs): a kernel in memory that holds what the life before left.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { deserialize, serialize } from 'node:v8';
import { SUBSYSTEMS } from '../src/native/subsystems.ts';
import { FakeKernel } from '../test/support/fake-kernel/fake-kernel.ts';

const { addon, transactions } = JSON.parse(process.env.POINTSMAN_REHEARSAL);

const kernel = new FakeKernel(createRequire(addon)(addon).nftables);
if (existsSync(transactions)) for (const each of deserialize(readFileSync(transactions))) kernel.foreign(each);
process.on('exit', () => {
  writeFileSync(transactions, serialize(kernel.committed));
});
process.on('message', (question) => {
  if (question === 'transactions') process.send(kernel.committed.length);
});

/** What Linux has, each with its functions. */
const names = Object.keys(SUBSYSTEMS).filter((name) => name !== 'hcn' && name !== 'service');
const subsystems = Object.fromEntries(
  names.map((name) => [
    name,
    Object.fromEntries(
      Object.keys(SUBSYSTEMS[name]).map((method) => [method, (...values) => kernel[name][method](...values)]),
    ),
  ]),
);

export const { nftables, conntrack, iptables, accounting, ipvs, ipset, route, memory, peer } = subsystems;
