/** A line of `plan` or `dump` taken apart. */
interface Fact {
  readonly family: string;
  readonly subject: string;
  /** Of a frontend; null: it is about something else. */
  readonly frontend: string | null;
  /** What is said; empty: that the subject is there. */
  readonly fact: string;
  readonly value: string;
}

export function readFact(line: string): Fact {
  const [family = '', subject = '', ...rest] = line.split(' ');
  const frontend = subject === 'frontend' ? (rest.shift() ?? null) : null;
  const fact = subject === 'frontend' || subject === 'node' ? (rest.shift() ?? '') : '';
  return { family, subject, frontend, fact, value: rest.join(' ') };
}
