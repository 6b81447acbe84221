/** The command that deletes our jump from a built-in chain. */
export function jumpOf(saved: string, chain: string): readonly string[] {
  const [, rule = ''] = new RegExp(`^-A ${chain} (.*-j KUBE-SERVICES)$`, 'm').exec(saved) ?? [];
  return [
    '-t',
    'nat',
    '-D',
    chain,
    ...rule.split(/ (?=(?:[^"]*"[^"]*")*[^"]*$)/).map((word) => word.replaceAll('"', '')),
  ];
}
