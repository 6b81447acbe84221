import type { EndpointList } from '../base/endpoint-list.js';
import type { ObjectKey } from '../state/rows.js';
import { slotTable, tableSteps, type SlotTable } from './slot-table.js';

/**
 * The table of a list, by which the planning of one Service gets it.
 *
 * @param name of the list among those of the Service: what its table was the last time saves work.
 */
export type Tables = (name: string, list: EndpointList, weights: readonly number[], size: number) => Uint16Array;

/** Makes each table when it is asked for. */
export const makeTable: Tables = (_name, list, weights, size) => slotTable(list, weights, size);

/** Slots of each Service's tables, made in steps and from the tables before them. They are as {@link slotTable} makes them. */
export class SlotTables {
  private readonly services = new Map<ObjectKey, ReadonlyMap<string, SlotTable>>();

  /** For the planning of one Service. */
  planning(service: ObjectKey): ServiceTables {
    return new ServiceTables(this.services.get(service) ?? NONE, (tables) => {
      if (tables.size === 0) this.services.delete(service);
      else this.services.set(service, tables);
    });
  }

  forget(service: ObjectKey): void {
    this.services.delete(service);
  }
}

const NONE: ReadonlyMap<string, SlotTable> = new Map();
const NO_SLOTS = new Uint16Array(0);

interface Wanted {
  readonly list: EndpointList;
  readonly weights: readonly number[];
  readonly size: number;
  readonly before: SlotTable | null;
}

/**
 * The tables of one Service. It is planned once to find which tables it needs. If some are not made yet, {@link make} makes
 * them, and it is planned again. Lists with the same endpoints and weights share a table.
 */
class ServiceTables {
  /** By content. */
  private readonly made = new Map<string, SlotTable>();
  private readonly wanted = new Map<string, Wanted>();
  private readonly used = new Map<string, SlotTable>();

  constructor(
    private readonly before: ReadonlyMap<string, SlotTable>,
    private readonly keep: (tables: ReadonlyMap<string, SlotTable>) => void,
  ) {}

  /** Empty for a table that is not made yet. */
  readonly of: Tables = (name, list, weights, size) => {
    const content = `${weights.join()} ${Buffer.from(list.packed).toString('latin1')}`;
    const before = this.before.get(name) ?? null;
    const isSame = before !== null && before.endpoints.equals(list) && sameNumbers(before.weights, weights);
    const table = this.made.get(content) ?? (isSame ? before : null);
    if (table === null) {
      if (!this.wanted.has(content)) this.wanted.set(content, { list, weights, size, before });
      return NO_SLOTS;
    }
    this.made.set(content, table);
    this.used.set(name, table);
    return table.slots;
  };

  /** Whether the plan that was made lacks tables. */
  get isWaiting(): boolean {
    return this.wanted.size > 0;
  }

  /** Each step returns how many endpoints were compared for slots. */
  *make(): Generator<number, void> {
    const compared = { pairs: 0 };
    for (const [content, { list, weights, size, before }] of this.wanted) {
      this.made.set(content, yield* tableSteps(list, weights, size, before, compared));
      this.wanted.delete(content);
    }
  }

  /** The plan has all of its tables, which are kept for the next one. */
  finish(): void {
    this.keep(this.used);
  }
}

export type { ServiceTables };

function sameNumbers(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((each, place) => each === other[place]);
}
