import type { EndpointPortRow, ServicePortRow } from '../../state/rows.js';

const DEFAULT_LIMIT = 65_536;

/**
 * Shares equal names and lists between rows: a cluster has far fewer node names than endpoints. Each source has its own. Every table is
 * bounded: a full one starts anew, which costs sharing, never correctness, as rows compare by value.
 */
export class Interner {
  private readonly texts: InternTable<string>;
  private readonly lists: InternTable<readonly string[]>;
  private readonly portLists: InternTable<readonly EndpointPortRow[]>;

  private readonly servicePortLists: InternTable<readonly ServicePortRow[]>;
  private readonly columns: InternTable<Uint8Array>;

  /** @param limit entries per table. */
  constructor(limit = DEFAULT_LIMIT) {
    this.texts = new InternTable(limit);
    this.lists = new InternTable(limit);
    this.portLists = new InternTable(limit);
    this.servicePortLists = new InternTable(limit);
    this.columns = new InternTable(limit);
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

  servicePorts(ports: readonly ServicePortRow[]): readonly ServicePortRow[] {
    const key = ports.map(({ name, protocol, port, nodePort }) => `${name}/${protocol}/${port}/${nodePort}`).join();
    return this.servicePortLists.get(key, () => ports.map((port) => ({ ...port, name: this.text(port.name) })));
  }

  /** A copy of a column, shared where all its bytes are the same, as they mostly are. An array costs 180 bytes beside its content. */
  column(bytes: Uint8Array): Uint8Array {
    const [first = 0] = bytes;
    for (const byte of bytes) if (byte !== first) return bytes.slice();
    return this.columns.get(`${first}*${bytes.length}`, () => bytes.slice());
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
