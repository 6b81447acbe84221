/** Which sources have registered, and which of them have reported complete. */
export class Readiness {
  private readonly sources: { readonly name: string; complete: boolean; gaps: boolean }[] = [];

  /** Returns the source's number, counted from 0 in the order of registration. */
  register(name: string): number {
    this.sources.push({ name, complete: false, gaps: false });
    return this.sources.length - 1;
  }

  complete(source: number): void {
    const entry = this.sources[source];
    if (entry !== undefined) entry.complete = true;
  }

  setGaps(source: number, present: boolean): void {
    const entry = this.sources[source];
    if (entry !== undefined) entry.gaps = present;
  }

  /** Whether any source knows that it could not read everything. */
  get gaps(): boolean {
    return this.sources.some((source) => source.gaps);
  }

  get ready(): boolean {
    return this.sources.length > 0 && this.sources.every((source) => source.complete);
  }

  /** Names of the sources that have not reported complete. */
  waitingFor(): readonly string[] {
    return this.sources.filter((source) => !source.complete).map((source) => source.name);
  }
}
