import { parseAddress, type IPAddress } from '../../base/ip.js';
import { frontendKey, parseFrontendKey, serviceOf } from '../../plan/frontend-key.js';
import type { FrontendKey, FrontendPlan } from '../../plan/types.js';
import { MASQUERADE } from '../xtables/masquerade.js';
import { nodePortRules } from '../xtables/node-ports.js';
import { nameOf, tableOf } from '../xtables/operations.js';
import { chainId, commentMatch, hostText, type Chain, type ChainId } from '../xtables/rules.js';
import {
  addressBranches,
  addressDepths,
  Dispatch,
  frontendDepths,
  portBranches,
  type Branch,
  type DispatchOptions,
} from './dispatch.js';
import { fixedChains, type ModeSettings } from './fixed-chains.js';
import type { Depths } from './leaf.js';
import { CHAIN, DEEPER, DIVISION, hashIn } from './names.js';
import { RETRY_PROTOCOLS, type RetryProtocol } from './policy-names.js';
import { policyOf, retryRules } from './retry.js';
import {
  dispatchRules,
  frontendMatch,
  hasEndpoints,
  refusalChain,
  refusalRules,
  serviceChains,
  type ServiceGroup,
} from './service-chains.js';
import { groupsOf } from './service-groups.js';
import { everything, type Changes, type TableView } from '../table-view.js';

/** Chains that may differ in the kernel from what they should be, since they were reported last. */
interface TouchedChains {
  readonly chains: readonly Chain[];
  /** Chains that should not be there any more. */
  readonly gone: readonly ChainId[];
  /** It has been taken note of. Nothing may be touched between the question and this. */
  readonly noted: () => void;
}

interface Shown {
  readonly group: ServiceGroup;
  readonly plan: FrontendPlan;
}

/** Which chains a family's table has, and which of them a change of the table touches. Holds names only, no rules. */
export class Ruleset {
  private readonly groups = new Map<string, ServiceGroup>();
  private readonly shown = new Map<FrontendKey, Shown>();
  /** The names of each group's chains when they were last noted. */
  private readonly chainsOf = new Map<string, readonly string[]>();
  private readonly healthPorts = new Map<string, string>();
  /** Frontends that refuse some connections: their refusals that the kernel holds or may hold. */
  private readonly refusing = new Map<FrontendKey, readonly FrontendPlan[]>();
  /** Groups of which more is in there than what they are shown to refuse, perhaps. */
  private readonly unsettled = new Set<string>();
  private readonly addresses: Readonly<Record<'nat' | 'refused' | 'external' | 'firewall', Dispatch>>;
  private readonly ports: Readonly<Record<'nat' | 'external', Dispatch>>;
  /** For flows that get timeouts of their own. */
  private readonly retries: Readonly<Record<RetryProtocol, { readonly addresses: Dispatch; readonly ports: Dispatch }>>;
  private readonly hairpin: Dispatch;
  private readonly health: Dispatch;
  private readonly touchedGroups = new Set<string>();
  private fixedTouched = true;

  constructor(
    private readonly view: TableView,
    private readonly settings: () => ModeSettings,
  ) {
    const frontends = (
      options: Pick<DispatchOptions, 'table' | 'chain' | 'division'>,
      deeper: string,
      tail = NOTHING,
    ) => {
      const rules = (key: FrontendKey): readonly string[] => this.frontendRules(options, key);
      return new Dispatch({ ...options, branches: frontendBranches, depths: this.depths(deeper), rules, tail });
    };
    const nodePorts = (options: Pick<DispatchOptions, 'table' | 'chain' | 'division'>) => {
      const rules = (key: FrontendKey): readonly string[] => this.frontendRules(options, key);
      return new Dispatch({ ...options, branches: portBranches, depths: null, rules, tail: NOTHING });
    };
    const { services, external, nodePorts: nodePortChain, externalNodePorts } = CHAIN;
    this.addresses = {
      nat: frontends({ table: 'nat', chain: services, division: DIVISION.services }, DEEPER.services, () =>
        this.nodePortTail(nodePortChain, NODE_PORT_COMMENT),
      ),
      refused: frontends(
        { table: 'filter', chain: services, division: DIVISION.filterServices },
        DEEPER.filterServices,
      ),
      external: frontends({ table: 'filter', chain: external, division: DIVISION.external }, DEEPER.external, () =>
        this.nodePortTail(externalNodePorts, NODE_PORT_REFUSAL_COMMENT),
      ),
      firewall: this.firewall(),
    };
    this.ports = {
      nat: nodePorts({ table: 'nat', chain: nodePortChain, division: DIVISION.nodePorts }),
      external: nodePorts({ table: 'filter', chain: externalNodePorts, division: DIVISION.externalNodePorts }),
    };
    this.retries = { TCP: this.retriesOf('TCP'), UDP: this.retriesOf('UDP') };
    this.hairpin = new Dispatch({
      table: 'nat',
      chain: CHAIN.hairpin,
      division: DIVISION.hairpin,
      tail: NOTHING,
      branches: (item) => branchesOf(parseAddress(item)),
      depths: addressDepths(DEEPER.hairpin, parseAddress),
      rules: (item) => hairpinRules(parseAddress(item)),
    });
    this.health = new Dispatch({
      table: 'filter',
      chain: CHAIN.nodePorts,
      division: DIVISION.healthChecks,
      tail: NOTHING,
      branches: portBranches,
      depths: null,
      rules: (key) => this.healthRules(key),
    });
  }

