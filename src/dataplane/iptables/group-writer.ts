import type { IptablesOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { FrontendKey } from '../../plan/types.js';
import type { QuarantinedFrontend } from '../contract.js';
import type { ChainLedger } from '../xtables/chain-ledger.js';
import type { ChainStates } from '../xtables/chain-states.js';
import { reasonOf } from '../xtables/failure.js';
import { tablesBefore } from '../xtables/operations.js';
import { faultsOf, type LackingPart } from '../xtables/parts.js';
import { chainId, type ChainId } from '../xtables/rules.js';
import type { ChainWriter, RefusedStream, Stream } from './chain-writer.js';
import { findOffending, restoreDamaged, type Offending } from '../offending.js';
import { CHAIN, hashIn } from './names.js';
import type { Ruleset } from './ruleset.js';
import { entryChain, hasEndpoints, needsPart, type ServiceGroup } from './service-chains.js';
import type { ServiceGroups, Unit } from './service-groups.js';

/** The most offending elements that one sync looks for. */
const MOST_OFFENDING = 16;
/**
 * The most streams that one sync tries to find which quarantined units are still refused, and the units it tries first: the
 * next change waits for them.
 */
const MOST_RETRIES = 5;
const FIRST_RETRIED = 8;

/** Chains that are sent although they are there, to see whether the kernel takes anything. */
const CONTROL: readonly ChainId[] = [chainId('filter', CHAIN.canary), chainId('nat', CHAIN.canary)];

interface GroupWriterOptions {
  readonly groups: ServiceGroups;
  readonly ruleset: Ruleset;
  readonly chains: ChainLedger;
  readonly writer: ChainWriter;
  /** The parts of rules that this node does not take. */
  readonly lacking: () => Promise<readonly LackingPart[]>;
}

/**
 * Brings Service ports to the kernel, and quarantines those that it refuses: the kernel keeps their previous state, and the
 * others do not wait for them.
 */
export class GroupWriter {
  /**
   * Groups that are shown as the kernel holds them and whose own chains are not sent: quarantined groups, and during a search
   * for offending elements the groups not yet tried.
   */
  private readonly hidden = new Set<string>();

  constructor(private readonly options: GroupWriterOptions) {}

  /** These groups are to be another way. */
  follow(changed: Iterable<string>): void {
    const { quarantined } = this.options.groups.ledger;
    this.reveal([...changed].filter((hash) => !quarantined.has(hash)));
  }

  /** Call before a full listing is read back. Quarantined groups that were altered are restored, and tried at once. */
  noteDamage(listed: ChainStates): void {
    const { chains, groups } = this.options;
    const { ledger } = groups;
    if (ledger.quarantined.size === 0) return;
    for (const [id, { digest }] of chains.acknowledged) {
      const hash = hashIn(id) ?? '';
      if (!ledger.acknowledged.has(hash) || chains.unknown.has(id) || listed.get(id)?.digest === digest) continue;
      ledger.damage(hash);
    }
  }

  /** The listing was read back. */
  hideDamaged(): void {
    this.hide([...this.options.groups.ledger.damaged.keys()]);
  }

  /** Restores externally changed groups that are quarantined, where the kernel takes their former state. */
  async restore(): Promise<void> {
    const { ledger } = this.options.groups;
    for (const [hash, former] of [...ledger.damaged]) if (!this.isFree(former)) ledger.abandonDamaged(hash);
    await restoreDamaged(ledger, [...ledger.damaged.keys()], (former) => this.attemptFormer(former), {
      named: (part, { error }) => part.filter((hash) => hash === namedIn(error)),
      most: MOST_OFFENDING,
      attempts: MOST_RETRIES,
      first: 'smaller',
    });
  }

  /** Every frontend of groups that are quarantined. */
  quarantined(): readonly QuarantinedFrontend[] {
    const { groups } = this.options;
    const found = new Map<FrontendKey, QuarantinedFrontend>();
    for (const [hash, { reason, since, retryAt }] of groups.ledger.quarantined)
      for (const frontend of groups.frontendsOf(hash)) found.set(frontend, { frontend, reason, since, retryAt });
    return [...found.values()];
  }

  /**
   * Sends all that is pending in one stream, except what is quarantined. Another stream removes refusals that the first made
   * superfluous. Null: the kernel took it.
   */
  bringPending(removing: boolean, others: readonly IptablesOperation[]): Promise<RefusedStream | null> {
    const { together, apart } = this.options.groups.pending();
    const hidden = new Set(apart.flat());
    this.hide([...hidden].filter((hash) => !this.hidden.has(hash)));
    // The groups that a failed sync did not come to.
    this.reveal([...this.hidden].filter((hash) => !hidden.has(hash)));
    return this.bring(together, { removing, others, also: [] });
  }

  /**
   * Brings what was refused in one stream but for the groups to blame, which it quarantines.
   *
   * @param others what the stream held besides.
   * @throws what the kernel answered, if it refuses more than single groups.
   */
  async blame(refused: RefusedStream, others: readonly IptablesOperation[]): Promise<void> {
    const { groups } = this.options;
    this.hide(groups.pending().together);
    await this.letGo(refused);
    const written = tablesBefore(refused.table);
    await this.control(others.filter(({ table }) => !written.includes(table)));
    const lacking = await this.options.lacking();
    const offending = await this.bringApart(groups.units(groups.pending().together), Infinity, lacking);
    // If everything is refused by now, no group is at fault.
    if (offending.found.length > 0) await this.control([]);
    this.quarantine(offending.found, lacking);
    if (offending.tooMany !== null) throw offending.tooMany.error;
  }

  /** Tries again some of the quarantined units that are due: more as long as all are taken. Answers the frontends of those taken. */
  async bringDue(): Promise<ReadonlySet<FrontendKey>> {
    const { groups } = this.options;
    const taken = new Set<FrontendKey>();
    const lacking = groups.due(1).length === 0 ? [] : await this.options.lacking();
    for (let [most, isTaken, attempts] = [FIRST_RETRIED, true, MOST_RETRIES]; isTaken && attempts > 0; most *= 2) {
      const due = groups.due(most);
      if (due.length === 0) break;
      const tried = due.flat().map((hash) => ({ hash, keys: groups.frontendsOf(hash) }));
      const { found } = await this.bringApart(due, attempts, lacking);
      this.quarantine(found, lacking);
      for (const { hash, keys } of tried) {
        if (groups.ledger.isPending(hash)) isTaken = false;
        else for (const key of keys) taken.add(key);
      }
      attempts--;
    }
    return taken;
  }

  /** Sends what has to do with no group that is pending. */
  private async control(others: readonly IptablesOperation[]): Promise<void> {
    const refused = await this.bring([], { removing: false, others, also: CONTROL });
    if (refused !== null) throw refused.error;
  }

  /**
   * Removes and quarantines groups whose entries are refused although the kernel holds them: nothing could be written beside
   * them any more. Entries are tried where no packet comes by, so other groups' entries stay in place.
   */
  private async letGo({ error }: RefusedStream): Promise<void> {
    const { groups, ruleset, writer } = this.options;
    const attempt = (hashes: readonly string[]): Promise<RefusedStream | null> =>
      writer.tryRules(ruleset.entriesOf(hashes));
    // Entries cannot lead to chains that were removed externally, which are written again with what is controlled.
    const shown = ruleset.hashes().filter((hash) => {
      const held = groups.ledger.acknowledged.get(hash);
      return held === undefined || this.isIntact(held);
    });
    const refused = await attempt(shown);
    if (refused !== null) {
      if ((await attempt([])) !== null) throw error;
      const named = (part: readonly string[], other: RefusedStream): readonly string[] =>
        part.filter((hash) => hash === namedIn(other.error));
      const limits = { most: MOST_OFFENDING, attempts: Infinity, first: 'larger' } as const;
      const { found, tooMany } = await findOffending(shown, { attempt, named, ...limits });
      for (const [hash] of found) groups.ledger.readBack(hash, undefined);
      this.hide(found.map(([hash]) => hash));
      this.quarantine(found.map(([hash, by]) => [[hash], by]));
      if (tooMany !== null) throw tooMany.error;
    }
    await writer.endTrial();
  }

  private bringApart(
    units: readonly Unit[],
    attempts: number,
    lacking: readonly LackingPart[],
  ): Promise<Offending<Unit, RefusedStream>> {
    return findOffending(units, {
      attempt: (part) => this.attempt(part.flat()),
      // All that need what this node lacks are found at once, however many they are.
      named: (part, { error }) =>
        part.filter((unit) => unit.includes(namedIn(error) ?? '') || this.lacks(unit, lacking).length > 0),
      most: MOST_OFFENDING,
      attempts,
      first: attempts === Infinity ? 'larger' : 'smaller',
    });
  }

  /** Sends groups in their state before an external change. */
  private async attemptFormer(former: ReadonlyMap<string, ServiceGroup>): Promise<RefusedStream | null> {
    const { groups, ruleset, writer } = this.options;
    const { ledger } = groups;
    const hashes = [...former.keys()];
    const except = new Set([...this.hidden].filter((hash) => !hashes.includes(hash)));
    ruleset.show([...former]);
    let isTaken = false;
    try {
      await writer.look();
      const refused = await writer.send({ removing: false, others: [], also: [], except });
      if (refused !== null) return refused;
      isTaken = true;
      for (const [hash, group] of former) ledger.readBack(hash, group);
    } finally {
      // Filter may have been written all the same.
      if (!isTaken) ruleset.mayRefuse(hashes);
      ruleset.show(hashes.map((hash) => [hash, ledger.acknowledged.get(hash)]));
    }
    await this.finish(hashes, false);
    return null;
  }

  private quarantine(found: Offending<Unit, RefusedStream>['found'], lacking: readonly LackingPart[] = []): void {
    for (const [unit, { error }] of found) {
      const [fault] = faultsOf('iptables', this.lacks(unit, lacking).length > 0 ? lacking : []);
      for (const hash of unit) this.options.groups.ledger.quarantine(hash, fault?.text ?? reasonOf(error));
    }
  }

  /** Missing parts that the unit needs. */
  private lacks(unit: Unit, lacking: readonly LackingPart[]): readonly LackingPart[] {
    if (lacking.length === 0) return [];
    const groups = unit.flatMap((hash) => this.options.groups.ledger.desired(hash) ?? []);
    return lacking.filter(({ part }) => groups.some((group) => needsPart(group, part.word)));
  }

  /** Leaves the groups hidden unless they are taken. */
  private async attempt(hashes: readonly string[]): Promise<RefusedStream | null> {
    let isTaken = false;
    try {
      const refused = await this.bring(hashes, { removing: false, others: [], also: [] });
      isTaken = refused === null;
      return refused;
    } finally {
      if (!isTaken) this.hide(hashes);
    }
  }

  private async bring(hashes: readonly string[], stream: Omit<Stream, 'except'>): Promise<RefusedStream | null> {
    const { groups, ruleset, writer } = this.options;
    this.reveal(hashes);
    await writer.look();
    const claim = groups.ledger.claim(hashes);
    let refused: RefusedStream | null;
    try {
      refused = await writer.send({ ...stream, except: this.hidden });
    } catch (error) {
      claim.lose();
      ruleset.mayRefuse(hashes);
      throw error;
    }
    if (refused !== null) {
      claim.refuse();
      // Filter is the first table.
      if (refused.table !== 'filter') ruleset.mayRefuse(hashes);
      return refused;
    }
    claim.acknowledge();
    await this.finish(hashes, stream.removing);
    return null;
  }

  /** Lets go of refusals that what was taken made superfluous. */
  private async finish(hashes: readonly string[], removing: boolean): Promise<void> {
    const { ruleset, writer } = this.options;
    ruleset.finish(hashes);
    await writer.look();
    const again = await writer.send({ removing, others: [], also: [], except: this.hidden });
    if (again !== null) throw again.error;
  }

  private reveal(hashes: readonly string[]): void {
    const { groups, ruleset } = this.options;
    for (const hash of hashes) this.hidden.delete(hash);
    ruleset.show(hashes.map((hash) => [hash, groups.ledger.desired(hash)]));
  }

  /** Hides groups, and removes those that the kernel does not hold completely. */
  private hide(hashes: readonly string[]): void {
    const { groups, ruleset } = this.options;
    for (const hash of hashes) {
      this.hidden.add(hash);
      const held = groups.ledger.acknowledged.get(hash);
      if (held !== undefined && !this.isIntact(held)) groups.ledger.readBack(hash, undefined);
    }
    ruleset.show(hashes.map((hash) => [hash, groups.ledger.acknowledged.get(hash)]));
  }

  /** Whether none of a group's frontends has come to another group. */
  private isFree({ hash, frontends }: ServiceGroup): boolean {
    return frontends.every(({ key }) => [undefined, hash].includes(this.options.ruleset.groupOf(key)));
  }

  /** Whether the kernel has the chains that a group's frontends lead to. */
  private isIntact(group: ServiceGroup): boolean {
    const { acknowledged } = this.options.chains;
    return group.frontends
      .filter(hasEndpoints)
      .every((frontend) => acknowledged.has(chainId('nat', entryChain(group, frontend))));
  }
}

/** The group that the error names. */
function namedIn(error: unknown): string | null {
  return isNativeError(error) ? hashIn(error.object ?? '') : null;
}
