import type { Footprint } from '../removal/footprint.js';

/** A table beside those of the mode, in both families. */
export const ATTEMPTS_TABLE = 'pointsman-attempts';

/** The objects that a process leaves if it is killed while it counts. */
export const ATTEMPTS_FOOTPRINT: Footprint = {
  nftTables: [
    {
      name: ATTEMPTS_TABLE,
      notes: [],
      readNotes: () => Promise.resolve([]),
      removalFromShared: () => Promise.resolve(null),
    },
  ],
  chains: null,
  ipvs: null,
};