  /** Takes over what changed in the table, but for its frontends: see {@link show}. */
  update(changes: Omit<Changes, 'frontends'>): void {
    for (const address of changes.hairpinAddresses) this.hairpin.set(address, this.view.hairpinAddresses.has(address));
    if (changes.healthChecks) this.updateHealthChecks();
    if (!changes.node) return;
    for (const [key, { plan }] of this.shown) this.placeRetry(key, plan);
    this.touchAll();
  }

  /** Sets these groups' chains and dispatch entries; undefined: there are none. A frontend that changes its group is in both. */
  show(changed: Iterable<readonly [hash: string, group: ServiceGroup | undefined]>): void {
    const others = [...changed].filter(([hash, group]) => this.groups.get(hash) !== group);
    const keys = new Set<FrontendKey>();
    for (const [hash, group] of others) {
      const before = this.groups.get(hash);
      for (const { key } of before?.frontends ?? []) {
        // Another group may have been shown with it since.
        if (this.shown.get(key)?.group === before) this.shown.delete(key);
        keys.add(key);
      }
      if (group === undefined) this.groups.delete(hash);
      else this.groups.set(hash, group);
      this.touchedGroups.add(hash);
    }
    for (const [, group] of others) {
      if (group === undefined) continue;
      for (const plan of group.frontends) {
        this.shown.set(plan.key, { group, plan });
        keys.add(plan.key);
      }
    }
    for (const key of keys) this.place(key);
  }

  /** The hashes of all groups that are shown. */
  hashes(): readonly string[] {
    return [...this.groups.keys()];
  }

  /** The group that is shown with a frontend; undefined: none is. */
  groupOf(key: FrontendKey): string | undefined {
    return this.shown.get(key)?.group.hash;
  }

  /** The dispatch chains' rules for these groups. */
  entriesOf(hashes: readonly string[]): Readonly<Record<'filter' | 'nat', readonly string[]>> {
    const shown = hashes.flatMap((hash) => {
      const group = this.groups.get(hash);
      return group === undefined ? [] : group.frontends.map((plan) => ({ group, plan }));
    });
    return {
      filter: shown.flatMap(({ plan }) => [...this.outlived(plan), plan].flatMap(refusalRules)),
      nat: shown.flatMap(({ group, plan }) => dispatchRules(group, plan)),
    };
  }

  /** Takes the refusals found in the kernel for refused until now: unwanted ones are removed as by any change. */
  adoptRefusals(refusals: ReadonlyMap<FrontendKey, FrontendPlan>): void {
    for (const [key, frontend] of refusals) {
      const shown = this.shown.get(key);
      if (shown === undefined) continue;
      this.unsettled.add(shown.group.hash);
      this.refusing.set(key, [frontend]);
      this.place(key);
    }
  }

  /** The kernel may refuse already what these groups are shown to refuse, beside what it did. */
  mayRefuse(hashes: Iterable<string>): void {
    for (const hash of hashes) {
      this.unsettled.add(hash);
      for (const plan of this.groups.get(hash)?.frontends ?? []) {
        const held = this.refusing.get(plan.key) ?? [];
        if (refusalChain(plan) !== null && !held.includes(plan)) this.refusing.set(plan.key, [...held, plan]);
      }
    }
  }

  /**
   * The kernel holds what is shown, and has changed for these groups. Removes refusals that outlived their time. Tables are
   * written one after the other. A refusal that is removed before there is a translation lets connections out untranslated,
   * and the kernel keeps all their packets on that way.
   */
  finish(hashes: Iterable<string>): void {
    for (const hash of new Set([...hashes, ...this.unsettled])) {
      for (const plan of this.groups.get(hash)?.frontends ?? []) {
        const isRelenting = this.outlived(plan).length > 0;
        if (refusalChain(plan) === null) this.refusing.delete(plan.key);
        else this.refusing.set(plan.key, [plan]);
        if (isRelenting) this.place(plan.key);
      }
    }
    this.unsettled.clear();
  }

