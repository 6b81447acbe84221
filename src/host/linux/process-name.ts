import { writeFileSync } from 'node:fs';

/**
 * What ps(1) and top(1) show instead of Node's own names: the program with its arguments as the command line, and the program alone as the name of the
 * process, which is that of its main thread. A system that does not allow the change keeps the old names.
 */
export function nameProcess(program: string, argv: readonly string[]): void {
  try {
    // Also names the thread, by the first 15 characters of all this.
    process.title = [program, ...argv].join(' ');
    writeFileSync('/proc/self/comm', program);
  } catch {
    // Only for people.
  }
}
