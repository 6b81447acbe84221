import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import t from 'tap';

import type { ConntrackSettings } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import {
  applyKernelValues,
  applyOomScoreAdj,
  conntrackValues,
  isTcpBeLiberal,
  KERNEL_FILES,
  ROUTE_LOCALNET,
  sysctlValues,
  type KernelFiles,
} from '../../src/host/linux/sysctl.js';

const NF = '/proc/sys/net/netfilter';
const HASH_SIZE = '/sys/module/nf_conntrack/parameters/hashsize';

const NOTHING: ConntrackSettings = {
  maxPerCore: 0,
  min: 0,
  tcpEstablishedMs: null,
  tcpCloseWaitMs: null,
  udpMs: null,
  udpStreamMs: null,
  tcpBeLiberal: false,
};

/** The defaults of KubeProxyConfiguration v1alpha1. */
const DEFAULTS: ConntrackSettings = {
  ...NOTHING,
  maxPerCore: 32_768,
  min: 131_072,
  tcpEstablishedMs: 86_400_000,
  tcpCloseWaitMs: 3_600_000,
  udpMs: 0,
  udpStreamMs: 0,
};

class MemoryFiles implements KernelFiles {
  readonly writes: string[] = [];
  readonly readOnly = new Set<string>();
  readonly #contents: Map<string, string>;

  constructor(contents: Readonly<Record<string, string>>) {
    this.#contents = new Map(Object.entries(contents));
  }

  read(path: string): string {
    const found = this.#contents.get(path);
    if (found === undefined) throw refusal('ENOENT');
    return found;
  }

  write(path: string, text: string): Promise<void> {
    if (this.readOnly.has(path)) return Promise.reject(refusal('EROFS'));
    this.writes.push(`${path} ${text}`);
    this.#contents.set(path, `${text}\n`);
    return Promise.resolve();
  }
}

function refusal(code: string): Error {
  return Object.assign(new Error(`${code}: refused`), { code });
}

function shown(settings: ConntrackSettings, cores: number): string[] {
  return conntrackValues(settings, cores).map(
    ({ path, value, match }) => `${path.split('/').pop() ?? ''} ${match === 'equal' ? '=' : '>='} ${value}`,
  );
}

t.test('nf_conntrack_max follows cores and minimum, and the hash size follows it', (t) => {
  const cases: readonly [string, number, number, number, number | null][] = [
    ['scaled by cores', 32_768, 131_072, 8, 262_144],
    ['at least min', 32_768, 131_072, 2, 131_072],
    ['no min', 1000, 0, 2, 2000],
    ['scaling is capped', 32_768, 131_072, 64, 1_048_576],
    ['exactly at the cap', 32_768, 0, 32, 1_048_576],
    ['min above the cap holds', 32_768, 2_000_000, 64, 2_000_000],
    ['maxPerCore 0 leaves it, whatever min says', 0, 2_000_000, 64, null],
  ];
  for (const [name, maxPerCore, min, cores, max] of cases) {
    const expected = max === null ? [] : [`nf_conntrack_max >= ${max}`, `hashsize >= ${Math.floor(max / 4)}`];
    t.same(shown({ ...NOTHING, maxPerCore, min }, cores), expected, name);
  }
  t.end();
});

t.test('conntrack timeouts are whole seconds, and be_liberal is only switched on', (t) => {
  t.same(shown(NOTHING, 4), []);
  t.same(shown(DEFAULTS, 4), [
    'nf_conntrack_max >= 131072',
    'hashsize >= 32768',
    'nf_conntrack_tcp_timeout_established = 86400',
    'nf_conntrack_tcp_timeout_close_wait = 3600',
  ]);
  t.same(shown({ ...NOTHING, udpMs: 30_999, udpStreamMs: 20, tcpBeLiberal: true }, 4), [
    'nf_conntrack_udp_timeout = 30',
    'nf_conntrack_udp_timeout_stream = 1',
    'nf_conntrack_tcp_be_liberal = 1',
  ]);
  t.end();
});

