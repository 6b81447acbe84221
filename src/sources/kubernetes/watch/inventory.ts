import type { EventRecorder } from '../../../base/events.js';
import type { LineLimit } from '../../../base/line-limit.js';
import type { Log } from '../../../base/log.js';
import { cutMessage, cutText } from '../../../base/outside-text.js';
import { objectKey, type ObjectKey, type Row, type RowKind, type RowRef } from '../../../state/rows.js';
import type { StateChange } from '../../../state/writer.js';
import { TranslateError } from '../../translate/errors.js';
import type { Interner } from '../../translate/intern.js';
import { LONGEST_NAME, type Translation } from '../../translate/metadata.js';
import type { LeftOut } from '../../left-out.js';
import { CodecError } from '../codec/errors.js';
import type { ReceivedObject } from '../codec/events.js';
import type { Resource } from '../resources.js';

/** How many objects could not be used so far. */
interface ObjectFaults {
  /** Bytes that make no such object. */
  readonly undecodable: number;
  /** Objects with a field that may not be as it is. */
  readonly invalid: number;
}

/** So many of the objects that are not used are named. */
const EXAMPLES = 3;

/** `unused`: an object that is not for a proxy; `warning`: a part is left out; `error`: this version of the object is not used. */
type Severity = 'unused' | 'warning' | 'error';

/** What is wrong with an object. */
interface Complaint {
  readonly text: string;
  readonly severity: Severity;
  /** Name of the Service that the object is of, in its namespace; null: none, or it is not known. */
  readonly service: string | null;
}

/**
 * Which objects of a resource have been taken, and in which version: an object that comes again unchanged costs no more than being named.
 * Objects that cannot be used keep the row they had. Nothing here is truth: rows go to the state.
 */
export class Inventory {
  private versions = new Map<ObjectKey, string>();
  /** What is wrong with objects that are present, as last logged. */
  private readonly complaints = new Map<ObjectKey, Complaint>();
  /** Objects that have no row, by reason, until they are reported. */
  private readonly unused = new Map<string, ObjectKey[]>();
  /** A list that is coming in. */
  private incoming: Relist | null = null;
  private undecodable = 0;
  private invalid = 0;

  constructor(
    private readonly resource: Resource,
    private readonly names: Interner,
    private readonly log: Log,
    private readonly events: EventRecorder,
    private readonly lines: LineLimit,
  ) {}

  get size(): number {
    return this.versions.size;
  }

  /** Objects taken, or those of a list that is still coming in, where these are more. */
  get received(): number {
    return Math.max(this.size, this.incoming?.size ?? 0);
  }

  /** The version in which an object was taken last; null: none is held, or it has none. */
  versionOf(key: ObjectKey): string | null {
    return this.versions.get(key) || null;
  }

  /** In which versions objects were taken last. */
  get held(): ReadonlyMap<ObjectKey, string> {
    return this.versions;
  }

  get kind(): RowKind {
    return this.resource.kind;
  }

  /** Objects that are present and not used, or not whole; but for those that are not for a proxy. */
  leftOut(): readonly LeftOut[] {
    return [...this.complaints].flatMap(([key, { text, severity, service }]): readonly LeftOut[] => {
      if (severity === 'unused' && service === null) return [];
      const ref = this.shownRef(key);
      const own = ref.kind === 'Service' ? objectKey(ref.namespace, ref.name) : null;
      const of = service === null ? own : objectKey(ref.namespace, service);
      return [{ ref, service: of, isWhole: severity !== 'warning', text }];
    });
  }

  get faults(): ObjectFaults {
    return { undecodable: this.undecodable, invalid: this.invalid };
  }

  /**
   * An object that was added or modified. Null when there is nothing to change.
   *
   * @throws CodecError when the object cannot be read; its old row stays.
   */
  upsert(object: ReceivedObject): StateChange | null {
    const key = keyOf(object);
    const change = this.changeOf(key, object);
    this.versions.set(key, object.version);
    this.sayUnused();
    return change;
  }

