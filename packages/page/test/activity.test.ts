import t from 'tap';
import type { Activity, TriageAnswer } from '../src/api.js';
import { service, slice } from '../../../test/support/rows.js';
import { pageScene } from './ui-scene.js';

t.test('the page records activity in steps of 5 s for 15 minutes, while clients ask for it', async (t) => {
  const scene = await pageScene(t);
  scene.say([service('web', {}), slice('web', [{ address: '10.0.0.1' }])]);
  const activity = async (): Promise<Activity> => (await scene.read<TriageAnswer>('triage')).activity;
  t.match(await activity(), { endedAt: null, syncMs: [], connections: [], busiest: null });
  scene.traffic = [];
  scene.sync();
  const step = async (): Promise<void> => {
    await scene.clock.advance(5000);
    // The traffic is told by a promise.
    await new Promise(setImmediate);
  };
  await step();
  t.match(await activity(), { endedAt: String, syncMs: [1], changes: [1], connections: [null], busiest: null });
  const port = { service: 'default/web', port: '', protocol: 'TCP', requestPackets: 9, replyPackets: 9 } as const;
  const rest = { requestBytes: 1000, replyBytes: 4000, endpoints: [] };
  const refused = [{ verdict: 'refused', reason: 'no-endpoints', packets: 10 }] as const;
  scene.traffic = [{ ...port, ...rest, connections: 50, refused }];
  await step();
  t.match(await activity(), {
    syncMs: [1, null],
    changes: [1, 0],
    connections: [null, 50],
    refused: [null, 10],
    busiest: [{ key: 'default/web', connections: 10, bytes: 1000, refused: 2 }],
  });
  await step();
  t.match(await activity(), { connections: [null, 50, 0], busiest: [] });
  const before = scene.clock.now();
  scene.trafficAt = before;
  await step();
  t.match(await activity(), { connections: [null, 50, 0, null], busiest: [] }, 'nothing was read in this step');
  scene.trafficAt = before + 10_000;
  scene.traffic = [{ ...port, ...rest, connections: 250, refused }];
  await step();
  t.match(
    await activity(),
    { connections: [null, 50, 0, null, 100], busiest: [{ key: 'default/web', connections: 20 }] },
    'two steps share what was read after them',
  );
  for (let count = 0; count < 180; count++) {
    await step();
    if (count % 90 === 0) await activity();
  }
  t.equal((await activity()).syncMs.length, 180);
  for (let count = 0; count <= 181; count++) await step();
  t.equal(scene.clock.waiting, 0, 'nothing is measured or kept any more');
  t.match(await activity(), { endedAt: null, syncMs: [] });
});