t.test('only sysctls that differ are written, in order', async (t) => {
  const files = new MemoryFiles({
    [`${NF}/nf_conntrack_max`]: '65536\n',
    [HASH_SIZE]: '16384\n',
    [`${NF}/nf_conntrack_tcp_timeout_established`]: '86400\n',
    [`${NF}/nf_conntrack_tcp_timeout_close_wait`]: '60\n',
  });
  const report = await applyKernelValues(conntrackValues(DEFAULTS, 2), files);
  const expected = [
    `${NF}/nf_conntrack_max 131072`,
    `${HASH_SIZE} 32768`,
    `${NF}/nf_conntrack_tcp_timeout_close_wait 3600`,
  ];
  t.same(files.writes, expected);
  t.same(
    report.written.map(({ path, value }) => `${path} ${value}`),
    expected,
  );
  t.same(report.problems, []);

  const again = await applyKernelValues(conntrackValues(DEFAULTS, 2), files);
  t.match(again, { written: [], problems: [] });
  t.same(again.seen, report.seen, 'what was written is what the files say');
  t.equal(files.writes.length, 3);
});

t.test('ST-40: a larger conntrack table stays, also where it cannot be written', async (t) => {
  const files = new MemoryFiles({ [`${NF}/nf_conntrack_max`]: '2000000\n', [HASH_SIZE]: '262144\n' });
  files.readOnly.add(`${NF}/nf_conntrack_max`).add(HASH_SIZE);
  const { problems } = await applyKernelValues(conntrackValues({ ...NOTHING, maxPerCore: 1000, min: 4000 }, 2), files);
  t.same(files.writes, []);
  t.same(problems, []);
});

t.test('a read-only sysctl that is already right is no problem', async (t) => {
  const files = new MemoryFiles({ [`${NF}/nf_conntrack_udp_timeout`]: '30\n' });
  files.readOnly.add(`${NF}/nf_conntrack_udp_timeout`);
  t.same(await applyKernelValues(conntrackValues({ ...NOTHING, udpMs: 30_000 }, 1), files), {
    written: [],
    problems: [],
    seen: [{ path: `${NF}/nf_conntrack_udp_timeout`, text: '30' }],
  });
});

t.test('each sysctl that cannot be written is reported, and the others are written', async (t) => {
  const files = new MemoryFiles({
    [`${NF}/nf_conntrack_max`]: '65536\n',
    [HASH_SIZE]: '16384\n',
    [`${NF}/nf_conntrack_tcp_timeout_close_wait`]: '60\n',
  });
  files.readOnly.add(`${NF}/nf_conntrack_max`).add(HASH_SIZE);
  const { written, problems } = await applyKernelValues(conntrackValues(DEFAULTS, 2), files);
  t.same(files.writes, [`${NF}/nf_conntrack_tcp_timeout_close_wait 3600`]);
  t.equal(written.length, 1);
  t.same(problems, [
    {
      path: `${NF}/nf_conntrack_max`,
      wanted: 131_072,
      found: '65536',
      errno: 'EROFS',
      message: `${NF}/nf_conntrack_max should be at least 131072, is 65536 and cannot be written: EROFS`,
    },
    {
      path: HASH_SIZE,
      wanted: 32_768,
      found: '16384',
      errno: 'EROFS',
      message: `${HASH_SIZE} should be at least 32768, is 16384 and cannot be written: EROFS`,
    },
    {
      path: `${NF}/nf_conntrack_tcp_timeout_established`,
      wanted: 86_400,
      found: null,
      errno: 'ENOENT',
      message: `${NF}/nf_conntrack_tcp_timeout_established should be 86400, cannot be read: ENOENT`,
    },
  ]);
});

t.test('a sysctl whose content is no number is overwritten', async (t) => {
  const files = new MemoryFiles({ [`${NF}/nf_conntrack_udp_timeout`]: '' });
  await applyKernelValues(conntrackValues({ ...NOTHING, udpMs: 30_000 }, 1), files);
  t.same(files.writes, [`${NF}/nf_conntrack_udp_timeout 30`]);
});

t.test('oom_score_adj is written', async (t) => {
  const files = new MemoryFiles({ '/proc/self/oom_score_adj': '0\n' });
  t.equal(await applyOomScoreAdj(-999, files), null);
  t.same(files.writes, ['/proc/self/oom_score_adj -999']);
  t.equal(await applyOomScoreAdj(-999, files), null);
  t.equal(files.writes.length, 1);

  const refusing = new MemoryFiles({ '/proc/self/oom_score_adj': '0\n' });
  refusing.readOnly.add('/proc/self/oom_score_adj');
  const problem = await applyOomScoreAdj(-999, refusing);
  t.equal(problem?.errno, 'EROFS');
  t.equal(problem?.found, '0');
});

