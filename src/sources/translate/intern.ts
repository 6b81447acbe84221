import type { EndpointPortRow } from '../../state/rows.js';

const DEFAULT_LIMIT = 65_536;

/**
 * Shares equal names and lists between rows: a cluster has far fewer node names than endpoints. Each source has its own. Every table is
 * bounded: a full one starts anew, which costs sharing, never correctness, as rows compare by value.
 */
export class Interner {
  private readonly texts: InternTable<string>;
  private readonly lists: InternTable<readonly string[]>;
  private readonly portLists: InternTable<readonly EndpointPortRow[]>;

  /** @param limit entries per table. */
  constructor(limit = DEFAULT_LIMIT) {
    this.texts = new InternTable(limit);
    this.lists = new InternTable(limit);
    this.portLists = new InternTable(limit);
  }

  text(text: string): string {
    return this.texts.get(text, (own) => own);
  }

  list(texts: readonly string[]): readonly string[] {
    const [first] = texts;
    // Most lists have one entry; a list as JSON starts with a bracket, so the two forms cannot meet.
    const key = texts.length === 1 && first !== undefined ? `=${first}` : JSON.stringify(texts);
    return this.lists.get(key, () => texts.map((text) => this.text(text)));
  }

  ports(ports: readonly EndpointPortRow[]): readonly EndpointPortRow[] {
    const key = ports.map(({ name, protocol, port }) => `${name}/${protocol}/${port}`).join();
    return this.portLists.get(key, () => ports.map((port) => ({ ...port, name: this.text(port.name) })));
  }
}

class InternTable<T> {
  private readonly entries = new Map<string, T>();

  constructor(private readonly limit: number) {}

  /** @param make gets the key as the table keeps it. */
  get(key: string, make: (key: string) => T): T {
    const held = this.entries.get(key);
    if (held !== undefined) return held;
    if (this.entries.size >= this.limit) this.entries.clear();
    const own = ownCopy(key);
    const made = make(own);
    this.entries.set(own, made);
    return made;
  }
}

/** A copy that does not keep alive the text it was cut from: a parser's strings may be windows on a whole file. */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}
