import type { EndpointPortRow, ServicePortRow } from '../../state/rows.js';

const DEFAULT_LIMIT = 65_536;
/**
 * The longest list and column that are shared. The API allows no slice more endpoints. Objects have few longer lists in
 * common, and a table that held many of them would keep what tenants have long deleted.
 */
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

  /**
   * @param limit entries per table; a list counts as many as it has.
   * @param windows whether the parser's strings may be windows on a whole file, which must not be kept.
   */
  constructor(
    limit = DEFAULT_LIMIT,
    private readonly windows = true,
  ) {
    this.texts = new InternTable(limit);
    this.lists = new InternTable(limit);
    this.portLists = new InternTable(limit);
    this.servicePortLists = new InternTable(limit);
  }

  /** A text to be kept that is like no other. */
  own(text: string): string {
    return this.windows ? Buffer.from(text, 'utf8').toString('utf8') : text;
  }

  text(text: string): string {
    const held = this.texts.find(text);
    if (held !== undefined) return held;
    const own = this.own(text);
    return this.texts.keep(own, own);
  }

  list(texts: readonly string[]): readonly string[] {
    if (texts.length > LONGEST_SHARED) return texts.map((text) => this.text(text));
    const [first] = texts;
    // Most lists have one entry; a list as JSON starts with a bracket, so the two forms cannot meet.
    const key = texts.length === 1 && first !== undefined ? `=${first}` : JSON.stringify(texts);
    const held = this.lists.find(key);
    if (held !== undefined) return held;
    const own = texts.map((text) => this.text(text));
    return this.lists.keep(this.own(key), own, own.length);
  }

  ports(ports: readonly EndpointPortRow[]): readonly EndpointPortRow[] {
    if (ports.length > LONGEST_SHARED) return this.ownNames(ports);
    let key = '';
    for (const { name, protocol, port } of ports) key += `${name}/${protocol}/${port},`;
    return this.portLists.find(key) ?? this.portLists.keep(this.own(key), this.ownNames(ports), ports.length);
  }

  servicePorts(ports: readonly ServicePortRow[]): readonly ServicePortRow[] {
    if (ports.length > LONGEST_SHARED) return this.ownNames(ports);
    let key = '';
    for (const { name, protocol, port, nodePort } of ports) key += `${name}/${protocol}/${port}/${nodePort},`;
    const held = this.servicePortLists.find(key);
    return held ?? this.servicePortLists.keep(this.own(key), this.ownNames(ports), ports.length);
  }

  /** A copy of a column of `length` bytes, shared where all of them are the same, as they mostly are. An array costs 180 bytes beside its content. */
  column(bytes: Uint8Array, length: number): Uint8Array {
    const first = bytes[0] ?? 0;
    for (let index = 1; index < length; index++) if (bytes[index] !== first) return bytes.slice(0, length);
    if (length > LONGEST_SHARED) return bytes.slice(0, length);
    const ofLength = (this.columns[length] ??= []);
    return (ofLength[length === 0 ? 0 : first] ??= bytes.slice(0, length));
  }

  private ownNames<P extends EndpointPortRow>(ports: readonly P[]): readonly P[] {
    return ports.map((port) => ({ ...port, name: this.text(port.name) }));
  }
}

class InternTable<T> {
  private readonly entries = new Map<string, T>();
  private size = 0;

  constructor(private readonly limit: number) {}

  find(key: string): T | undefined {
    return this.entries.get(key);
  }

  keep(key: string, value: T, size = 1): T {
    if (this.size + size > this.limit) {
      this.entries.clear();
      this.size = 0;
    }
    this.entries.set(key, value);
    this.size += size;
    return value;
  }
}
