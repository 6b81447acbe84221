import { systemClock } from '../src/base/clock.js';
import { loadAddon } from '../src/native/load.js';
import { Planner } from '../src/plan/planner.js';
import { NodePortListeners } from '../src/serve/node-port-listeners.js';
import { Store } from '../src/state/store.js';
import { planSettings } from '../test/support/plan-settings.js';
import { RecordingLog } from '../test/support/recording-log.js';
import { address, service, slice } from '../test/support/rows.js';

/** The listener of `loopback.ts`: it is sent its endpoint's port, answers its own, and then its CPU time in microseconds whenever it is asked. */

const HOST = '127.0.0.1';
const NODE_PORT = 30_999;

const store = new Store();
const planner = new Planner(planSettings({ nodeName: 'me' }));
const listeners = new NodePortListeners({
  clock: systemClock,
  log: new RecordingLog(),
  events: { record: () => undefined },
  metrics: { register: () => undefined as never },
  names: undefined,
  relay: () => loadAddon().relay,
});

function listen(port: number): void {
  const ports = [{ port: 80, nodePort: NODE_PORT }];
  const rows = [service('web', { type: 'NodePort', ports }), slice('web', [{ address: HOST }], { ports: [{ port }] })];
  store.register('bench').apply(rows.map((row) => ({ type: 'upsert', row })));
  planner.update(store.snapshot, store.takeChanges());
  const table = planner.tables.IPv4;
  const loopback = {
    family: 'IPv4' as const,
    node: { nodePortListener: address(HOST) },
    frontend: table.frontend.bind(table),
    frontends: table.frontends.bind(table),
  };
  listeners.sync(loopback, table.takeChange());
}

process.on('message', (message) => {
  if (typeof message === 'number') {
    listen(message);
    // The listener is open at the latest when what is asked of the kernel after it is done.
    setImmediate(() => process.send?.(NODE_PORT));
    return;
  }
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on('disconnect', () => {
  listeners.close();
});
