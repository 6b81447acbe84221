import { spawnSync } from 'node:child_process';

/** Where test/run.ts found Python; its files need not look for it again. */
export const PYTHON_VARIABLE = 'POINTSMAN_TEST_PYTHON';

/** The command that starts Python. */
export function python(): string {
  return process.env[PYTHON_VARIABLE] ?? 'python3';
}

/** Python itself where `python3` is a script that chooses one of several: that costs each start as much as Python's own. */
export function findPython(): string {
  const { stdout, status } = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' });
  return (status === 0 && stdout.trim()) || 'python3';
}
