import type { Ledger } from './ledger.js';

/** How the parts of a refused whole are tried. */
export interface Trial<Unit, Refusal> {
  /** Null: the kernel takes them. */
  readonly attempt: (units: readonly Unit[]) => Promise<Refusal | null>;
  /** The units that need what a refusal names; none: it names nothing. */
  readonly named: (units: readonly Unit[], refusal: Refusal) => readonly Unit[];
  /** The search ends after so many refusals of offending elements; the remaining units are taken all the same. */
  readonly most: number;
  /** The limit of attempts. */
  readonly attempts: number;
  /** Which parts go first. Larger ones: units that are not refused are taken soon. Smaller ones: few attempts find some. */
  readonly first: 'larger' | 'smaller';
}

export interface Offending<Unit, Refusal> {
  /** Each was refused by itself, or with others that all need what was refused. */
  readonly found: readonly (readonly [Unit, Refusal])[];
  /**
   * A refusal beyond the limit of offending elements, or the last refusal when the attempts ran out. Null: everything else
   * is taken.
   */
  readonly tooMany: Refusal | null;
}

interface Part<Unit> {
  readonly units: readonly Unit[];
  /** A refusal named all of them. */
  readonly isNamed: boolean;
  /** Some of the whole were named and are left out. */
  readonly isRest: boolean;
}

/**
 * Sends all units, except those that are refused even by themselves. It divides what is refused: into the units that the
 * refusal names and the others, or into halves. One among n costs some 2·log2(n) attempts. Each unit is in some log2(n)
 * of them, independent of how many are refused.
 */
export async function findOffending<Unit, Refusal>(
  units: readonly Unit[],
  { attempt, named, most, attempts, first }: Trial<Unit, Refusal>,
): Promise<Offending<Unit, Refusal>> {
  const found: (readonly [Unit, Refusal])[] = [];
  const untried: Part<Unit>[] = [{ units, isNamed: false, isRest: false }];
  let isTrusted = true;
  let [tried, proven] = [0, 0];
  let last: Refusal | null = null;
  let tooMany: Refusal | null = null;
  for (let part = untried.shift(); part !== undefined; part = untried.shift()) {
    if (part.units.length === 0) continue;
    if (tried++ === attempts) return { found, tooMany: last };
    const refusal = await attempt(part.units);
    last = refusal ?? last;
    if (refusal === null) {
      // A name that is wrong once costs an attempt; if it were wrong each time, one for each unit.
      isTrusted &&= !part.isNamed;
      continue;
    }
    if (proven === most) {
      tooMany = refusal;
      continue;
    }
    const suspects = new Set(isTrusted ? named(part.units, refusal) : []);
    if (part.units.length === 1 || (part.isNamed && suspects.size === part.units.length)) {
      proven++;
      for (const unit of part.units) found.push([unit, refusal]);
      continue;
    }
    const those = { units: part.units.filter((unit) => suspects.has(unit)), isNamed: true, isRest: false };
    const others = suspects.size === 0 ? halves(part) : without(suspects, part);
    if (first === 'smaller') untried.unshift(those, ...others);
    else untried.push(...others, those);
  }
  return { found, tooMany };
}

/**
 * Restores externally changed, quarantined keys to the value that the kernel held before, where the kernel takes it.
 *
 * @param send restores the keys' former values, and reads them back into the ledger; null: the kernel took them.
 */
export async function restoreDamaged<Key, Value, Refusal>(
  ledger: Ledger<Key, Value>,
  keys: readonly Key[],
  send: (former: ReadonlyMap<Key, Value>) => Promise<Refusal | null>,
  trial: Omit<Trial<Key, Refusal>, 'attempt'>,
): Promise<void> {
  const formerOf = (key: Key): readonly (readonly [Key, Value])[] => {
    const former = ledger.damaged.get(key);
    return former === undefined ? [] : [[key, former]];
  };
  const attempt = (part: readonly Key[]): Promise<Refusal | null> => send(new Map(part.flatMap(formerOf)));
  const { found } = await findOffending(keys, { ...trial, attempt });
  for (const [key] of found) ledger.abandonDamaged(key);
}

/** Those that are named may be all that are refused. When others are named afterwards, there may be many. */
function without<Unit>(suspects: ReadonlySet<Unit>, { units, isRest }: Part<Unit>): readonly Part<Unit>[] {
  const rest = { units: units.filter((unit) => !suspects.has(unit)), isNamed: false, isRest: true };
  return isRest ? halves(rest) : [rest];
}

function halves<Unit>({ units, isRest }: Part<Unit>): readonly Part<Unit>[] {
  const middle = units.length >> 1;
  return [units.slice(0, middle), units.slice(middle)].map((half) => ({ units: half, isNamed: false, isRest }));
}
