import { readFile } from 'node:fs/promises';

/** Names in /proc/net/dev, which has two lines of heading and knows interfaces without addresses too (proc_net(5)). */
export async function interfaceNames(): Promise<readonly string[]> {
  const text = await readFile('/proc/net/dev', 'utf8');
  return text
    .split('\n')
    .slice(2)
    .flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []);
}
