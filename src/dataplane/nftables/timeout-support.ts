import { isDeepStrictEqual } from 'node:util';
import type { ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { Limitation } from '../contract.js';
import { addTable, addTimeout, deleteChain } from './json.js';
import { NFT_FAMILY } from './names.js';
import { RetryTimeouts } from './retry.js';

/** No chain has this name: what is asked of it is refused, and with it all of the transaction. */
const TRIAL_TABLE = 'kube-proxy-trial';
/** The operations of a trial: the object, and one that fails if the kernel has taken the object. */
const OBJECT = 1;
const END = 2;
/** Refusals that do not show what the kernel has. */
const PASSING: readonly string[] = ['ENOMEM', 'ENOBUFS', 'EAGAIN', 'EINTR'];

export const NO_TIMEOUT_OBJECTS: Limitation = {
  of: 'kernel',
  text: 'connection attempts wait for an endpoint that does not answer: this kernel has no ct timeout objects (CONFIG_NF_CONNTRACK_TIMEOUT, CONFIG_NFT_CT)',
};

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

  /** Whether sysctls have changed since they were last asked for. */
  get isOutdated(): boolean {
    return this.sysctls !== null && !isDeepStrictEqual(this.sysctls, this.read());
  }

  /** The kernel was seen to hold one, so it need not be asked any more. */
  held(): void {
    this.isSupported = true;
  }

  /** The timeouts that rules give flows, by the present sysctls; null: this kernel has no such objects. */
  async current(): Promise<RetryTimeouts | null> {
    this.isSupported ??= await this.isTaken();
    return this.isSupported ? this.ofKernel() : null;
  }

  /** The same where it is known that the kernel has them. */
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
      // Where nothing is really sent.
      return true;
    } catch (error) {
      if (!isNativeError(error) || (error.index !== OBJECT && error.index !== END)) throw error;
      if (PASSING.includes(error.errno ?? '')) throw error;
      return error.index === END;
    }
  }
}
