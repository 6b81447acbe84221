import { rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { quantityValue } from '../../../../src/config/quantity.js';

/** Rules on what a node keeps from pods. */

export const RESERVED = ['system-reserved', 'kube-reserved'] as const;

/** Each reserved level that is enforced needs its cgroup, and is enforced whole or in part. */
export const RESERVED_CGROUPS = rule('requires', (section) => {
  const levels = section.texts('enforceNodeAllocatable');
  for (const level of RESERVED) {
    const cgroup = level === 'system-reserved' ? 'systemReservedCgroup' : 'kubeReservedCgroup';
    const [isWhole, isPart] = [levels.includes(level), levels.includes(`${level}-compressible`)];
    if ((isWhole || isPart) && !section.has(cgroup))
      section.refuse('requires', 'enforceNodeAllocatable', `has ${level}, which needs ${cgroup}`);
    if (isWhole && isPart)
      section.refuse('requires', 'enforceNodeAllocatable', `has ${level} beside ${level}-compressible`);
  }
});

/** Without cgroups of classes nothing can be enforced; pods are the default. */
export const CLASSES = rule('requires', (section) => {
  const levels = section.texts('enforceNodeAllocatable').filter((level) => level !== 'none');
  if (!section.isTruth('cgroupsPerQOS') || section.truth('cgroupsPerQOS')) return;
  if (levels.length > 0 || !section.isGiven('enforceNodeAllocatable'))
    section.refuse(
      'requires',
      'cgroupsPerQOS',
      'is false, and enforceNodeAllocatable needs it',
      'true, or nothing enforced',
    );
});

export const RESERVED_CPUS = rule('exclusive', (section) => {
  const cgroup = ['systemReservedCgroup', 'kubeReservedCgroup'].find((name) => section.has(name));
  if (section.has('reservedSystemCPUs') && cgroup !== undefined)
    section.refuse('exclusive', 'reservedSystemCPUs', `must not be given beside ${cgroup}`);
});

/** Each kind of memory is reserved once for a NUMA node. */
export const NUMA_NODES = rule('unique', (section) => {
  const seen = new Set<string>();
  for (const entry of section.sections('reservedMemory'))
    for (const name of entry.section('limits')?.names() ?? [])
      if (seen.size === seen.add(`${entry.number('numaNode') ?? 0} ${name}`).size)
        entry.refuse('unique', `limits.${name}`, 'is given twice for this NUMA node');
});

export const MEMORY_KINDS = rule('value', (section) => {
  const limits = section.section('limits');
  for (const name of limits?.names() ?? []) {
    if (!/^(?:memory$|hugepages-)/.test(name))
      limits?.refuse('value', name, 'is not known', '"memory" or hugepages- and a size');
    else if (/^[-+]?[0.]*(?:[A-Za-z]|$)/.test(limits?.amount(name) ?? '')) limits?.refuse('value', name, 'is zero');
  }
});

const MEBIBYTE = 2 ** 20;
const DEFAULT_THRESHOLD = 100 * MEBIBYTE;

/** Memory that the node keeps from pods, in bytes; null: not known, as a part of it is a share of the node's. */
function keptMemory(section: Section): number | null {
  const reserved = ['kubeReserved', 'systemReserved'].map((name) => section.section(name)?.amount('memory') ?? '');
  const hard = section.section('evictionHard');
  const isDefault =
    !section.isGiven('evictionHard') ||
    (section.truth('mergeDefaultEvictionSettings') && hard?.has('memory.available') !== true);
  const threshold = hard?.text('memory.available') ?? '';
  if (threshold.endsWith('%')) return null;
  const amounts = [...reserved, threshold].map((amount) => (amount === '' ? 0 : quantityValue(amount)));
  return amounts.reduce((sum, amount) => sum + amount, isDefault ? DEFAULT_THRESHOLD : 0);
}

/** NUMA nodes keep together what the node keeps. Nothing else reserves huge pages. */
export const MEMORY_SUM = rule('sum', (section) => {
  const limits = section.sections('reservedMemory').flatMap((entry) => entry.section('limits') ?? []);
  const memory = limits.flatMap((each) => (each.has('memory') ? [quantityValue(each.amount('memory'))] : []));
  const [sum, kept] = [memory.reduce((total, amount) => total + amount, 0), keptMemory(section)];
  if (memory.length > 0 && kept !== null && sum !== kept)
    section.refuse(
      'sum',
      'reservedMemory',
      `has ${sum / MEBIBYTE}Mi of memory, but kubeReserved, systemReserved and evictionHard have ${kept / MEBIBYTE}Mi`,
    );
  if (limits.some((each) => each.names().some((name) => name.startsWith('hugepages-'))))
    section.warn(
      'sum',
      'reservedMemory',
      'has huge pages, which neither kubeReserved nor systemReserved has: memoryManagerPolicy Static refuses them',
    );
});