  /**
   * An object that was deleted.
   *
   * @throws CodecError when it has no name.
   */
  remove(object: ReceivedObject): StateChange {
    this.checkName(object);
    const { key, removal } = this.removalOf(object);
    this.versions.delete(key);
    this.complaints.delete(key);
    return removal;
  }

  removalOf(object: ReceivedObject): { readonly key: ObjectKey; readonly removal: StateChange } {
    const key = keyOf(object);
    return { key, removal: { type: 'remove', ref: this.refOf(key) } };
  }

  /** Counts an error about an object that cannot be named. */
  countUndecodable(): void {
    this.undecodable++;
  }

  relist(): Relist {
    this.incoming = new Relist(this);
    return this.incoming;
  }

  /** The server has lost versions and gives them out again: whatever comes next is read, whichever version it has. */
  distrustVersions(): void {
    for (const key of this.versions.keys()) this.versions.set(key, '');
  }

  /** One object of a relist: the key it is to be marked by, the version it is now held in, and what changes. Null version: not held at all. */
  takeListed(object: ReceivedObject): {
    readonly key: ObjectKey;
    readonly version: string | null;
    readonly change: StateChange | null;
    readonly uncertain: boolean;
  } {
    const key = keyOf(object);
    try {
      return { key, version: object.version, change: this.changeOf(key, object), uncertain: false };
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      // Marked in its old version: present, and to be read again when it is listed again.
      return { key, version: this.versions.get(key) ?? null, change: null, uncertain: true };
    }
  }

  /** Makes what was listed all there is. Returns the removal of everything else. */
  replace(listed: Map<ObjectKey, string>, present: ReadonlySet<ObjectKey>): readonly StateChange[] {
    const removed: StateChange[] = [];
    for (const key of this.versions.keys()) {
      if (!listed.has(key) && !present.has(key)) removed.push({ type: 'remove', ref: this.refOf(key) });
    }
    for (const key of this.complaints.keys()) if (!listed.has(key) && !present.has(key)) this.complaints.delete(key);
    this.versions = listed;
    this.incoming = null;
    this.sayUnused();
    return removed;
  }

  private changeOf(key: ObjectKey, object: ReceivedObject): StateChange | null {
    if (object.version !== '' && this.versions.get(key) === object.version) return null;
    const translation = this.translate(key, object);
    if (translation === null) return null;
    const { row } = translation;
    return row === null ? { type: 'remove', ref: this.refOf(key) } : { type: 'upsert', row, key };
  }

  /** Null when the object is invalid. */
  private translate(key: ObjectKey, object: ReceivedObject): Translation<Row> | null {
    try {
      this.checkName(object);
      const translation = object.translate(this.names);
      const { row, warnings, service = null } = translation;
      this.complain(key, warnings.join('; '), row === null ? 'unused' : 'warning', service);
      return translation;
    } catch (error) {
      if (error instanceof TranslateError) {
        this.invalid++;
        this.complain(key, error.message, 'error', error.service);
        return null;
      }
      if (error instanceof CodecError) {
        this.undecodable++;
        this.complain(key, error.message, 'error', null);
      }
      throw error;
    }
  }

  /** Logs what is wrong with an object, once for as long as it stays the same, and that nothing is any more. */
  private complain(key: ObjectKey, complaint: string, severity: Severity, service: string | null): void {
    const text = cutMessage(complaint);
    const before = this.complaints.get(key);
    if (text === (before?.text ?? '')) return;
    if (text === '') {
      this.complaints.delete(key);
      const fields = before?.severity === 'unused' ? null : this.lineFields(key);
      if (fields !== null) this.log.info(0, 'Object is valid again', fields);
      return;
    }
    this.complaints.set(key, { text, severity, service });
    if (severity === 'unused') {
      const keys = this.unused.get(text);
      if (keys === undefined) this.unused.set(text, [key]);
      else keys.push(key);
      return;
    }
    const fields = this.lineFields(key);
    if (severity === 'warning') {
      if (fields !== null) this.log.warn(`Part of an object is left out: ${text}`, fields);
      // The author of a Service reads its events; slices are written by controllers.
      if (this.resource.kind === 'Service')
        this.record(key, 'PartIgnored', `the service proxy leaves out a part of this object: ${text}`, text);
      return;
    }
    if (fields !== null) this.log.error(text, 'Object cannot be used, its last good version stays', fields);
    const note = `the service proxy cannot use this object, its last good version stays: ${text}`;
    this.record(key, 'InvalidObject', note, text);
  }

