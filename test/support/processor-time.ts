import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second here, whatever its own clock does. */
const TICKS_PER_SECOND = 100;

/** Processor time of this process's children that have ended, and of theirs, in seconds. */
export class ProcessorTime {
  #counted = this.total();

  /** What has been added since it was last asked for: at a child's event `exit` that child's. */
  ofEnded(): number {
    const total = this.total();
    const ended = total - this.#counted;
    this.#counted = total;
    return ended;
  }

  total(): number {
    // The command in parentheses may have spaces. Behind it, cutime and cstime are fields 16 and 17 of proc_pid_stat(5).
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
  }
}
