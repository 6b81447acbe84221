/** Set in a process that `unshare` has started: the process that had it do so. */
export const NAMESPACE_VARIABLE = 'POINTSMAN_TEST_NAMESPACE';

/** What starts a program in a network namespace of its own, as root there, with the environment that says so. An ordinary user gets a user namespace as well. */
export function inNamespace(command: readonly string[]): {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  // One after the other: files in /proc/net belong to whom the user namespace's root is when the network namespace is made.
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user', 'unshare'];
  return {
    program: 'unshare',
    args: [...user, '--net', ...command],
    env: { [NAMESPACE_VARIABLE]: String(process.pid) },
  };
}
