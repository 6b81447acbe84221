// needs: namespaces
import { spawnSync } from 'node:child_process';
import { inNamespace, NAMESPACE_VARIABLE } from './in-namespace.js';

/**
 * `import './namespace.js'` as a test file's first import runs the file again in a network namespace of its own, and ends this process as that one ended.
 * test/run.ts starts such a file there at once.
 */
if (process.env[NAMESPACE_VARIABLE] !== String(process.ppid)) {
  const { program, args, env } = inNamespace([process.execPath, ...process.execArgv, ...process.argv.slice(1)]);
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  if (error !== undefined) throw error;
  process.exit(status ?? 1);
}
