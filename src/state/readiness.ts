/** Which sources have registered, and which of them have reported complete. */
export class Readiness {
  private readonly sources: { readonly name: string; complete: boolean; unsynced: boolean }[] = [];

  /** Returns the source's number, counted from 0 in the order of registration. */
  register(name: string): number {
    this.sources.push({ name, complete: false, unsynced: false });
    return this.sources.length - 1;
  }

  complete(source: number): void {
    const entry = this.sources[source];
    if (entry !== undefined) entry.complete = true;
  }

  setUnsynced(source: number, present: boolean): void {
    const entry = this.sources[source];
    if (entry !== undefined) entry.unsynced = present;
  }

  /** Whether any source knows that it could not read everything. */
  get unsynced(): boolean {
    return this.sources.some((source) => source.unsynced);
  }

  get ready(): boolean {
    return this.sources.length > 0 && this.sources.every((source) => source.complete);
  }

  /** Names of the sources that have not reported complete. */
  waitingFor(): readonly string[] {
    return this.sources.filter((source) => !source.complete).map((source) => source.name);
  }
}
