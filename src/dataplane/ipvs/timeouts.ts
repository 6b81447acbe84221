import { messageOf } from '../../base/error-message.js';
import type { IpvsConfig } from '../../config/config.js';
import type { IpvsAddon, IpvsTimeouts } from '../../native/contract.js';
import type { IpvsMessage } from './print.js';

interface TimeoutsReport {
  /** External changes since it was set. */
  readonly repairs: readonly string[];
  /** Settings that the kernel does not take. */
  readonly problems: readonly string[];
}

const NOTHING: TimeoutsReport = { repairs: [], problems: [] };

/** The configured timeouts of ip_vs, one set for both families (behaviour ST-46). In seconds; 0: unchanged. */
export class Timeouts {
  private readonly wanted: IpvsTimeouts;
  private isSet = false;

  /** @param onMessage called with what is sent. */
  constructor(
    private readonly addon: Pick<IpvsAddon, 'ipvsTimeouts' | 'ipvsSetTimeouts'>,
    { tcpTimeout, tcpFinTimeout, udpTimeout }: Pick<IpvsConfig, 'tcpTimeout' | 'tcpFinTimeout' | 'udpTimeout'>,
    private readonly onMessage: (message: IpvsMessage) => void,
  ) {
    this.wanted = { tcp: seconds(tcpTimeout), tcpFin: seconds(tcpFinTimeout), udp: seconds(udpTimeout) };
  }

  /** Whether there was an external change since they were set. */
  async differ(): Promise<boolean> {
    return this.isSet && this.wrong(await this.addon.ipvsTimeouts()).length > 0;
  }

  private wrong(held: IpvsTimeouts | null): readonly (keyof IpvsTimeouts)[] {
    return NAMES.filter((name) => this.wanted[name] !== 0 && held?.[name] !== this.wanted[name]);
  }

  /** Sets them where they differ. Without them everything else works, so that never rejects. */
  async keep(): Promise<TimeoutsReport> {
    const { wanted, addon } = this;
    if (NAMES.every((name) => wanted[name] === 0)) return NOTHING;
    try {
      const held = await addon.ipvsTimeouts();
      const wrong = this.wrong(held);
      const repairs = this.isSet ? wrong.map((name) => `timeout ${name} was ${held?.[name] ?? 'unknown'} s`) : [];
      if (wrong.length > 0) {
        this.onMessage({ type: 'timeouts', timeouts: wanted });
        await addon.ipvsSetTimeouts(wanted);
      }
      this.isSet = true;
      return { repairs, problems: [] };
    } catch (error) {
      return { repairs: [], problems: [`cannot set the timeouts of ip_vs: ${messageOf(error)}`] };
    }
  }
}

const NAMES = ['tcp', 'tcpFin', 'udp'] as const;

/** As sysctls of conntrack are rounded: less than a second would be none. */
function seconds(milliseconds: number): number {
  return milliseconds === 0 ? 0 : Math.max(1, Math.floor(milliseconds / 1000));
}
