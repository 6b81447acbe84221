import { isNativeError, type NativeError } from '../../native/errors.js';

/** HNS may do the same another time: nothing is wrong with the object. */
const PASSING: ReadonlySet<string> = new Set([
  'EPT_S_NOT_REGISTERED',
  'E_OUTOFMEMORY',
  'ERROR_BUSY',
  'ERROR_NOT_READY',
  'ERROR_NO_SYSTEM_RESOURCES',
  'ERROR_SERVICE_NOT_ACTIVE',
  'ERROR_SHUTDOWN_IN_PROGRESS',
  'ERROR_TIMEOUT',
  'HCN_E_MANAGER_STOPPED',
  'RPC_S_CALL_FAILED',
  'RPC_S_CALL_FAILED_DNE',
  'RPC_S_SERVER_TOO_BUSY',
  'RPC_S_SERVER_UNAVAILABLE',
  'RPC_S_UNKNOWN_IF',
  'WAIT_TIMEOUT',
]);

export function isPassing({ errno }: NativeError): boolean {
  return errno !== null && PASSING.has(errno);
}

/** How long a start waits for HNS, which starts with the machine too; milliseconds. */
const PATIENCE_MS = 120_000;
const PAUSE_MS = 1000;

/**
 * Asks until HNS answers.
 *
 * @param pause waits so many milliseconds.
 * @param onWaiting called once, when HNS is not there yet.
 * @throws what HNS answered last, when it takes too long, and what will not pass.
 */
export async function waitForHns<T>(
  ask: () => Promise<T>,
  pause: (ms: number) => Promise<unknown>,
  onWaiting: (error: NativeError) => void,
): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += PAUSE_MS) {
    try {
      return await ask();
    } catch (error) {
      if (!isNativeError(error) || !isPassing(error) || waitedMs >= PATIENCE_MS) throw error;
      if (waitedMs === 0) onWaiting(error);
      await pause(PAUSE_MS);
    }
  }
}
