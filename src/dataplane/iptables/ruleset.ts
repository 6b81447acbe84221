import { parseAddress, type IPAddress } from '../../base/ip.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey, FrontendPlan, TableChange } from '../../plan/types.js';
import { MASQUERADE } from '../xtables/masquerade.js';
import { chainId, commentMatch, hostText, type Chain, type ChainId } from '../xtables/rules.js';
import { addressBranches, Dispatch, portBranches, type Branch, type DispatchOptions } from './dispatch.js';
import { fixedChains, nodePortRules, type ModeSettings } from './fixed-chains.js';
import { CHAIN, DIVISION, serviceHash } from './names.js';
import {
  dispatchRules,
  hasEndpoints,
  refusalChain,
  refusalRules,
  serviceChains,
  type ServiceGroup,
} from './service-chains.js';

/** The part of a family's table that becomes rules. */
export type TableView = Pick<FamilyTable, 'node' | 'frontend' | 'frontends' | 'hairpinAddresses' | 'healthChecks'>;

export type Changes = Pick<TableChange, 'frontends' | 'hairpinAddresses' | 'healthChecks' | 'node'>;

/** The change from nothing to the whole table. */
export function everything(table: TableView): Changes {
  return {
    frontends: new Set([...table.frontends()].map(({ key }) => key)),
    hairpinAddresses: new Set(table.hairpinAddresses),
    healthChecks: true,
    node: true,
  };
}

/** Where the rules of a family's table are: which chains there are, and which a change of the table touches. Holds names only, no rules. */
export class Ruleset {
  private readonly groupOf = new Map<FrontendKey, string>();
  private readonly groups = new Map<string, Set<FrontendKey>>();
  /** By group: the names its chains had when they were last made. */
  private readonly chainsOf = new Map<string, readonly string[]>();
  private readonly healthPorts = new Map<string, string>();
  /** Frontends that refuse some connections, as they were when the kernel had all of that. */
  private readonly refusing = new Map<FrontendKey, FrontendPlan>();
  /** Those of them that refuse less now: see {@link settle}. */
  private readonly relenting = new Set<FrontendKey>();
  private readonly addresses: Readonly<Record<'nat' | 'refused' | 'external' | 'firewall', Dispatch>>;
  private readonly ports: Readonly<Record<'nat' | 'external', Dispatch>>;
  private readonly hairpin: Dispatch;
  private readonly health: Dispatch;
  private touchedGroups = new Set<string>();
  private fixedTouched = true;

  constructor(
    private readonly view: TableView,
    private readonly settings: () => ModeSettings,
  ) {
    const frontends = (options: Pick<DispatchOptions, 'table' | 'chain' | 'division'>, tail = NOTHING) => {
      const rules = (key: FrontendKey): readonly string[] => this.frontendRules(options, key);
      return new Dispatch({ ...options, branches: frontendBranches, rules, tail });
    };
    const nodePorts = (options: Pick<DispatchOptions, 'table' | 'chain' | 'division'>) => {
      const rules = (key: FrontendKey): readonly string[] => this.frontendRules(options, key);
      return new Dispatch({ ...options, branches: portBranches, rules, tail: NOTHING });
    };
    const { services, external, proxyFirewall, nodePorts: nodePortChain, externalNodePorts } = CHAIN;
    this.addresses = {
      nat: frontends({ table: 'nat', chain: services, division: DIVISION.services }, () =>
        this.nodePortTail(nodePortChain, NODE_PORT_COMMENT),
      ),
      refused: frontends({ table: 'filter', chain: services, division: DIVISION.filterServices }),
      external: frontends({ table: 'filter', chain: external, division: DIVISION.external }, () =>
        this.nodePortTail(externalNodePorts, NODE_PORT_REFUSAL_COMMENT),
      ),
      firewall: frontends({ table: 'filter', chain: proxyFirewall, division: DIVISION.proxyFirewall }),
    };
    this.ports = {
      nat: nodePorts({ table: 'nat', chain: nodePortChain, division: DIVISION.nodePorts }),
      external: nodePorts({ table: 'filter', chain: externalNodePorts, division: DIVISION.externalNodePorts }),
    };
    this.hairpin = new Dispatch({
      ...{ table: 'nat', chain: CHAIN.hairpin, division: DIVISION.hairpin, tail: NOTHING },
      branches: (item) => branchesOf(parseAddress(item)),
      rules: (item) => hairpinRules(parseAddress(item)),
    });
    this.health = new Dispatch({
      ...{ table: 'filter', chain: CHAIN.nodePorts, division: DIVISION.healthChecks, tail: NOTHING },
      branches: portBranches,
      rules: (key) => this.healthRules(key),
    });
  }

