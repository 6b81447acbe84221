import { FAMILIES, type Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { LogFileConfig } from '../config/audit.js';
import type { FrontendKey, FrontendPlan } from '../plan/types.js';
import type { ObjectKey, Row, RowKind } from '../state/rows.js';
import type { AcknowledgedSync, Commit, CycleObserver, RepairedChange, ResetConnections } from './cycle-observer.js';
import { RotatedFile } from './rotated-file.js';

/** Why something was changed: what became of an object, or of the configuration. */
interface Cause {
  readonly kind: RowKind | 'Configuration';
  readonly namespace?: string;
  readonly name?: string;
  /** Its resourceVersion; absent where its source gives none, and of what is gone. */
  readonly version?: string;
  readonly change: 'added' | 'changed' | 'removed';
  /** `namespace/name` of the Service that it is about. */
  readonly service?: string;
}

/** By the object: only its last state is reported. */
type Causes = Map<string, Cause>;

interface ChangeLogParts {
  /** Of the objects that are read from an API server, as they are held now; null: none. By `namespace/name`. */
  readonly versionOf: (kind: RowKind, key: string) => string | null;
  /** What each line says of this process now. */
  readonly labels: () => { readonly node: string; readonly mode: string };
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Of frontends, of causes and of repairs, each: a line is no list of the whole cluster. */
const MOST = 1000;

/** The file of a change log, not open yet. */
export function changeLogFile(config: LogFileConfig, log: Log, now: () => number): RotatedFile {
  const onLoss = (error: unknown): void => {
    log.error(error, 'changes of the kernel are not logged', { flag: '--change-log-path' });
  };
  return new RotatedFile({ ...config, now, onLoss });
}

/** A line for each sync that changed something in the kernel: what was changed, and all that had become of objects since the one before. */
export class ChangeLog implements CycleObserver {
  private readonly queued = byFamily(() => new Map<string, Cause>());
  private readonly taken = byFamily(() => new Map<string, Cause>());

  constructor(
    private readonly file: Pick<RotatedFile, 'write' | 'close'>,
    private readonly parts: ChangeLogParts,
  ) {}

  committed({ edits }: Pick<Commit, 'edits'>): void {
    for (const { before, after } of edits) {
      const row = after ?? before;
      if (row === null) continue;
      const cause = this.causeOf(row, before === null ? 'added' : after === null ? 'removed' : 'changed');
      const families = row.kind === 'EndpointSlice' ? [row.family] : FAMILIES;
      for (const family of families) put(this.queued[family], cause);
    }
  }

  reconfigured(): void {
    for (const family of FAMILIES) put(this.queued[family], { kind: 'Configuration', change: 'changed' });
  }

  took(family: Family): void {
    for (const cause of this.queued[family].values()) put(this.taken[family], cause);
    this.queued[family].clear();
  }

  deferred(family: Family, services: ReadonlySet<ObjectKey>): void {
    const taken = this.taken[family];
    for (const [name, cause] of taken) {
      if (cause.service === undefined || !services.has(cause.service)) continue;
      // Its state since then is reported.
      if (!this.queued[family].has(name)) put(this.queued[family], cause);
      taken.delete(name);
    }
  }

  acknowledged({ report, changes, table }: Pick<AcknowledgedSync, 'report' | 'changes' | 'table'>): void {
    const { family, full, transactions, elementOperations, ruleOperations, bytes, repairs } = report;
    const causes = [...this.taken[family].values()];
    this.taken[family].clear();
    if (transactions === 0) return;
    const { now, labels } = this.parts;
    const changed = [...changes.frontends];
    this.file.write(
      JSON.stringify({
        trail: 'kernel',
        time: new Date(now()).toISOString(),
        ...labels(),
        family,
        full,
        transactions,
        elementOperations,
        ruleOperations,
        bytes,
        ...cut('frontends', changed, (key) => frontendOf(key, table.frontend(key))),
        ...cut('because', causes, (cause) => cause),
        ...(repairs.length === 0 ? {} : cut('repairs', repairs, (repair) => repair)),
      }),
    );
  }

  connectionsReset({ family, connections, endpoints }: ResetConnections): void {
    const { now, labels } = this.parts;
    this.file.write(
      JSON.stringify({
        trail: 'connections',
        time: new Date(now()).toISOString(),
        ...labels(),
        family,
        reset: connections,
        ...cut('endpoints', endpoints, (endpoint) => endpoint),
      }),
    );
  }

  /** What an external change was, and how it was repaired; what had to be changed for it is in the line of the sync. */
  repaired({ differences, ...change }: RepairedChange): void {
    if (differences === 0) return;
    const { now, labels } = this.parts;
    const time = new Date(now()).toISOString();
    this.file.write(JSON.stringify({ trail: 'external-change', time, ...labels(), ...change, differences }));
  }

  /** Resolves when all has been written. */
  close(): Promise<void> {
    return this.file.close();
  }

  private causeOf(row: Row, change: Cause['change']): Cause {
    const { kind, name } = row;
    const namespace = 'namespace' in row ? row.namespace : '';
    const version = change === 'removed' ? null : this.parts.versionOf(kind, `${namespace}/${name}`);
    const service = row.kind === 'Service' ? name : row.kind === 'EndpointSlice' ? row.serviceName : null;
    return {
      kind,
      ...(namespace === '' ? {} : { namespace }),
      name,
      ...(version === null ? {} : { version }),
      change,
      ...(service === null ? {} : { service: `${namespace}/${service}` }),
    };
  }
}

function byFamily<T>(make: () => T): Readonly<Record<Family, T>> {
  return { IPv4: make(), IPv6: make() };
}

function put(causes: Causes, cause: Cause): void {
  const { kind, namespace = '', name = '' } = cause;
  causes.set(`${kind} ${namespace}/${name}`, cause);
}

function frontendOf(key: FrontendKey, plan: FrontendPlan | undefined): object {
  if (plan === undefined) return { key, removed: true };
  return { key, service: plan.servicePort, endpoints: plan.endpoints.count };
}

/** As many as a line may have, and how many more there are. */
function cut<T>(
  name: 'frontends' | 'because' | 'repairs' | 'endpoints',
  all: readonly T[],
  print: (each: T) => unknown,
): object {
  const more = all.length - MOST;
  return { [name]: all.slice(0, MOST).map(print), ...(more > 0 ? { [`${name}NotShown`]: more } : {}) };
}
