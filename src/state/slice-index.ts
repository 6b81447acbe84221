import type { EndpointSliceRow, ObjectKey } from './rows.js';

const NONE: readonly EndpointSliceRow[] = [];

/**
 * Slices by the Service they name, each Service's sorted by slice name. Arrays handed out are never touched again: a commit replaces the
 * array of each Service it changes, once however many of its slices change.
 */
export class SliceIndex {
  private readonly byService = new Map<ObjectKey, EndpointSliceRow[]>();
  /** Arrays replaced in the present commit, which no reader has seen yet. */
  private readonly fresh = new Set<ObjectKey>();

  of(service: ObjectKey): readonly EndpointSliceRow[] {
    return this.byService.get(service) ?? NONE;
  }

  /** @param service the key of the Service that the slice names, as for {@link remove}. */
  put(service: ObjectKey, row: EndpointSliceRow): void {
    const held = this.byService.get(service);
    if (held === undefined) {
      // Most Services have one slice; an array that grows to one takes room for 17.
      this.byService.set(service, [row]);
      this.fresh.add(service);
      return;
    }
    const slices = this.writable(service, held);
    const place = placeOf(slices, row.name);
    slices.splice(place, slices[place]?.name === row.name ? 1 : 0, row);
  }

  remove(service: ObjectKey, row: EndpointSliceRow): void {
    const held = this.byService.get(service);
    if (held === undefined) return;
    const slices = this.writable(service, held);
    const place = placeOf(slices, row.name);
    if (slices[place]?.name === row.name) slices.splice(place, 1);
    if (slices.length === 0) this.byService.delete(service);
  }

  /** Ends a commit: from here on every array may have been handed out. */
  seal(): void {
    this.fresh.clear();
  }

  private writable(service: ObjectKey, held: EndpointSliceRow[]): EndpointSliceRow[] {
    if (this.fresh.has(service)) return held;
    const copy = held.slice();
    this.byService.set(service, copy);
    this.fresh.add(service);
    return copy;
  }
}

/** Where `name` is, or belongs, in a list sorted by name. Names at the end are found at once, as a sorted load brings them. */
function placeOf(slices: readonly EndpointSliceRow[], name: string): number {
  let low = 0;
  let high = slices.length;
  const last = slices[high - 1];
  if (last === undefined || last.name < name) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((slices[middle]?.name ?? '') < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
