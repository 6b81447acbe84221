import type { Sysctl } from '../base/sysctl.js';
import type { Config } from '../config/config.js';
import { restorableSysctls } from '../dataplane/modes.js';
import type { ConntrackSettings, Host, KernelValue } from '../host/host.js';

const UNCHANGED: ConntrackSettings = {
  maxPerCore: 0,
  min: 0,
  tcpBeLiberal: false,
  tcpEstablishedMs: null,
  tcpCloseWaitMs: null,
  udpMs: null,
  udpStreamMs: null,
};

/**
 * Gives the sysctls of modes the kernel's own values, those of them that are as the mode sets them: what they were before the mode is not known to a process that
 * was not there. Answers what failed.
 */
export async function restoreSysctls(
  config: Config,
  host: Pick<Host, 'platform' | 'kernelValues' | 'compareKernelValues' | 'applyKernelValues'>,
): Promise<readonly string[]> {
  const begun = restorableSysctls(host.platform, config);
  const values = (sysctls: readonly Sysctl[]): readonly KernelValue[] =>
    host.kernelValues({ conntrack: UNCHANGED, sysctls, opensLoopback: false });
  const others = new Set((await host.compareKernelValues(values(begun))).map(({ path }) => path));
  const initial = values(begun.map((each) => ({ ...each, value: each.initial ?? each.value })));
  const { problems } = await host.applyKernelValues(initial.filter(({ path }) => !others.has(path)));
  // One that this kernel does not have needs nothing.
  return problems.flatMap(({ errno, message }) => (errno === 'ENOENT' ? [] : [message]));
}
