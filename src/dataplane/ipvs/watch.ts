import type { Family } from '../../base/ip.js';
import type { RouteAddon } from '../../native/contract.js';
import type { WatchForeignChanges } from '../contract.js';

/** A family, and whether its addresses are others than they were known to be. */
export interface Looked {
  readonly family: Family;
  addressesDiffer(): Promise<boolean>;
}

/**
 * Notifies of addresses that came or went: those on the mode's link are its own, and node ports answer on all others. The kernel does
 * not notify of external changes to virtual services and sets.
 */
export function watchAddresses(
  addon: Pick<RouteAddon, 'routeWatch'>,
  families: () => Iterable<Looked>,
): WatchForeignChanges {
  return (onChange) => {
    let ended = false;
    const lookAt = async (one: Looked): Promise<void> => {
      const change = await one.addressesDiffer().then(
        (differ) => (differ ? { missed: false } : null),
        () => ({ missed: true }),
      );
      if (change !== null && !ended) onChange({ families: [one.family], process: null, ...change });
    };
    // Links come and go with every pod: one look at a time, and one more for all notifications that came meanwhile.
    let looked: Promise<unknown> = Promise.resolve();
    let isAsked = false;
    const end = addon.routeWatch(() => {
      if (isAsked) return;
      isAsked = true;
      looked = looked.then(() => {
        isAsked = false;
        return Promise.all([...families()].map(lookAt));
      });
    });
    return () => {
      ended = true;
      end();
    };
  };
}
