import { spawnSync } from 'node:child_process';

/** Runs a program that must succeed, its words separated by single blanks, and answers its output. */
export function run(command: string, input = ''): string {
  const [program = '', ...args] = command.split(' ');
  const { status, stdout, stderr, error } = spawnSync(program, args, { input, encoding: 'utf8', maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr}`);
  return stdout;
}