  has(key: FrontendKey): boolean {
    return this.groupOf.has(key);
  }

  /** Takes over what changed in the table. */
  update(changes: Changes): void {
    for (const key of changes.frontends) this.updateFrontend(key);
    for (const address of changes.hairpinAddresses) this.hairpin.set(address, this.view.hairpinAddresses.has(address));
    if (changes.healthChecks) this.updateHealthChecks();
    if (changes.node) this.touchAll();
  }

  /** Takes what the kernel was found to refuse for refused until now: what of it is not wanted is let go of as by any change. */
  adoptRefusals(refusals: ReadonlyMap<FrontendKey, FrontendPlan>): void {
    for (const [key, frontend] of refusals) {
      if (!this.has(key)) continue;
      this.refusing.set(key, frontend);
      this.touch(key);
    }
  }

  /**
   * Lets go of refusals that outlived their time, once everything else of a change is in the kernel; whether there were any. Tables are written one
   * after the other: given up before there is a translation, a refusal lets connections out untranslated, and the kernel keeps all their packets on
   * that way.
   */
  settle(): boolean {
    const relenting = [...this.relenting];
    this.relenting.clear();
    for (const key of relenting) {
      this.refusing.delete(key);
      this.touch(key);
    }
    return relenting.length > 0;
  }

  /** Says that any chain may have to be made again. */
  touchAll(): void {
    for (const hash of this.groups.keys()) this.touchedGroups.add(hash);
    for (const dispatch of this.dispatches()) dispatch.touchAll();
    this.fixedTouched = true;
  }

  /** The chains that may have changed since the last call, and names of those that should not be there any more. */
  takeTouched(): { readonly chains: readonly Chain[]; readonly gone: readonly ChainId[] } {
    const chains: Chain[] = this.fixedTouched ? [...fixedChains(this.view.node, this.settings())] : [];
    const gone: ChainId[] = [];
    for (const hash of this.touchedGroups) {
      const made = this.serviceChains(hash);
      const names = new Set(made.map(({ name }) => name));
      chains.push(...made);
      for (const name of this.chainsOf.get(hash) ?? []) if (!names.has(name)) gone.push(chainId('nat', name));
      if (names.size === 0) this.chainsOf.delete(hash);
      else this.chainsOf.set(hash, [...names]);
    }
    for (const dispatch of this.dispatches()) {
      for (const name of dispatch.takeTouched()) {
        const chain = dispatch.chain(name);
        if (chain === null) gone.push(chainId(dispatch.table, name));
        else chains.push(chain);
      }
    }
    this.touchedGroups = new Set();
    this.fixedTouched = false;
    return { chains, gone };
  }

  /** The named chains as they should be; names of chains that should not be are passed over. */
  make(wanted: ReadonlySet<ChainId>): readonly Chain[] {
    const chains = fixedChains(this.view.node, this.settings()).filter(({ table, name }) =>
      wanted.has(chainId(table, name)),
    );
    for (const [hash, names] of this.chainsOf) {
      if (!names.some((name) => wanted.has(chainId('nat', name)))) continue;
      chains.push(...this.serviceChains(hash).filter(({ name }) => wanted.has(chainId('nat', name))));
    }
    for (const dispatch of this.dispatches()) {
      for (const name of dispatch.names()) {
        const chain = wanted.has(chainId(dispatch.table, name)) ? dispatch.chain(name) : null;
        if (chain !== null) chains.push(chain);
      }
    }
    return chains;
  }

  private *dispatches(): IterableIterator<Dispatch> {
    yield* Object.values(this.addresses);
    yield* Object.values(this.ports);
    yield this.hairpin;
    yield this.health;
  }

