import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { errorCode, messageOf } from '../../base/error-message.js';
import { isBefore, parseKernelRelease } from '../../base/kernel-release.js';
import type { SeenFile, Sysctl } from '../../base/sysctl.js';
import type { ConntrackSettings, KernelValue, KernelValueProblem, KernelValueReport, WrittenValue } from '../host.js';

/** Reads and writes whole small files; errors carry `code`. */
export interface KernelFiles {
  /** The kernel makes the text up at once: to have another thread read it costs several times as much. */
  read(path: string): string;
  /** May take a while: conntrack moves all flows into a table of another size. */
  write(path: string, text: string): Promise<void>;
}

const SYSCTL = '/proc/sys/net/netfilter';
const HASH_SIZE = '/sys/module/nf_conntrack/parameters/hashsize';
const OOM_SCORE_ADJ = '/proc/self/oom_score_adj';

/** Scaling with cores ends here: at some 300 bytes a flow, a machine with many cores would reserve more than anyone meant. */
const SCALED_MAX = 1 << 20;

/**
 * What the conntrack sysctls should be (behaviour ST-40 to ST-43), in the order to write them. Unlike in kube-proxy an explicit `min` above
 * the cap on the scaled value holds, and a duration below a second counts as one second instead of as 0.
 *
 * @param cores of the machine, not those this process may use.
 */
export function conntrackValues(settings: ConntrackSettings, cores: number): readonly KernelValue[] {
  const values: KernelValue[] = [];
  if (settings.maxPerCore > 0) {
    const max = Math.max(settings.min, Math.min(settings.maxPerCore * cores, SCALED_MAX));
    // Somebody who raised it has a reason, and a lowered one drops new flows.
    values.push({ path: `${SYSCTL}/nf_conntrack_max`, value: max, match: 'at-least' });
    // At most four flows per hash bucket when the table is full.
    values.push({ path: HASH_SIZE, value: Math.floor(max / 4), match: 'at-least' });
  }
  const timeouts = {
    nf_conntrack_tcp_timeout_established: settings.tcpEstablishedMs,
    nf_conntrack_tcp_timeout_close_wait: settings.tcpCloseWaitMs,
    nf_conntrack_udp_timeout: settings.udpMs,
    nf_conntrack_udp_timeout_stream: settings.udpStreamMs,
  };
  for (const [name, milliseconds] of Object.entries(timeouts)) {
    if (milliseconds === null || milliseconds <= 0) continue;
    values.push({ path: `${SYSCTL}/${name}`, value: Math.max(1, Math.floor(milliseconds / 1000)), match: 'equal' });
  }
  if (settings.tcpBeLiberal) {
    values.push({ path: `${SYSCTL}/nf_conntrack_tcp_be_liberal`, value: 1, match: 'equal' });
  }
  return values;
}

/** @param release of the kernel, as uname(2) reports it. */
export function sysctlValues(sysctls: readonly Sysctl[], release: string): readonly KernelValue[] {
  const kernel = parseKernelRelease(release) ?? [0, 0];
  return sysctls
    .filter(
      ({ kernels }) => kernels === undefined || (!isBefore(kernel, kernels.from) && isBefore(kernel, kernels.before)),
    )
    .map(({ name, value, stays }) => ({
      path: `/proc/sys/${name.replaceAll('.', '/')}`,
      value,
      match: 'equal',
      ...(stays === undefined ? {} : { stays }),
    }));
}

/** See {@link Host.applyKernelValues}. Values that are right are not written, so it succeeds on a read-only /proc/sys. */
export async function applyKernelValues(
  values: readonly KernelValue[],
  files: KernelFiles = KERNEL_FILES,
): Promise<KernelValueReport> {
  const written: WrittenValue[] = [];
  const problems: KernelValueProblem[] = [];
  const seen: SeenFile[] = [];
  for (const wanted of values) {
    const { path } = wanted;
    let found: string | null = null;
    try {
      found = files.read(path).trim();
      const isOurs = wanted.inPlaceOf === undefined || Number(found) === wanted.inPlaceOf;
      if (isOurs && !isRight(found, wanted)) {
        await files.write(path, `${wanted.value}`);
        written.push({ ...wanted, found });
        found = `${wanted.value}`;
      }
    } catch (error) {
      problems.push(problemOf(wanted, found, error));
    }
    seen.push({ path, text: found });
  }
  return { written, problems, seen };
}

/**
 * The value that lets node ports answer on 127.0.0.0/8 (behaviour ST-44): the kernel otherwise drops what it should route off loopback. It also makes the
 * kernel take packets from the network to 127.0.0.0/8. So it must not be set before the rule that drops these is there (IT-21).
 */
export const ROUTE_LOCALNET: KernelValue = {
  path: '/proc/sys/net/ipv4/conf/all/route_localnet',
  value: 1,
  match: 'equal',
  advice:
    'node ports do not answer on 127.0.0.1: set net.ipv4.conf.all.route_localnet=1 on the node (in /etc/sysctl.d), or localhostNodePorts to false',
};

/** See {@link Host.isTcpBeLiberal}. */
export function isTcpBeLiberal(files: KernelFiles = KERNEL_FILES): boolean {
  try {
    return files.read(`${SYSCTL}/nf_conntrack_tcp_be_liberal`).trim() !== '0';
  } catch {
    return false;
  }
}

/** See {@link Host.setOomPriority}. */
export async function applyOomScoreAdj(
  score: number,
  files: KernelFiles = KERNEL_FILES,
): Promise<KernelValueProblem | null> {
  const { problems } = await applyKernelValues([{ path: OOM_SCORE_ADJ, value: score, match: 'equal' }], files);
  return problems[0] ?? null;
}

function isRight(found: string, wanted: KernelValue): boolean {
  if (!/^-?\d+$/.test(found)) return false;
  return wanted.match === 'equal' ? Number(found) === wanted.value : Number(found) >= wanted.value;
}

function problemOf(wanted: KernelValue, found: string | null, error: unknown): KernelValueProblem {
  const errno = errorCode(error);
  const reason = errno ?? messageOf(error);
  const failure = found === null ? `cannot be read: ${reason}` : `is ${found} and cannot be written: ${reason}`;
  const atLeast = wanted.match === 'at-least' ? 'at least ' : '';
  const advice = wanted.advice === undefined ? '' : ` (${wanted.advice})`;
  const message = `${wanted.path} should be ${atLeast}${wanted.value}, ${failure}${advice}`;
  return { path: wanted.path, wanted: wanted.value, found, errno, message };
}

/** Where a container may find the host's own files that are read-only in its own /proc: a mount of them all or of a part. */
const HOST_ROOT = '/host';

/**
 * The kernel's own files. What cannot be written is written below {@link HOST_ROOT}, if it is there. Opened without O_CREAT and O_TRUNC: a missing sysctl
 * answers ENOENT rather than EACCES.
 */
export const KERNEL_FILES: KernelFiles = {
  read: (path) => readFileSync(path, 'utf8'),
  async write(path, text) {
    try {
      await overwrite(path, text);
    } catch (error) {
      if (!existsSync(`${HOST_ROOT}${path}`)) throw error;
      await overwrite(`${HOST_ROOT}${path}`, text);
    }
  },
};

function overwrite(path: string, text: string): Promise<void> {
  return writeFile(path, text, { flag: 'r+' });
}
