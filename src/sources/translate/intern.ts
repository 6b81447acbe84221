import type { EndpointPortRow, ServicePortRow } from '../../state/rows.js';

const DEFAULT_LIMIT = 65_536;
/** The API allows no slice more endpoints. */
const LONGEST_SHARED = 1000;

/**
 * Shares equal names and lists between rows: a cluster has far fewer node names than endpoints. Each source has its own. Every table is
 * bounded: a full one starts anew, which costs sharing, never correctness, as rows compare by value.
 */
export class Interner {
  private readonly texts: InternTable<string>;
  private readonly lists: InternTable<readonly string[]>;
  private readonly portLists: InternTable<readonly EndpointPortRow[]>;

  private readonly servicePortLists: InternTable<readonly ServicePortRow[]>;
  /** By length, then by the byte that all of it is. */
  private readonly columns: Uint8Array[][] = [];

  /** @param limit entries per table. */
  constructor(limit = DEFAULT_LIMIT) {
    this.texts = new InternTable(limit);
    this.lists = new InternTable(limit);
    this.portLists = new InternTable(limit);
    this.servicePortLists = new InternTable(limit);
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
    let key = '';
    for (const { name, protocol, port } of ports) key += `${name}/${protocol}/${port},`;
    return this.portLists.get(key, () => ports.map((port) => ({ ...port, name: this.text(port.name) })));
  }

  servicePorts(ports: readonly ServicePortRow[]): readonly ServicePortRow[] {
    let key = '';
    for (const { name, protocol, port, nodePort } of ports) key += `${name}/${protocol}/${port}/${nodePort},`;
    return this.servicePortLists.get(key, () => ports.map((port) => ({ ...port, name: this.text(port.name) })));
  }

  /** A copy of a column of `length` bytes, shared where all of them are the same, as they mostly are. An array costs 180 bytes beside its content. */
  column(bytes: Uint8Array, length: number): Uint8Array {
    const first = bytes[0] ?? 0;
    for (let index = 1; index < length; index++) if (bytes[index] !== first) return bytes.slice(0, length);
    if (length > LONGEST_SHARED) return bytes.slice(0, length);
    const ofLength = (this.columns[length] ??= []);
    return (ofLength[length === 0 ? 0 : first] ??= bytes.slice(0, length));
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
