import { isDeepStrictEqual } from 'node:util';
import type { ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { Limitation } from '../contract.js';
import { addTable, addTimeout, COUNTER, deleteChain } from './json.js';
import { NFT_FAMILY } from './names.js';
import { RetryTimeouts } from './retry.js';

/** No chain has this name: an operation on it is refused, and the whole transaction with it. */
const TRIAL_TABLE = 'kube-proxy-trial';
/** The operations of a trial: the object, and one that fails if the kernel accepted the object. */
const OBJECT = 1;
const END = 2;
/** Errors that do not show what the kernel supports. */
export const PASSING: readonly string[] = ['ENOMEM', 'ENOBUFS', 'EAGAIN', 'EINTR'];

export const NO_TIMEOUT_OBJECTS: Limitation = {
  of: 'kernel',
  text: 'connection attempts wait for an endpoint that does not answer: this kernel has no ct timeout objects (CONFIG_NF_CONNTRACK_TIMEOUT, CONFIG_NFT_CT)',
};

/** Whether any of a table's objects is a `ct timeout`. */
export function hasTimeouts(declarations: Iterable<string>): boolean {
  return [...declarations].some((declaration) => declaration !== COUNTER);
}

/** Whether this kernel has objects for unanswered attempts, and with which values. */
export class TimeoutSupport {
  /** Null: not known yet. */
  private isSupported: boolean | null = null;
  private sysctls: ConntrackTimeouts | null = null;

  /** @param read the sysctls in force. */
  constructor(
    private readonly addon: Pick<NftablesAddon, 'nftTransact'>,
    private readonly family: Family,
    private readonly read: () => ConntrackTimeouts,
  ) {}

  get isLacking(): boolean {
    return this.isSupported === false;
  }

  /** Whether sysctls have changed since they were last read. */
  get isOutdated(): boolean {
    return this.sysctls !== null && !isDeepStrictEqual(this.sysctls, this.read());
  }

  /** The kernel holds such an object, so no trial is needed. */
  held(): void {
    this.isSupported = true;
  }

  /** The timeouts that rules give flows, by the present sysctls; null: this kernel has no such objects. */
  async current(): Promise<RetryTimeouts | null> {
    this.isSupported ??= await this.isTaken();
    return this.isSupported ? this.ofKernel() : null;
  }

  /** The same, if the kernel is known to support them. */
  ofKernel(): RetryTimeouts {
    this.sysctls = this.read();
    return new RetryTimeouts(this.sysctls);
  }

  /** Tries a transaction that never commits: nothing changes, and there is no notification. */
  private async isTaken(): Promise<boolean> {
    const where = { family: NFT_FAMILY[this.family], table: TRIAL_TABLE };
    const object = addTimeout(where, new RetryTimeouts(this.read()).declaration('tcp-1'));
    const commands = [addTable(where), object, deleteChain(where, 'none')];
    const operations = commands.map((command) => ({ type: 'commands' as const, commands: [command] }));
    try {
      await this.addon.nftTransact({ ...where, operations });
      // With an addon that sends nothing.
      return true;
    } catch (error) {
      if (!isNativeError(error) || (error.index !== OBJECT && error.index !== END)) throw error;
      if (PASSING.includes(error.errno ?? '')) throw error;
      return error.index === END;
    }
  }
}