  /** Marks all chains that depend on more than their group as changed. */
  touchAll(): void {
    for (const dispatch of this.dispatches()) dispatch.touchAll();
    this.fixedTouched = true;
  }

  touched(): TouchedChains {
    const chains: Chain[] = this.fixedTouched ? [...fixedChains(this.view.node, this.settings())] : [];
    const gone: ChainId[] = [];
    const names = new Map<string, readonly string[]>();
    for (const hash of this.touchedGroups) {
      const made = this.serviceChains(hash);
      const current = made.map(({ name }) => name);
      for (const chain of made) chains.push(chain);
      for (const name of this.chainsOf.get(hash) ?? []) if (!current.includes(name)) gone.push(chainId('nat', name));
      names.set(hash, current);
    }
    for (const dispatch of this.dispatches()) {
      for (const name of dispatch.touched) {
        const chain = dispatch.chain(name);
        if (chain === null) gone.push(chainId(dispatch.table, name));
        else chains.push(chain);
      }
    }
    if (this.fixedTouched && !this.settings().retries) gone.push(chainId('raw', CHAIN.retry));
    const noted = (): void => {
      this.note(names);
    };
    return { chains, gone, noted };
  }

  /** The named chains as they should be; those that should not be are passed over. */
  make(wanted: readonly ChainId[]): readonly Chain[] {
    if (wanted.length === 0) return [];
    const ids = new Set(wanted);
    const names = wanted.map((id) => [tableOf(id), nameOf(id)] as const);
    const hashes = new Set(names.flatMap(([table, name]) => (table === 'nat' ? (hashIn(name) ?? []) : [])));
    const dispatched = names.flatMap(([table, name]) => {
      for (const dispatch of this.dispatches()) if (dispatch.owns(table, name)) return dispatch.chain(name) ?? [];
      return [];
    });
    const others = [
      ...fixedChains(this.view.node, this.settings()),
      ...[...hashes].flatMap((hash) => this.serviceChains(hash)),
    ];
    return [...others.filter(({ table, name }) => ids.has(chainId(table, name))), ...dispatched];
  }

  private note(names: ReadonlyMap<string, readonly string[]>): void {
    for (const [hash, current] of names) {
      if (current.length === 0) this.chainsOf.delete(hash);
      else this.chainsOf.set(hash, current);
    }
    this.touchedGroups.clear();
    for (const dispatch of this.dispatches()) dispatch.untouch();
    this.fixedTouched = false;
  }

  private *dispatches(): IterableIterator<Dispatch> {
    yield* Object.values(this.addresses);
    yield* Object.values(this.ports);
    for (const protocol of RETRY_PROTOCOLS) yield* Object.values(this.retries[protocol]);
    yield this.hairpin;
    yield this.health;
  }

  /** Notes in which chains a frontend has rules. */
  private place(key: FrontendKey): void {
    const plan = this.shown.get(key)?.plan;
    if (plan === undefined) this.refusing.delete(key);
    const forwarded = plan !== undefined && hasEndpoints(plan);
    const chains = plan === undefined ? [] : [...this.outlived(plan), plan].map(refusalChain);
    const isIn = (chain: string): boolean => chains.includes(chain);
    this.placeRetry(key, plan);
    if (parseFrontendKey(key).address === null) {
      this.ports.nat.set(key, forwarded);
      this.ports.external.set(key, isIn(CHAIN.externalNodePorts));
      return;
    }
    this.addresses.nat.set(key, forwarded);
    this.addresses.firewall.set(key, isIn(CHAIN.proxyFirewall));
    this.addresses.refused.set(key, isIn(CHAIN.services));
    this.addresses.external.set(key, isIn(CHAIN.external));
  }

  private placeRetry(key: FrontendKey, plan: FrontendPlan | undefined): void {
    const { address, protocol } = parseFrontendKey(key);
    if (protocol === 'SCTP') return;
    const { addresses, ports } = this.retries[protocol];
    const hasPolicy = plan !== undefined && policyOf(plan, this.view.node.retryTimes) !== null;
    if (address !== null) {
      addresses.set(key, hasPolicy);
      return;
    }
    const { isEmpty } = ports;
    ports.set(key, hasPolicy);
    if (ports.isEmpty !== isEmpty) addresses.touchEntry();
  }

  private depths(prefix: string): Depths {
    return frontendDepths(prefix, (key) => serviceOf(this.shown.get(key)?.plan.servicePort ?? ''));
  }

  private firewall(): Dispatch {
    const options = { table: 'filter', chain: CHAIN.proxyFirewall, division: DIVISION.proxyFirewall } as const;
    return new Dispatch({
      ...options,
      branches: frontendBranches,
      depths: this.depths(DEEPER.proxyFirewall),
      tail: NOTHING,
      rules: (key) => this.frontendRules(options, key),
      long: {
        has: (key) => this.frontendRules(options, key).length > FEW_RULES,
        match: (key) => frontendMatch(parseFrontendKey(key)),
        prefix: DEEPER.proxyFirewall,
      },
    });
  }

