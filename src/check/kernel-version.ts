import { isMapping } from '../base/mapping.js';

/** A release of Linux. */
export type KernelVersion = readonly [major: number, minor: number];

/** `6.1`, or more of what uname -r prints; null: it is none. */
export function parseKernel(text: string): KernelVersion | null {
  const [, major, minor] = /^(\d{1,3})\.(\d{1,4})(?:[.+-].*)?$/.exec(text) ?? [];
  return major === undefined || minor === undefined ? null : [Number(major), Number(minor)];
}

export function isBefore(one: KernelVersion, other: KernelVersion): boolean {
  return one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);
}

/** What a Node object says of its kernel; null: nothing, or it runs another system. */
export function kernelOf(node: unknown): KernelVersion | null {
  const status = isMapping(node) ? node['status'] : null;
  const info = isMapping(status) ? status['nodeInfo'] : null;
  if (!isMapping(info) || (info['operatingSystem'] ?? 'linux') !== 'linux') return null;
  const { kernelVersion } = info;
  return typeof kernelVersion === 'string' ? parseKernel(kernelVersion) : null;
}
