import type { Config } from '../config/config.js';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { networkInterfaces, release, version as kernelVersion } from 'node:os';
import { Archive, archivePlace } from '../base/archive.js';
import { messageOf } from '../base/error-message.js';
import { ownVersion } from '../config/version.js';
import type { Machine } from '../control/mode.js';
import type { ProcessStatus } from '../observe/process-status.js';
import { METRICS_PAGE, PLAN_PAGE, STATUS_PAGE, TRAFFIC_PAGE } from '../serve/status-pages.js';
import { ask } from './ask.js';
import { AskError } from './ask-error.js';
import { KernelParts } from './bugreport-kernel.js';

/** Of a file of the system no more is taken. */
const MOST_BYTES = 4 << 20;

interface Part {
  readonly name: string;
  readonly what: string;
  readonly read: () => Promise<string>;
  /** Where there is none, nothing is wrong: a flag asks for it, or a kernel has no modules. */
  readonly isOptional?: true;
}

/**
 * Writes one archive with what is needed to look at a problem from afar, which says what is in it. Credentials are in none of its parts. What cannot be
 * read is said in its place.
 *
 * @throws AskError when no process answers, or the file cannot be written.
 */
export async function bugreport(
  { config, file }: { readonly config: Config; readonly file: string },
  machine: Machine,
  write: (text: string) => Promise<void>,
): Promise<0 | 1> {
  const status = JSON.parse((await ask(config.statusSocket, `${STATUS_PAGE}?output=json`)).text) as ProcessStatus;
  const now = new Date();
  const subject = status.node.slice(0, 40);
  const place = archivePlace(file, subject, now);
  const where = place ?? 'standard output';
  // Before anything is read, which takes seconds. Not over a file that is there.
  const archive = await stored(where, () => Archive.create(place === null ? null : resolve(place), now));
  try {
    const { files, lines, isWhole } = await read(partsOf(config.statusSocket, status, machine));
    const about = [
      `pointsman bugreport of node ${status.node}, ${now.toISOString()}`,
      '',
      'Names and addresses of Services, endpoints and nodes are included; credentials, keys and the environment are not.',
      '',
      ...lines,
      '',
    ].join('\n');
    const named = [{ name: 'README', text: about }, ...files].map(({ name, text }) => ({
      name: `pointsman-${subject}/${name}`,
      content: Buffer.from(text),
    }));
    await stored(where, () => archive.add(named));
    await stored(where, () => archive.end());
    const said = [`${where}:`, ...lines.map((line) => `  ${line}`), ''].join('\n');
    if (place === null) process.stderr.write(said);
    else await write(said);
    return isWhole ? 0 : 1;
  } catch (error) {
    await archive.abandon();
    throw error;
  }
}

async function stored<Answer>(where: string, write: () => Promise<Answer>): Promise<Answer> {
  try {
    return await write();
  } catch (error) {
    throw new AskError(`${where}: ${messageOf(error)}`, { cause: error });
  }
}

/** The parts, a line for each, and whether none is missing. */
async function read(parts: readonly Part[]): Promise<{
  readonly files: readonly { readonly name: string; readonly text: string }[];
  readonly lines: readonly string[];
  readonly isWhole: boolean;
}> {
  const files: { readonly name: string; readonly text: string }[] = [];
  const lines: string[] = [];
  let isWhole = true;
  for (const { name, what, read, isOptional = false } of parts)
    try {
      files.push({ name, text: await read() });
      lines.push(`${name}: ${what}`);
    } catch (error) {
      files.push({ name, text: `could not be read: ${messageOf(error)}\n` });
      lines.push(`${name}: ${what}; could not be read: ${messageOf(error)}`);
      isWhole &&= isOptional;
    }
  return { files, lines, isWhole };
}

