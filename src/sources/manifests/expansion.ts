/** What the aliases of one file may repeat beside as much as is written: whoever reads it walks each of these values. */
const FREE_VALUES = 100_000;

/**
 * Keeps the aliases of a file's documents from making them much larger than they are written: one list named in a thousand places costs its reader a thousand
 * lists. Takes time in proportion to what is written.
 */
export class ExpansionBudget {
  private free = FREE_VALUES;

  /** Whether the document may be read. */
  admits(document: unknown): boolean {
    const sizes = new Map<object, number>();
    let written = 0;
    // As deep as the parser lets documents be.
    const sizeOf = (value: unknown): number => {
      if (typeof value !== 'object' || value === null) {
        written++;
        return 1;
      }
      const known = sizes.get(value);
      if (known !== undefined) return known;
      written++;
      // What leads back into itself is endless.
      sizes.set(value, Infinity);
      let size = 1;
      for (const part of Object.values(value)) size += sizeOf(part);
      sizes.set(value, size);
      return size;
    };
    const excess = Math.max(0, sizeOf(document) - 2 * written);
    if (excess > this.free) return false;
    this.free -= excess;
    return true;
  }
}
