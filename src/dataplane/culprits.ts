/** What becomes of parts of a whole that was refused. */
export interface Trial<Unit, Refusal> {
  /** Null: they are taken. */
  readonly attempt: (units: readonly Unit[]) => Promise<Refusal | null>;
  /** The one of them that a refusal names; undefined: it names none. */
  readonly named: (units: readonly Unit[], refusal: Refusal) => Unit | undefined;
  /** No more than so many are looked for. */
  readonly most: number;
  /** Nor is more tried than so many times. */
  readonly attempts: number;
}

export interface Culprits<Unit, Refusal> {
  /** Each was refused by itself. */
  readonly found: readonly (readonly [Unit, Refusal])[];
  /** The last refusal when there may be more than were looked for; null: everything else is taken. */
  readonly tooMany: Refusal | null;
}

/**
 * Has all units be taken but those that are refused even by themselves. Which these are the refusal says, or it shows when halves are tried: one among n
 * costs some 2·log2(n) attempts.
 */
export async function findCulprits<Unit, Refusal>(
  units: readonly Unit[],
  { attempt, named, most, attempts }: Trial<Unit, Refusal>,
): Promise<Culprits<Unit, Refusal>> {
  const found: (readonly [Unit, Refusal])[] = [];
  const untried: { readonly part: readonly Unit[]; readonly isNamed: boolean }[] = [{ part: units, isNamed: false }];
  let isTrusted = true;
  let tried = 0;
  let last: Refusal | null = null;
  for (let next = untried.pop(); next !== undefined; next = untried.pop()) {
    const { part, isNamed } = next;
    const [first] = part;
    if (first === undefined) continue;
    if (tried++ === attempts) return { found, tooMany: last };
    const refusal = await attempt(part);
    last = refusal ?? last;
    if (refusal === null) {
      // A name that is wrong once costs an attempt; if it were wrong each time, one for each unit.
      isTrusted &&= !isNamed;
    } else if (part.length === 1) {
      if (found.length === most) return { found, tooMany: refusal };
      found.push([first, refusal]);
    } else {
      const culprit = isTrusted ? named(part, refusal) : undefined;
      const middle = part.length >> 1;
      const [now, later] =
        culprit === undefined
          ? [part.slice(0, middle), part.slice(middle)]
          : [[culprit], part.filter((unit) => unit !== culprit)];
      untried.push({ part: later, isNamed: false }, { part: now, isNamed: culprit !== undefined });
    }
  }
  return { found, tooMany: null };
}