function partsOf(socket: string | null, status: ProcessStatus, machine: Machine): readonly Part[] {
  const kernel = new KernelParts(socket, machine);
  const page = (name: string, path: string, what: string): Part => ({
    name,
    what,
    read: async () => (await ask(socket, path)).text,
  });
  const file = (name: string, path: string, what: string): Part => ({ name, what, read: () => readBounded(path) });
  return [
    {
      name: 'version.txt',
      what: 'versions of pointsman, Node and the kernel',
      read: () => Promise.resolve(versions()),
    },
    { name: 'status.json', what: 'pointsman status', read: () => Promise.resolve(JSON.stringify(status, null, 1)) },
    page('status.txt', STATUS_PAGE, 'the same as text'),
    page(
      'configuration.json',
      '/ui/api/configuration',
      'the configuration and the flags in force, without credentials',
    ),
    page('history.json', '/ui/api/history', 'the last syncs, repairs and failures'),
    page('overview.json', '/ui/api/overview', 'health and its reasons, sources, counts'),
    page('problems.json', '/ui/api/services?problems=only&limit=500', 'Services with a problem, at most 500'),
    { ...page('traffic.json', TRAFFIC_PAGE, 'traffic of Services, where it is counted'), isOptional: true },
    page('metrics.txt', METRICS_PAGE, 'metrics, as Prometheus reads them'),
    {
      name: 'plan.txt',
      what: 'what the process has planned, as pointsman plan prints it',
      read: async () => (await import('../serve/plan-stream.js')).planText((await ask(socket, PLAN_PAGE)).text),
    },
    { name: 'dump.txt', what: 'what the kernel holds, as pointsman dump prints it', read: () => kernel.dump() },
    {
      name: 'diff.txt',
      what: 'what a start would change, as pointsman diff prints it',
      read: () => kernel.diff(),
    },
    {
      name: 'foreign-rules.txt',
      what: 'base chains of other programs and their rules',
      read: async () => (await import('../dataplane/foreign/print.js')).printForeign(machine.addon),
    },
    { name: 'sysctls.txt', what: 'kernel settings that matter to Services', read: sysctls },
    { name: 'links.json', what: 'interfaces and their addresses', read: () => Promise.resolve(links()) },
    { ...file('modules.txt', '/proc/modules', 'modules of the kernel'), isOptional: true },
    file('routes.txt', '/proc/net/route', 'routes of IPv4'),
    file('routes6.txt', '/proc/net/ipv6_route', 'routes of IPv6'),
    file('conntrack-counts.txt', '/proc/net/stat/nf_conntrack', 'counts of connection tracking, by CPU'),
    file('process.txt', `/proc/${status.pid}/status`, 'memory and privileges of the process'),
  ];
}

function versions(): string {
  return [ownVersion(), `Node ${process.version}`, `Linux ${release()}`, kernelVersion(), ''].join('\n');
}

async function readBounded(path: string): Promise<string> {
  const content = await readFile(path);
  return content.subarray(0, MOST_BYTES).toString();
}

/** One that is absent is said to be. */
const SYSCTLS = [
  'net/ipv4/ip_forward',
  'net/ipv4/ip_local_port_range',
  'net/ipv4/ip_local_reserved_ports',
  'net/ipv4/conf/all/rp_filter',
  'net/ipv4/conf/default/rp_filter',
  'net/ipv4/conf/all/route_localnet',
  'net/ipv6/conf/all/forwarding',
  'net/ipv6/conf/all/disable_ipv6',
  'net/netfilter/nf_conntrack_max',
  'net/netfilter/nf_conntrack_count',
  'net/netfilter/nf_conntrack_tcp_be_liberal',
  'net/netfilter/nf_conntrack_tcp_timeout_established',
  'net/netfilter/nf_conntrack_udp_timeout',
];

async function sysctls(): Promise<string> {
  const lines = await Promise.all(
    SYSCTLS.map(async (path) => {
      const value = await readFile(`/proc/sys/${path}`, 'utf8').catch(() => 'absent');
      return `${path.replaceAll('/', '.')} = ${value.trim()}`;
    }),
  );
  return `${lines.join('\n')}\n`;
}

function links(): string {
  return `${JSON.stringify(networkInterfaces(), null, 1)}\n`;
}
