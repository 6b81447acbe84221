import type { FamilyTable, FrontendKey } from '../plan/types.js';
import type { NodeFault, QuarantinedFrontend, SyncReport } from './contract.js';
import type { Driver, FoundFaults } from './driver.js';

const NONE_FOUND: FoundFaults = { faults: [], explains: () => false };
/** With fewer refused frontends a common reason proves nothing. */
const FEWEST = 3;
/**
 * So great a part of all frontends is no tenant's. The part of those that were sent would be: a user of the cluster could
 * make every node unhealthy with a few Services that the kernel refuses.
 */
const MOST = 0.9;

/**
 * Decides whether the node or a Service is at fault when frontends are quarantined. A part of the mode that the node does not
 * take by itself is the node's fault, even if one frontend alone needs it. So is a reason that nearly all frontends have.
 */
export async function blame(
  driver: Pick<Driver<unknown>, 'nodeFaults'>,
  table: FamilyTable,
  quarantined: readonly QuarantinedFrontend[],
): Promise<Pick<SyncReport, 'quarantined' | 'nodeFaults'>> {
  const found = await findFaults(driver, table, quarantined);
  const { faults } = found;
  const [first] = faults;
  if (first !== undefined)
    return {
      nodeFaults: faults,
      quarantined: quarantined.map((each) => {
        if (!isExplainedBy(found, each.reason)) return each;
        const isNamed = faults.some(({ text }) => text === each.reason);
        return { ...each, reason: isNamed ? each.reason : first.text, ofNode: true };
      }),
    };
  const common = commonReason(quarantined, table);
  if (common === null) return { nodeFaults: [], quarantined };
  const fault: NodeFault = {
    text: `the kernel refuses nearly all frontends for one reason: ${common}`,
    remedy: 'see the kernel log (dmesg) and what limits its memory; pointsman status names the frontends',
    isVital: true,
  };
  const mark = (each: QuarantinedFrontend): QuarantinedFrontend =>
    causeOf(each.reason) === common ? { ...each, ofNode: true } : each;
  return { nodeFaults: [fault], quarantined: quarantined.map(mark) };
}

/** Faults found last, the state of the quarantine then, and the frontends that they explain. */
interface Found extends FoundFaults {
  readonly state: number;
  readonly concerned: ReadonlySet<FrontendKey>;
}

const foundLast = new WeakMap<Pick<Driver<unknown>, 'nodeFaults'>, Found>();

/** Tries the mode's parts, unless no quarantined frontend was tried since the last time. */
async function findFaults(
  driver: Pick<Driver<unknown>, 'nodeFaults'>,
  table: FamilyTable,
  quarantined: readonly QuarantinedFrontend[],
): Promise<FoundFaults> {
  const before = foundLast.get(driver) ?? { ...NONE_FOUND, state: NaN, concerned: new Set() };
  const state = quarantined.reduce((sum, { retryAt }) => sum + retryAt + 1, 0);
  if (state > 0 && state === before.state) return before;
  // Programs that cannot run just now show nothing new.
  const now = (await driver.nodeFaults?.(table).catch(() => before)) ?? NONE_FOUND;
  // A fault is over when the frontends that it concerned are programmed.
  const lasts = now.faults.length === 0 && quarantined.some(({ frontend }) => before.concerned.has(frontend));
  const result = lasts ? before : now;
  const isConcerned = ({ reason }: QuarantinedFrontend): boolean => isExplainedBy(result, reason);
  const concerned = new Set(quarantined.filter(isConcerned).map(({ frontend }) => frontend));
  foundLast.set(driver, { ...result, state, concerned });
  return result;
}

function isExplainedBy({ faults, explains }: FoundFaults, reason: string): boolean {
  return faults.some(({ text }) => text === reason) || (faults.length > 0 && explains(reason));
}

function commonReason(quarantined: readonly QuarantinedFrontend[], table: FamilyTable): string | null {
  if (quarantined.length < FEWEST) return null;
  const counts = new Map<string, number>();
  for (const { reason } of quarantined) counts.set(causeOf(reason), (counts.get(causeOf(reason)) ?? 0) + 1);
  const [most = ['', 0]] = [...counts].sort(([, one], [, other]) => other - one);
  const [cause, count] = most;
  if (count < FEWEST) return null;
  const frontends = table.frontends()[Symbol.iterator]();
  for (let all = 1; frontends.next().done !== true; all++) if (all * MOST > count) return null;
  return cause;
}

/** A reason without what it names: the system's error with all that follows, or the words of a program about it. */
export function causeOf(reason: string): string {
  return (
    /\b(?:E[A-Z][A-Z0-9_]+|HCN_E_\w+) \(.*/s.exec(reason)?.[0] ??
    /\b[A-Z_]+ failed(?: \([^)]*\))?/.exec(reason)?.[0] ??
    reason.replace(/\b[A-Z2-7]{16}\b/g, '…').replace(/\d[\d.:/[\]]*/g, '…')
  );
}
