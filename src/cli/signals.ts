import { constants } from 'node:os';

export type EndSignal = 'SIGTERM' | 'SIGINT';

/** Ends the process as it would end without a handler. */
function endAtOnce(signal: EndSignal): void {
  process.exit(128 + constants.signals[signal]);
}

let handler: (signal: EndSignal) => void = endAtOnce;

// To be imported before all else. For the first process of a container the kernel knows no default: until there is a handler it does not hear a signal, and
// whoever waits for its end waits for the whole grace period.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    const handle = handler;
    handler = endAtOnce;
    handle(signal);
  });
}

/** From now on this is what becomes of the first SIGTERM or SIGINT; a second one ends the process at once. */
export function handleSignals(handle: (signal: EndSignal) => void): void {
  handler = handle;
}
