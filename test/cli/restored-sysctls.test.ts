import t from 'tap';
import { restoreSysctls } from '../../src/cli/commands.js';
import type { KernelValueProblem } from '../../src/host/host.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { applyKernelValues, sysctlValues } from '../../src/host/linux/sysctl.js';
import { fromFile } from '../config/load-from.js';

const VS = '/proc/sys/net/ipv4/vs/';
const SET = { conntrack: '1', conn_reuse_mode: '0', expire_nodest_conn: '1', expire_quiescent_template: '1' };
const INITIAL = { conntrack: '0', conn_reuse_mode: '1', expire_nodest_conn: '0', expire_quiescent_template: '0' };
const { config } = fromFile('mode: nftables\n');

/** A machine with these sysctls, and what becomes of them. */
function machine(sysctls: Readonly<Record<string, string>>, release = '5.4.0') {
  const files = new Map(Object.entries(sysctls).map(([name, value]) => [VS + name, value]));
  const read = (path: string): string => {
    const text = files.get(path);
    if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' });
    return text;
  };
  const write = (path: string, text: string): Promise<void> => {
    files.set(path, text);
    return Promise.resolve();
  };
  const host: typeof LINUX_HOST = {
    ...LINUX_HOST,
    kernelValues: (settings) => sysctlValues(settings.sysctls, release),
    applyKernelValues: (values) => applyKernelValues(values, { read, write }),
    compareKernelValues: async (values) =>
      (await applyKernelValues(values, { read, write: () => Promise.resolve() })).written,
  };
  const now = (): Readonly<Record<string, string>> =>
    Object.fromEntries([...files].map(([path, value]) => [path.slice(VS.length), value]));
  return { host, now };
}

t.test('CL-60: --cleanup resets the sysctls of ip_vs to the defaults of the kernel', async (t) => {
  const { host, now } = machine(SET);
  t.same(await restoreSysctls(config, host), []);
  t.same(now(), INITIAL);
});

t.test('CL-60: --cleanup leaves sysctls that ipvs mode did not set', async (t) => {
  const { host, now } = machine({ ...SET, conn_reuse_mode: '2' });
  t.same(await restoreSysctls(config, host), []);
  t.same(now(), { ...INITIAL, conn_reuse_mode: '2' });
  const newer = machine(SET, '6.1.0');
  await restoreSysctls(config, newer.host);
  t.same(newer.now(), { ...INITIAL, conn_reuse_mode: '0' }, 'a kernel on which the mode does not set one');
});

t.test('CL-60: --cleanup ignores missing sysctls, and fails if one cannot be written', async (t) => {
  const { conntrack } = SET;
  const few = machine({ conntrack });
  t.same(await restoreSysctls(config, few.host), []);
  t.same(few.now(), { conntrack: '0' });
  const { host } = machine(SET);
  const problem: KernelValueProblem = { path: VS, wanted: 0, found: '1', errno: 'EROFS', message: 'is read-only' };
  const refusing = {
    ...host,
    applyKernelValues: () => Promise.resolve({ written: [], problems: [problem], seen: [] }),
  };
  t.same(await restoreSysctls(config, refusing), ['is read-only']);
});
