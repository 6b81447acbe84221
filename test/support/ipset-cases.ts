// needs: ipset
import type { Test } from 'tap';
import type { IpsetAddon, IpsetCreation } from '../../src/native/contract.js';
import { run } from './run.js';

/** A set and what to put into it. */
export interface IpsetCase {
  readonly set: IpsetCreation;
  readonly elements: readonly IpsetElementCase[];
}

export interface IpsetElementCase {
  readonly bytes: Uint8Array;
  /** As `ipset save` prints it. */
  readonly text: string;
  readonly comment: string | null;
}

export const HASH = { hashSize: 1024, maxElements: 65536, comments: true, counters: false, ports: null } as const;

export function join(...parts: readonly (readonly number[] | Uint8Array)[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** What `ipset save` prints of the elements of a set, sorted. */
export function saved(name: string): readonly string[] {
  return run(`ipset save ${name}`)
    .split('\n')
    .flatMap((line) => /^add \S+ (.*)$/.exec(line)?.[1]?.trim() ?? [])
    .sort();
}

/** Makes a set, fills it, lists it and takes everything out again, and compares with what the program ipset sees. */
export async function ipsetRoundTrip(t: Test, ipset: IpsetAddon, { set, elements }: IpsetCase): Promise<void> {
  const all = join(...elements.map(({ bytes }) => bytes));
  const printed = ({ text, comment }: IpsetElementCase): string =>
    comment === null ? text : `${text} comment "${comment}"`;
  const comments = set.comments ? elements.map(({ comment }) => comment) : null;
  t.same(
    (
      await ipset.ipsetApply([
        { type: 'create', set },
        { type: 'add', set, elements: all, comments: null },
        // Once more is no failure, and brings the comments.
        { type: 'add', set, elements: all, comments },
      ])
    ).refused,
    [],
    set.name,
  );
  t.same(saved(set.name), elements.map(printed).sort(), set.name);
  const [listing] = await ipset.ipsetList([set.name]);
  const {
    elements: packed,
    elementComments,
    elementPackets,
    references,
    plain,
    ...header
  } = listing ?? {
    elements: null,
  };
  t.equal(elementPackets, null, 'nothing is counted');
  t.same([header, references, plain], [set, 0, true], set.name);
  const size = all.length / elements.length;
  const text = (bytes: Uint8Array, comment: string | null | undefined): string =>
    `${Buffer.from(bytes).toString('hex')} ${comment ?? ''}`;
  t.same(
    elements
      .map((_, at) => text(packed?.subarray(at * size, (at + 1) * size) ?? new Uint8Array(), elementComments?.[at]))
      .sort(),
    elements.map(({ bytes, comment }) => text(bytes, comment)).sort(),
    set.name,
  );
  const first = all.subarray(0, size);
  t.same(
    (
      await ipset.ipsetApply([
        { type: 'delete', set, elements: first },
        { type: 'delete', set, elements: first },
      ])
    ).refused,
    [],
  );
  t.same(saved(set.name), elements.slice(1).map(printed).sort(), set.name);
  t.same((await ipset.ipsetApply([{ type: 'flush', name: set.name }])).refused, []);
  t.same(saved(set.name), []);
  t.same((await ipset.ipsetApply([{ type: 'destroy', name: set.name }])).refused, []);
  t.same(await ipset.ipsetList([set.name]), [null]);
}
