import type { NativeAddon } from '../../../src/native/contract.js';

/** Calls that change something in the kernel. */
const WRITES =
  /^(?:nftTransact|iptablesRestore|accountCreate|timeoutSet|timeoutDelete|ipvsApply|ipvsSetTimeouts|ipsetApply|addressApply|linkEnsureDummy|linkDelete|conntrackDelete|conntrackChallenge)$/;

/** Calls that only compute, or only end with the process. */
const HARMLESS = /^(?:nftCompile|nftEncode|nftMaxBatch|\w+Watch|iptablesEncode|iptablesListingMs|peerName|peerUser)$/;

/** An addon of a process that may be killed at any write to the kernel: from then on it does nothing more. */
export class Mortal {
  readonly addon: NativeAddon;
  private isDead = false;
  /** Writes left until then, and whether the last one still happens. */
  private end: { writes: number; readonly happens: boolean } | null = null;

  constructor(addon: NativeAddon) {
    this.addon = this.guarded(addon);
  }

  /** @param write how many writes happen before the one at which the process is killed. */
  killAt(write: number, happens: boolean): void {
    this.end = { writes: write, happens };
  }

  private guarded<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value === 'function')
          return (...parameters: unknown[]) =>
            this.call(String(name), () => Reflect.apply(value, target, parameters) as unknown);
        return typeof value === 'object' && value !== null ? this.guarded(value) : value;
      },
    });
  }

  private call(name: string, happen: () => unknown): unknown {
    if (HARMLESS.test(name)) return happen();
    if (this.isDead) return killed();
    if (this.end === null || !WRITES.test(name)) return happen();
    if (this.end.writes-- > 0) return happen();
    this.isDead = true;
    if (!this.end.happens) return killed();
    return Promise.resolve(happen()).then(killed, killed);
  }
}

function killed(): Promise<never> {
  return Promise.reject(new Error('killed'));
}
