import type { ServiceAddon } from '../native/contract.js';
import { endAsBySignal } from './signals.js';

/** How long ending takes at most: the last words of events, and connections that are answered to their end. */
const STOP_SECONDS = 20;

/**
 * Runs as the service that Windows' service manager started. Its wish to stop is as good as a signal. A run that fails ends the process without a word to the
 * manager, which takes that for a crash and does what the service's failure actions say.
 */
export async function runAsService(service: ServiceAddon, run: () => Promise<number>): Promise<number> {
  await service.serviceConnect(() => {
    service.serviceReport('stopping', STOP_SECONDS);
    endAsBySignal('SIGTERM');
  });
  service.serviceReport('running', 0);
  const status = await run();
  if (status === 0) service.serviceReport('stopped', 0);
  return status;
}