  private retriesOf(protocol: RetryProtocol): { readonly addresses: Dispatch; readonly ports: Dispatch } {
    const rules = (key: FrontendKey): readonly string[] => {
      const plan = this.shown.get(key)?.plan;
      return plan === undefined ? [] : retryRules(plan, this.view.node);
    };
    const exists = (): boolean => this.settings().retries;
    const { retryOf: entries, retryNodePorts } = CHAIN;
    const ports = new Dispatch({
      table: 'raw',
      chain: retryNodePorts[protocol],
      division: DIVISION.retryNodePorts[protocol],
      branches: portBranches,
      depths: null,
      rules,
      tail: NOTHING,
      exists,
    });
    const tail = (): readonly string[] =>
      ports.isEmpty ? [] : this.nodePortTail(retryNodePorts[protocol], RETRY_NODE_PORT_COMMENT);
    const addresses = new Dispatch({
      table: 'raw',
      chain: entries[protocol],
      division: DIVISION.retry[protocol],
      branches: frontendBranches,
      depths: this.depths(DEEPER.retry[protocol]),
      rules,
      tail,
      exists,
    });
    return { addresses, ports };
  }

  /** Refusals of more than the frontend refuses, or of something else: they keep their rules until {@link finish}. */
  private outlived(plan: FrontendPlan): readonly FrontendPlan[] {
    const before = this.refusing.get(plan.key);
    if (before === undefined) return [];
    const rules = new Set(refusalRules(plan));
    return before.filter((each) => each !== plan && refusalRules(each).some((rule) => !rules.has(rule)));
  }

  private frontendRules(
    { table, chain }: Pick<DispatchOptions, 'table' | 'chain'>,
    key: FrontendKey,
  ): readonly string[] {
    const shown = this.shown.get(key);
    if (shown === undefined) return [];
    const { group, plan } = shown;
    if (table === 'nat') return dispatchRules(group, plan);
    const refusals = [...this.outlived(plan), plan].filter((each) => refusalChain(each) === chain);
    return [...new Set(refusals.flatMap(refusalRules))];
  }

  private serviceChains(hash: string): readonly Chain[] {
    const group = this.groups.get(hash);
    return group === undefined ? [] : serviceChains(group);
  }

  private nodePortTail(chain: string, comment: string): readonly string[] {
    return nodePortRules(this.view.node, chain, comment);
  }

  private updateHealthChecks(): void {
    const checks = [...this.view.healthChecks()].map(
      ({ port, service }) => [frontendKey(null, port, 'TCP'), service] as const,
    );
    // If two Services have one port, the first by name counts, in any order of arrival.
    const wanted = new Map(checks.sort(([, one], [, other]) => (one < other ? 1 : -1)));
    for (const key of this.healthPorts.keys()) if (!wanted.has(key)) this.health.set(key, false);
    for (const [key, service] of wanted) if (this.healthPorts.get(key) !== service) this.health.set(key, true);
    this.healthPorts.clear();
    for (const [key, service] of wanted) this.healthPorts.set(key, service);
  }

  private healthRules(key: string): readonly string[] {
    const comment = commentMatch(`${this.healthPorts.get(key) ?? ''} health check node port`);
    return [`-p tcp ${comment} -m tcp --dport ${parseFrontendKey(key).port} -j ACCEPT`];
  }
}

/** The ruleset of a whole table. */
export function wholeRuleset(view: TableView, settings: ModeSettings): Ruleset {
  const ruleset = new Ruleset(view, () => settings);
  ruleset.show(groupsOf(view.frontends(), view.node));
  ruleset.update(everything(view));
  return ruleset;
}

function frontendBranches(key: FrontendKey): readonly Branch[] {
  return branchesOf(parseFrontendKey(key).address);
}

function branchesOf(address: IPAddress | null): readonly Branch[] {
  return address === null ? [] : addressBranches(address);
}

function hairpinRules(address: IPAddress | null): readonly string[] {
  return address === null ? [] : [`-s ${hostText(address)} -d ${hostText(address)} -j ${MASQUERADE}`];
}

/** So many rules for one frontend stand among those of others: a rule for each of two ranges of sources, and one for the rest. */
const FEW_RULES = 3;
const NOTHING = (): readonly string[] => [];
const NODE_PORT_COMMENT = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';
const RETRY_NODE_PORT_COMMENT = 'kubernetes service nodeports: unanswered attempts';
const NODE_PORT_REFUSAL_COMMENT = 'kubernetes service nodeports without endpoints';