  /** Null: there is no room in the log. */
  private lineFields(key: ObjectKey): Readonly<Record<string, unknown>> | null {
    const fields = this.lines.take();
    return fields === null ? null : { object: `${this.resource.kind} ${this.print(key)}`, ...fields };
  }

  private record(key: ObjectKey, reason: string, note: string, finding: string): void {
    const { kind, apiVersion } = this.resource;
    const { namespace, name } = this.shownRef(key);
    // An event is about an object that exists.
    if (!this.isNamed({ namespace, name })) return;
    const regarding = { apiVersion, kind, namespace, name };
    this.events.record({ type: 'Warning', reason, action: 'ReadObject', regarding, related: null, note, finding });
  }

  /** In one line for all of a list: such objects are others' business, and there may be thousands of them. */
  private sayUnused(): void {
    const { kind } = this.resource;
    for (const [why, keys] of this.unused) {
      const examples = keys.slice(0, EXAMPLES).map((key) => this.print(key));
      this.log.info(2, 'Objects are not used', { kind, why, count: keys.length, examples: examples.join() });
    }
    this.unused.clear();
  }

  private print(key: ObjectKey): string {
    return cutMessage(this.resource.namespaced ? key : key.slice(1));
  }

  private isNamed({ namespace, name }: Named): boolean {
    return name !== '' && (namespace !== '') === this.resource.namespaced;
  }

  private checkName(object: ReceivedObject): void {
    if (this.isNamed(object)) return;
    throw (
      object.nameless ??
      new CodecError(`a ${this.resource.kind} of namespace "${object.namespace}" and name "${object.name}"`)
    );
  }

  /** For reports: what is no name has no bound. */
  private shownRef(key: ObjectKey): RowRef {
    const { kind, namespace, name } = this.refOf(key);
    return { kind, namespace: cutText(namespace, LONGEST_NAME), name: cutText(name, LONGEST_NAME) };
  }

  private refOf(key: ObjectKey): RowRef {
    const slash = key.indexOf('/');
    return { kind: this.resource.kind, namespace: key.slice(0, slash), name: key.slice(slash + 1) };
  }
}

type Named = Pick<ReceivedObject, 'namespace' | 'name'>;

/** No row has the key of an object without a name. */
function keyOf({ namespace, name }: Named): ObjectKey {
  return objectKey(namespace, name);
}

/** Objects listed so far. Nothing is committed before the list is complete. */
export class Relist {
  private readonly listed = new Map<ObjectKey, string>();
  private readonly present = new Set<ObjectKey>();
  private changes: StateChange[] = [];
  /** Some object could not be read, so that its row may be old. */
  uncertain = false;

  constructor(private readonly inventory: Inventory) {}

  get size(): number {
    return this.listed.size + this.present.size;
  }

  add(object: ReceivedObject): void {
    const { key, version, change, uncertain } = this.inventory.takeListed(object);
    if (version === null) this.present.add(key);
    else this.listed.set(key, version);
    if (change !== null) this.changes.push(change);
    this.uncertain ||= uncertain;
  }

  /** An object that was deleted while the list was still coming in. */
  drop(object: ReceivedObject): void {
    const { key, removal } = this.inventory.removalOf(object);
    this.listed.delete(key);
    this.present.delete(key);
    this.changes.push(removal);
  }

  /** The changes that make the state what was listed, removals included; to be applied as one. */
  commit(): readonly StateChange[] {
    const removals = this.inventory.replace(this.listed, this.present);
    const changes = this.changes;
    this.changes = [];
    for (const removal of removals) changes.push(removal);
    return changes;
  }
}