  private updateFrontend(key: FrontendKey): void {
    const frontend = this.view.frontend(key);
    const before = this.groupOf.get(key);
    const after = frontend && serviceHash(frontend.servicePort, frontend.protocol);
    if (before !== undefined && before !== after) this.leaveGroup(before, key);
    if (after !== undefined && before !== after) {
      this.groupOf.set(key, after);
      this.groups.set(after, (this.groups.get(after) ?? new Set()).add(key));
    }
    if (after !== undefined) this.touchedGroups.add(after);
    this.place(key, frontend);
    // Which list is a frontend's own depends on the others of its group.
    for (const hash of [before, after]) for (const other of this.groups.get(hash ?? '') ?? []) this.touch(other);
  }

  private leaveGroup(hash: string, key: FrontendKey): void {
    const group = this.groups.get(hash);
    group?.delete(key);
    if (group?.size === 0) this.groups.delete(hash);
    this.groupOf.delete(key);
    this.touchedGroups.add(hash);
  }

  private touch(key: FrontendKey): void {
    this.place(key, this.view.frontend(key));
  }

  /** Notes in which chains a frontend has rules. */
  private place(key: FrontendKey, frontend: FrontendPlan | undefined): void {
    const forwarded = frontend !== undefined && hasEndpoints(frontend);
    this.followRefusal(key, frontend);
    const refusals = [frontend, this.refusing.get(key)].map((plan) => plan && refusalChain(plan));
    const isIn = (chain: string): boolean => refusals.includes(chain);
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

  /** What refuses more does so at once; what refuses less, or something else, keeps its rules until {@link settle}. */
  private followRefusal(key: FrontendKey, frontend: FrontendPlan | undefined): void {
    const before = this.refusing.get(key);
    this.relenting.delete(key);
    if (before !== undefined && frontend !== undefined) {
      const rules = new Set(refusalRules(frontend));
      if (refusalRules(before).some((rule) => !rules.has(rule))) {
        this.relenting.add(key);
        return;
      }
    }
    if (frontend === undefined || refusalChain(frontend) === null) this.refusing.delete(key);
    else this.refusing.set(key, frontend);
  }

  private frontendRules(
    { table, chain }: Pick<DispatchOptions, 'table' | 'chain'>,
    key: FrontendKey,
  ): readonly string[] {
    const frontend = this.view.frontend(key);
    const hash = this.groupOf.get(key);
    if (frontend === undefined || hash === undefined) return [];
    if (table === 'nat') return dispatchRules(this.group(hash), frontend);
    const refusals = [this.refusing.get(key), frontend].filter((plan) => plan && refusalChain(plan) === chain);
    return [...new Set(refusals.flatMap((plan) => (plan === undefined ? [] : refusalRules(plan))))];
  }

  private serviceChains(hash: string): readonly Chain[] {
    return this.groups.has(hash) ? serviceChains(this.group(hash), this.view.node) : [];
  }

  private group(hash: string): ServiceGroup {
    const frontends = [...(this.groups.get(hash) ?? [])].flatMap((key) => this.view.frontend(key) ?? []);
    return { hash, frontends };
  }

  private nodePortTail(chain: string, comment: string): readonly string[] {
    return nodePortRules(this.view.node, chain, comment);
  }

  private updateHealthChecks(): void {
    const checks = [...this.view.healthChecks()].map(
      ({ port, service }) => [frontendKey(null, port, 'TCP'), service] as const,
    );
    // Of two Services with one port the first by name counts, whatever the order in which they came.
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

function frontendBranches(key: FrontendKey): readonly Branch[] {
  return branchesOf(parseFrontendKey(key).address);
}

function branchesOf(address: IPAddress | null): readonly Branch[] {
  return address === null ? [] : addressBranches(address);
}

function hairpinRules(address: IPAddress | null): readonly string[] {
  return address === null ? [] : [`-s ${hostText(address)} -d ${hostText(address)} -j ${MASQUERADE}`];
}

const NOTHING = (): readonly string[] => [];
const NODE_PORT_COMMENT = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';
const NODE_PORT_REFUSAL_COMMENT = 'kubernetes service nodeports without endpoints';