t.test('ST-45: nf_conntrack_tcp_be_liberal is read', (t) => {
  const path = `${NF}/nf_conntrack_tcp_be_liberal`;
  t.equal(isTcpBeLiberal(new MemoryFiles({ [path]: '1\n' })), true);
  t.equal(isTcpBeLiberal(new MemoryFiles({ [path]: '0\n' })), false);
  t.equal(isTcpBeLiberal(new MemoryFiles({})), false);
  t.end();
});

t.test("kernel values are read and written in the kernel's own files", async (t) => {
  const found = KERNEL_FILES.read('/proc/self/oom_score_adj');
  t.match(found.trim(), /^-?\d+$/);
  // Writing back what is there changes nothing and needs no right.
  await KERNEL_FILES.write('/proc/self/oom_score_adj', found.trim());
  t.equal(KERNEL_FILES.read('/proc/self/oom_score_adj'), found);
  await t.rejects(KERNEL_FILES.write('/proc/sys/net/netfilter/no_such_value', '1'), { code: 'ENOENT' });
});

t.test('ST-44: route_localnet is written after all other sysctls, and only if configured', (t) => {
  const settings = { ...NOTHING, udpMs: 30_000 };
  const udp = { path: `${NF}/nf_conntrack_udp_timeout`, value: 30, match: 'equal' } as const;
  const sysctls = [{ name: 'net.ipv4.ip_forward', value: 1, stays: true }] as const;
  const forward = { path: '/proc/sys/net/ipv4/ip_forward', value: 1, match: 'equal', stays: true } as const;
  t.same(LINUX_HOST.kernelValues({ conntrack: settings, sysctls: [], opensLoopback: false }), [udp]);
  t.same(LINUX_HOST.kernelValues({ conntrack: settings, sysctls, opensLoopback: true }), [
    udp,
    forward,
    ROUTE_LOCALNET,
  ]);
  t.end();
});

t.test('repeated reads of conntrack sysctls count the cores once', (t) => {
  const { cpus } = os;
  let counts = 0;
  os.cpus = () => {
    counts++;
    return cpus();
  };
  syncBuiltinESMExports();
  t.teardown(() => {
    os.cpus = cpus;
    syncBuiltinESMExports();
  });
  const settings = { conntrack: { ...NOTHING, maxPerCore: 1000 }, sysctls: [], opensLoopback: false };
  const values = LINUX_HOST.kernelValues(settings);
  const countsBefore = counts;
  t.same(LINUX_HOST.kernelValues(settings), values);
  t.equal(counts, countsBefore);
  t.end();
});

t.test('ST-46: conn_reuse_mode is set on the kernels that need it', (t) => {
  const sysctl = { name: 'net.ipv4.vs.conn_reuse_mode', value: 0, kernels: { from: [4, 1], before: [5, 9] } } as const;
  const value = { path: '/proc/sys/net/ipv4/vs/conn_reuse_mode', value: 0, match: 'equal' };
  for (const release of ['4.1.0', '4.19.0-26-amd64', '5.8.18', '5.4-rc1'])
    t.same(sysctlValues([sysctl], release), [value]);
  for (const release of ['3.10.0-1160.el7', '4.0.9', '5.9.0', '5.10.0-28', '6.1.0-18-amd64', '10.2'])
    t.same(sysctlValues([sysctl], release), [], release);
  t.end();
});

t.test('sysctls that would be set are listed without setting them', async (t) => {
  const path = '/proc/self/oom_score_adj';
  const before = KERNEL_FILES.read(path);
  const found = before.trim();
  const value = found === '7' ? 8 : 7;
  const wanted = [{ path, value, match: 'equal' }] as const;
  t.same(await LINUX_HOST.compareKernelValues(wanted), [{ ...wanted[0], found }]);
  t.equal(KERNEL_FILES.read(path), before);
});

t.test('interface names include those without addresses', async (t) => {
  const names = await LINUX_HOST.interfaceNames();
  t.ok(names.includes('lo'), names.join());
});
