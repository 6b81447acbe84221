import { readdirSync, readFileSync } from 'node:fs';
import type { Counter, Registry } from 'prom-client';
import { Definitions } from './instruments.js';

/** The metrics of a process under the names that every Prometheus client library uses, from Linux' /proc. */
export class ProcessInstruments extends Definitions {
  private readonly cpu = this.counter('cpu_seconds_total', 'User and system CPU time.');
  private readonly resident = this.gauge('resident_memory_bytes', 'Resident memory.');
  private readonly virtual = this.gauge('virtual_memory_bytes', 'Virtual memory.');
  private readonly maxVirtual = this.gauge('virtual_memory_max_bytes', 'Limit of virtual memory; -1 for none.');
  private readonly start = this.gauge('start_time_seconds', 'Start of the process.');
  private readonly openFiles = this.gauge('open_fds', 'Open file descriptors.');
  private readonly maxFiles = this.gauge('max_fds', 'Limit of open file descriptors.');
  private readonly received = this.counter('network_receive_bytes_total', 'IPv4 bytes received in its network.');
  private readonly sent = this.counter('network_transmit_bytes_total', 'IPv4 bytes sent in its network.');

  constructor(registry: Registry) {
    super(registry, 'process_', '');
    this.start.set(performance.timeOrigin / 1000);
    const limits = readProc('limits');
    this.maxFiles.set(limitOf(limits, 'Max open files'));
    this.maxVirtual.set(limitOf(limits, 'Max address space'));
  }

  /** Takes what the system says now. */
  update(): void {
    const { user, system } = process.cpuUsage();
    setTotal(this.cpu, (user + system) / 1e6);
    this.resident.set(process.memoryUsage.rss());
    this.virtual.set(virtualMemory(readProc('stat')));
    this.openFiles.set(openFiles());
    const traffic = ipTraffic(readProc('net/netstat'));
    setTotal(this.received, traffic.get('InOctets') ?? 0);
    setTotal(this.sent, traffic.get('OutOctets') ?? 0);
  }
}

/** What stands here for a Go program's `go_…`: the runtime's metrics, under the names that Prometheus' client library for Node.js gives them. */
export class RuntimeInstruments extends Definitions {
  private readonly version = this.gauge('version_info', 'Always 1; the labels say which Node.js runs this.', [
    'version',
    'major',
    'minor',
    'patch',
  ]);
  private readonly heap = this.gauge('heap_size_total_bytes', 'Size of the JavaScript heap.');
  private readonly heapUsed = this.gauge('heap_size_used_bytes', 'What of the JavaScript heap is in use.');
  private readonly external = this.gauge('external_memory_bytes', 'Memory outside of the heap that JavaScript holds.');
  private readonly resources = this.gauge('active_resources_total', 'Sockets, timers and requests under way.');

  constructor(registry: Registry) {
    super(registry, 'nodejs_', '');
    const [major = '', minor = '', patch = ''] = process.versions.node.split('.');
    this.version.set({ version: process.version, major, minor, patch }, 1);
  }

  /** Takes what the runtime says now. */
  update(): void {
    const { heapTotal, heapUsed, external } = process.memoryUsage();
    this.heap.set(heapTotal);
    this.heapUsed.set(heapUsed);
    this.external.set(external);
    this.resources.set(process.getActiveResourcesInfo().length);
  }
}

/** Of a counter that somebody else counts. */
function setTotal(counter: Counter, value: number): void {
  counter.reset();
  counter.inc(value);
}

/** Text of a file in /proc/self; empty where there is no such file. */
function readProc(name: string): string {
  try {
    return readFileSync(`/proc/self/${name}`, 'latin1');
  } catch {
    return '';
  }
}

/** The soft limit of a row in /proc/self/limits; -1: unlimited or not known. */
function limitOf(limits: string, row: string): number {
  const line = limits.split('\n').find((each) => each.startsWith(`${row} `)) ?? '';
  const value = /^ +(\d+)/.exec(line.slice(row.length))?.[1];
  return value === undefined ? -1 : Number(value);
}

/** Field 23 of /proc/self/stat; the second field may hold blanks, so fields are counted from the end of it. */
function virtualMemory(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[20] ?? 0);
}

function openFiles(): number {
  try {
    // Less the one that reading the directory opens.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return 0;
  }
}

/** The values of `IpExt` in /proc/net/netstat, two lines of words: names, then values. */
function ipTraffic(netstat: string): ReadonlyMap<string, number> {
  const [names = [], values = []] = netstat
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '));
  return new Map(names.map((name, at) => [name, Number(values[at] ?? 0)]));
}
