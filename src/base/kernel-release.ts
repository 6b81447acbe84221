/** A release of Linux. */
export type KernelRelease = readonly [major: number, minor: number];

/** `6.1`, or more of what uname -r prints; null: it is none. */
export function parseKernelRelease(text: string): KernelRelease | null {
  const [, major, minor] = /^(\d{1,3})\.(\d{1,4})(?:[.+-].*)?$/.exec(text) ?? [];
  return major === undefined || minor === undefined ? null : [Number(major), Number(minor)];
}

export function isBefore(one: KernelRelease, other: KernelRelease): boolean {
  return one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);
}
