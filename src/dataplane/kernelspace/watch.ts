import type { HcnAddon } from '../../native/contract.js';
import type { WatchForeignChanges } from '../contract.js';
import type { KernelspaceFamily } from './family.js';

type Looked = Pick<KernelspaceFamily, 'family' | 'stirred'>;

/**
 * Tells of a network that went or came back, as soon as HNS tells of networks. What others do to endpoints and load balancers HNS tells nobody. Where it does not
 * let us listen, the look that is taken every second finds the same.
 */
export function watchHns(hcn: Pick<HcnAddon, 'hcnWatch'>, families: () => Iterable<Looked>): WatchForeignChanges {
  return (onChange) => {
    let ended = false;
    let end = (): void => undefined;
    const lookAt = async (one: Looked, missed: boolean): Promise<void> => {
      const told = missed || (await one.stirred().catch(() => true));
      if (told && !ended) onChange({ families: [one.family], missed, process: null });
    };
    const listen = async (): Promise<void> => {
      const stop = await hcn.hcnWatch(({ networks, disconnected }) => {
        if (networks || disconnected) for (const one of families()) void lookAt(one, disconnected);
        // It hears nothing more.
        if (disconnected && !ended) void listen().catch(() => undefined);
      });
      if (ended) stop();
      else end = stop;
    };
    void listen().catch(() => undefined);
    return () => {
      ended = true;
      end();
    };
  };
}
