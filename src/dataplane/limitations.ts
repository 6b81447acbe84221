import type { Limitation } from './contract.js';

/** Of a mode that has no rules by which new flows get timeouts of their own. @param why for people. */
export function attemptsWait(why: string): Limitation {
  return {
    of: 'mode',
    text: `connection attempts wait for an endpoint that does not answer until it is removed: ${why}`,
  };
}
