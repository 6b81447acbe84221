// What a Service weighs beside its plan: counted, so that it is the same on any machine.
import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { Desired } from '../../../src/dataplane/ipvs/desired.js';
import { Ledgers } from '../../../src/dataplane/ipvs/ledgers.js';
import { SET_ROLES, type SetRole } from '../../../src/dataplane/ipvs/names.js';
import type { Claim, Ledger } from '../../../src/dataplane/ledger.js';
import { everything } from '../../../src/dataplane/table-view.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, OWN, Rig } from './rig.js';

setFlagsFromString('--expose-gc');
// Code that is thrown away would count.
setFlagsFromString('--no-flush-bytecode');
const collect = runInNewContext('gc') as () => void;

function held(): number {
  collect();
  const { heapUsed, arrayBuffers } = memoryUsage();
  return heapUsed + arrayBuffers;
}

function claimAll<Key, Value>(ledger: Ledger<Key, Value>): Claim {
  return ledger.claim([...ledger.pending()]);
}

const SERVICES = 4000;

t.test('memory per Service in ipvs mode', (t) => {
  const rig = new Rig();
  rig.commit(NODE_ROWS);
  rig.commit(
    Array.from({ length: SERVICES }, (_, index) => [
      service(`web-${index}`, { clusterIPs: [`10.96.${index >> 8}.${index & 0xff}`] }),
      slice(`web-${index}`, [{ address: `10.0.${index >> 8}.${index & 0xff}`, node: 'other' }]),
    ]).flat(),
  );
  rig.plan();
  const load = (): readonly [Ledgers, Desired] => {
    const ledgers = new Ledgers(() => 0);
    const elements = Object.fromEntries(SET_ROLES.map((role) => [role, new Map()])) as Record<
      SetRole,
      Map<string, string>
    >;
    ledgers.readBack({ services: new Map(), destinations: new Map(), addresses: new Map(), elements });
    const desired = new Desired(() => rig.table, ledgers, { scheduler: 'rr' });
    desired.update(everything(rig.table), new Set(OWN));
    const { services, destinations, addresses } = ledgers;
    const claims = [claimAll(services), claimAll(destinations), claimAll(addresses)];
    for (const claim of [...claims, ...SET_ROLES.map((role) => claimAll(ledgers.elements[role]))]) claim.acknowledge();
    return [ledgers, desired];
  };
  const kept = [load()];
  const weigh = (): number => {
    const before = held();
    kept.push(load());
    return Math.round((held() - before) / SERVICES);
  };
  // Code that was compiled weighs on one of them.
  const weights = [weigh(), weigh(), weigh()];
  const bytes = Math.min(...weights);
  t.comment(`${weights.join()} bytes`);
  t.ok(bytes < 420, `${bytes} bytes`);
  for (const [{ services }, desired] of kept) {
    t.equal(new Set(services.acknowledged.values()).size, 1, 'equal states are one');
    t.ok(desired.isServed('10.96.0.1:80/TCP'));
  }
  t.end();
});
