/**
 * Places that all namespaces share. A namespace always gets its share while there are places, and more only while half of
 * them are free: one that takes all it can get leaves half of the places to the others.
 */
export class NamespacePlaces {
  private readonly taken = new Map<string, number>();
  private total = 0;

  constructor(
    private readonly most: number,
    private readonly share: number,
  ) {}

  isFullFor(namespace: string): boolean {
    return this.total >= (this.takenBy(namespace) < this.share ? this.most : this.most / 2);
  }

  takenBy(namespace: string): number {
    return this.taken.get(namespace) ?? 0;
  }

  /** Whether there was one. */
  take(namespace: string): boolean {
    if (this.isFullFor(namespace)) return false;
    this.taken.set(namespace, this.takenBy(namespace) + 1);
    this.total++;
    return true;
  }

  free(namespace: string): void {
    const rest = this.takenBy(namespace) - 1;
    if (rest > 0) this.taken.set(namespace, rest);
    else this.taken.delete(namespace);
    this.total--;
  }
}
