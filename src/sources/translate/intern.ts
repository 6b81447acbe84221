import type { EndpointPortRow, ServicePortRow } from '../../state/rows.js';
import { LONGEST_NAME } from './metadata.js';

/** So many bytes a table may take. The names of 15,000 Services and nodes fit. */
const DEFAULT_BYTES = 4 << 20;
/**
 * The longest list and column that are shared. The API allows no slice more endpoints. Objects have few longer lists in
 * common, and a table that held many of them would keep what tenants have long deleted.
 */
const LONGEST_SHARED = 1000;

/**
 * Shares equal names and lists between rows: a cluster has far fewer node names than endpoints. Each source has its own. Every table is
 * bounded in bytes and forgets what no object has named for long. That costs sharing, never correctness, as rows compare by value.
 */
export class Interner {
  private readonly texts: InternTable<string, string>;
  private readonly lists: InternTable<string, readonly string[]>;
  private readonly portLists: InternTable<string, readonly EndpointPortRow[]>;
  private readonly servicePortLists: InternTable<string, readonly ServicePortRow[]>;
  /** By length and the byte that all of it is. */
  private readonly columns: InternTable<number, Uint8Array>;

  /**
   * @param bytes that each table may take.
   * @param windows whether the parser's strings may be windows on a whole file, which must not be kept.
   */
  constructor(
    bytes = DEFAULT_BYTES,
    private readonly windows = true,
  ) {
    this.texts = new InternTable(bytes, (key) => ENTRY_BYTES + 2 * key.length);
    this.lists = new InternTable(bytes, listBytes);
    this.portLists = new InternTable(bytes, listBytes);
    this.servicePortLists = new InternTable(bytes, listBytes);
    this.columns = new InternTable(bytes / 8, (key) => COLUMN_BYTES + Math.floor(key / 256));
  }

  /** A text to be kept that is like no other. */
  own(text: string): string {
    return this.windows ? Buffer.from(text, 'utf8').toString('utf8') : text;
  }

  /** Longer than any name, it is not shared. */
  text(text: string): string {
    if (text.length > LONGEST_NAME) return this.own(text);
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
    return this.lists.keep(this.own(key), own);
  }

  ports(ports: readonly EndpointPortRow[]): readonly EndpointPortRow[] {
    if (ports.length > LONGEST_SHARED) return this.ownNames(ports);
    let key = '';
    for (const { name, protocol, port } of ports) key += `${name}/${protocol}/${port},`;
    return this.portLists.find(key) ?? this.portLists.keep(this.own(key), this.ownNames(ports));
  }

  servicePorts(ports: readonly ServicePortRow[]): readonly ServicePortRow[] {
    if (ports.length > LONGEST_SHARED) return this.ownNames(ports);
    let key = '';
    for (const { name, protocol, port, nodePort } of ports) key += `${name}/${protocol}/${port}/${nodePort},`;
    const held = this.servicePortLists.find(key);
    return held ?? this.servicePortLists.keep(this.own(key), this.ownNames(ports));
  }

  /** A copy of a column of `length` bytes, shared where all of them are the same, as they mostly are. An array costs 180 bytes beside its content. */
  column(bytes: Uint8Array, length: number): Uint8Array {
    const first = bytes[0] ?? 0;
    for (let index = 1; index < length; index++) if (bytes[index] !== first) return bytes.slice(0, length);
    if (length > LONGEST_SHARED) return bytes.slice(0, length);
    const key = 256 * length + (length === 0 ? 0 : first);
    return this.columns.find(key) ?? this.columns.keep(key, bytes.slice(0, length));
  }

  private ownNames<P extends EndpointPortRow>(ports: readonly P[]): readonly P[] {
    return ports.map((port) => ({ ...port, name: this.text(port.name) }));
  }
}

/** An entry of a table beside its content: in the map, and the headers of its objects. */
const ENTRY_BYTES = 64;
const COLUMN_BYTES = 200;

/** At most, also for a list of ports without names: 7 characters of the key and 56 bytes of the list each. */
function listBytes(key: string): number {
  return ENTRY_BYTES + 8 * key.length;
}

/** A full table forgets what was not found since it was half full. */
class InternTable<K, T> {
  /** Entries that were kept or found since the others became the older ones. */
  private recent = new Map<K, T>();
  private older: ReadonlyMap<K, T> = new Map();
  /** Bytes of the recent entries. */
  private bytes = 0;

  constructor(
    private readonly limit: number,
    private readonly bytesOf: (key: K) => number,
  ) {}

  find(key: K): T | undefined {
    const held = this.recent.get(key);
    if (held !== undefined) return held;
    const old = this.older.get(key);
    return old === undefined ? undefined : this.keep(key, old);
  }

  keep(key: K, value: T): T {
    const bytes = this.bytesOf(key);
    // One that takes a half by itself would throw out everything else.
    if (bytes > this.limit / 2) return value;
    if (this.bytes + bytes > this.limit / 2) {
      this.older = this.recent;
      this.recent = new Map();
      this.bytes = 0;
    }
    this.recent.set(key, value);
    this.bytes += bytes;
    return value;
  }
}
