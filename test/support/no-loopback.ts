import type { LoopbackConnections } from '../../src/control/loopback.js';

/** For a rig whose node ports do not answer on loopback. */
export const NO_LOOPBACK: LoopbackConnections = {
  sync: () => undefined,
  endpoints: () => [],
  failures: () => [],
  reset: () => 0,
};
