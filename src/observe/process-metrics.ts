import { readdirSync, readFileSync } from 'node:fs';
import type { Registry } from 'prom-client';
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
    this.cpu.reset();
    this.cpu.inc((user + system) / 1e6);
    this.resident.set(process.memoryUsage.rss());
    this.virtual.set(virtualMemory(readProc('stat')));
    this.openFiles.set(openFiles());
  }
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
  const value = new RegExp(`^${row} +(\\d+)`, 'm').exec(limits)?.[1];
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
