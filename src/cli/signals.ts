import { constants } from 'node:os';

type EndSignal = 'SIGTERM' | 'SIGINT' | 'SIGBREAK' | 'SIGHUP';

/** Windows knows no SIGTERM; there a console that is interrupted or closed is what ends a process. */
const SIGNALS: readonly EndSignal[] =
  process.platform === 'win32' ? ['SIGTERM', 'SIGINT', 'SIGBREAK', 'SIGHUP'] : ['SIGTERM', 'SIGINT'];

/** Ends the process as it would end without a handler. */
function endAtOnce(signal: EndSignal): void {
  process.exit(128 + constants.signals[signal]);
}

let handler: (signal: EndSignal) => void = endAtOnce;

/** What becomes of a signal becomes of this: the first one is handled, a second one ends the process at once. */
export function endAsBySignal(signal: EndSignal): void {
  const handle = handler;
  handler = endAtOnce;
  handle(signal);
}

// To be imported before all else. For the first process of a container the kernel knows no default: until there is a handler it does not hear a signal, and
// a supervisor would wait for the whole grace period.
for (const signal of SIGNALS) process.on(signal, endAsBySignal);

/** From now on this is what becomes of the first signal that ends the process; a second one ends it at once. */
export function handleSignals(handle: (signal: EndSignal) => void): void {
  handler = handle;
}
