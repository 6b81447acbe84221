import { readdirSync, readFileSync } from 'node:fs';
import type { ProcessUsage } from '../host.js';

/** See {@link Host.processUsage}; from /proc/self, where a process may read of itself without privileges (proc(5)). */
export function processUsage(read: (name: string) => string = readProc): ProcessUsage {
  const limits = read('limits');
  const traffic = ipTraffic(read('net/netstat'));
  return {
    virtualMemory: virtualMemory(read('stat')),
    virtualMemoryLimit: limitOf(limits, 'Max address space'),
    openFiles: openFiles(),
    openFilesLimit: limitOf(limits, 'Max open files'),
    received: traffic.get('InOctets') ?? 0,
    sent: traffic.get('OutOctets') ?? 0,
  };
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
