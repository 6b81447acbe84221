/** What becomes of parts of a whole that was refused. */
export interface Trial<Unit, Refusal> {
  /** Null: they are taken. */
  readonly attempt: (units: readonly Unit[]) => Promise<Refusal | null>;
  /** The one of them that a refusal names; undefined: it names none. */
  readonly named: (units: readonly Unit[], refusal: Refusal) => Unit | undefined;
  /** No more than so many are looked for; what is in nobody's way is taken all the same. */
  readonly most: number;
  /** Nor is more tried than so many times. */
  readonly attempts: number;
  /** What goes first: larger parts, so that what is in nobody's way is taken soon, or smaller ones, so that some are found in however few attempts. */
  readonly first: 'larger' | 'smaller';
}

export interface Culprits<Unit, Refusal> {
  /** Each was refused by itself. */
  readonly found: readonly (readonly [Unit, Refusal])[];
  /** A refusal of more than were looked for, or the last where there were more attempts to make; null: everything else is taken. */
  readonly tooMany: Refusal | null;
}

/**
 * Has all units be taken but those that are refused even by themselves. Which these are the refusal says, or it shows when halves are tried: one among n
 * costs some 2·log2(n) attempts, and each unit is in some log2(n) of them however many are refused.
 */
export async function findCulprits<Unit, Refusal>(
  units: readonly Unit[],
  { attempt, named, most, attempts, first: order }: Trial<Unit, Refusal>,
): Promise<Culprits<Unit, Refusal>> {
  const found: (readonly [Unit, Refusal])[] = [];
  const untried: Part<Unit>[] = [{ units, isNamed: false, isRest: false }];
  let isTrusted = true;
  let tried = 0;
  let last: Refusal | null = null;
  let tooMany: Refusal | null = null;
  for (let part = untried.shift(); part !== undefined; part = untried.shift()) {
    const [first] = part.units;
    if (first === undefined) continue;
    if (tried++ === attempts) return { found, tooMany: last };
    const refusal = await attempt(part.units);
    last = refusal ?? last;
    if (refusal === null) {
      // A name that is wrong once costs an attempt; if it were wrong each time, one for each unit.
      isTrusted &&= !part.isNamed;
    } else if (found.length === most) {
      tooMany = refusal;
    } else if (part.units.length === 1) {
      found.push([first, refusal]);
    } else {
      const culprit = isTrusted ? named(part.units, refusal) : undefined;
      const parts = culprit === undefined ? halves(part) : without(culprit, part);
      if (order === 'larger') untried.push(...parts);
      else untried.unshift(...parts);
      if (culprit !== undefined) untried.unshift({ units: [culprit], isNamed: true, isRest: false });
    }
  }
  return { found, tooMany };
}

interface Part<Unit> {
  readonly units: readonly Unit[];
  readonly isNamed: boolean;
  /** One of the whole was named and is left out. */
  readonly isRest: boolean;
}

/** One may be all. When another is named, there may be many. */
function without<Unit>(culprit: Unit, { units, isRest }: Part<Unit>): readonly Part<Unit>[] {
  const rest = { units: units.filter((unit) => unit !== culprit), isNamed: false, isRest: true };
  return isRest ? halves(rest) : [rest];
}

function halves<Unit>({ units, isRest }: Part<Unit>): readonly Part<Unit>[] {
  const middle = units.length >> 1;
  return [units.slice(0, middle), units.slice(middle)].map((half) => ({ units: half, isNamed: false, isRest }));
}
