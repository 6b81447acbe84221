import type { Limitation } from './contract.js';

/** For a mode that has no rules to give new flows timeouts of their own. @param why for people. */
export function attemptsWait(why: string): Limitation {
  return {
    of: 'mode',
    text: `connection attempts wait for an endpoint that does not answer until it is removed: ${why}`,
  };
}

/** For a mode that resets no connections to endpoints that are gone. */
export const CONNECTIONS_GO_ON: Limitation = {
  of: 'mode',
  text: 'clients of a removed endpoint learn of it by their own timeouts: mode nftables resets their connections',
};

/** For a mode in which the kernel does not count connection attempts by endpoint. */
export const ATTEMPTS_NOT_COUNTED: Limitation = {
  of: 'mode',
  text: 'endpoints that do not answer are not named: modes nftables and iptables count connection attempts',
};
