import type { Document } from './documents.js';
import type { Finding } from './findings.js';

/** Documents of one file that do not go together. */

/** One of each is read of a file. */
const ONCE = [
  'ClusterConfiguration',
  'InitConfiguration',
  'JoinConfiguration',
  'KubeProxyConfiguration',
  'KubeletConfiguration',
  'ResetConfiguration',
  'UpgradeConfiguration',
];

/** Kinds that a command of kubeadm reads, and kinds that it ignores beside them. */
const IGNORED: readonly (readonly [kind: string, others: readonly string[]])[] = [
  ['JoinConfiguration', ['InitConfiguration']],
  [
    'UpgradeConfiguration',
    ['ClusterConfiguration', 'InitConfiguration', 'KubeProxyConfiguration', 'KubeletConfiguration'],
  ],
];

export function togetherProblems(documents: readonly Document[]): readonly Finding[] {
  return documents.flatMap((document, index) => {
    const { kind } = document;
    const twice = ONCE.includes(kind) && documents.slice(0, index).some((other) => other.kind === kind);
    const reader = IGNORED.find(
      ([by, others]) => others.includes(kind) && documents.some((other) => other.kind === by),
    );
    return [
      ...(twice ? [about(document, 'error', 'unique', 'is given twice in this file')] : []),
      ...(reader === undefined
        ? []
        : [about(document, 'warning', 'no-effect', `is ignored by the command that reads ${reader[0]}`)]),
    ];
  });
}

function about(
  { file, document, kind }: Document,
  severity: Finding['severity'],
  rule: string,
  problem: string,
): Finding {
  return { severity, rule, file, document, line: null, path: kind, value: null, problem, expected: '' };
}
