import t from 'tap';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { parseQuestion } from '../../src/plan/question.js';
import { explainRunning, printExplainedPacket } from '../../src/serve/explain-packet.js';
import { NODE_ROWS, Rig } from '../dataplane/ipvs/rig.js';
import { KernelError } from '../support/fake-kernel/kernel-error.js';
import { planSettings } from '../support/plan-settings.js';
import { service, slice } from '../support/rows.js';

t.test('explain reports that the endpoint of an affinity client cannot be read, if it matters', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, service('web', { affinitySeconds: 100 }), slice('web', [{ address: '10.0.0.1' }])]);
  await rig.sync();
  const { ipvs } = rig.kernel.addon;
  ipvs.ipvsRemembered = () =>
    Promise.reject(new KernelError('EFBIG', 'ipvs remembered', { object: null, index: null, element: null }));
  const planned = { snapshot: rig.store.snapshot, table: rig.table, settings: planSettings() };
  const ask = async (from: string, to: string): Promise<readonly string[]> => {
    const question = parseQuestion(from, to);
    const state = { pendingMs: null, quarantined: [] };
    const answer = await explainRunning(planned, LINUX_HOST, rig.dataplane, state, question);
    return printExplainedPacket(answer).filter((line) => /^(remembered|affinity)/.test(line));
  };
  t.same(await ask('10.0.0.9', '10.96.0.10:80'), [
    'affinity    by client address, for 100 s',
    'remembered  not known: ipvs remembered: EFBIG',
  ]);
  t.same(await ask('external', '10.96.0.10:80'), ['affinity    by client address, for 100 s'], 'of no client');
  t.same(await ask('10.0.0.9', '10.96.0.10:81'), [], 'no frontend');
});
