import { spawnSync } from 'node:child_process';

/**
 * `import './namespace.js'` as a test file's first import runs the file again in a network namespace of its own, as root there, and
 * ends this process as that one ended. An ordinary user gets a user namespace as well.
 */
const MARK = 'POINTSMAN_TEST_NAMESPACE';

if (process.env[MARK] !== String(process.ppid)) {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const argv = [...user, '--net', process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const { status, error } = spawnSync('unshare', argv, {
    stdio: 'inherit',
    env: { ...process.env, [MARK]: String(process.pid) },
  });
  if (error !== undefined) throw error;
  process.exit(status ?? 1);
}
