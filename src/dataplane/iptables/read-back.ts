import type { RetryTimes } from '../../base/conntrack-timeouts.js';
import { EndpointList, endpointSize } from '../../base/endpoint-list.js';
import { addressBytes, parseAddress, parsePrefix, type Family, type IPAddress, type IPPrefix } from '../../base/ip.js';
import { parseProtocol, type Protocol } from '../../base/protocol.js';
import type { IptablesChainListing } from '../../native/contract.js';
import { UNHELD } from '../../plan/frontend-fields.js';
import { frontendKey } from '../../plan/frontend-key.js';
import type {
  Balance,
  FrontendKey,
  FrontendKind,
  FrontendPlan,
  HealthCheckPlan,
  NodePlan,
  Shares,
} from '../../plan/types.js';
import { ListedRules, type ParsedRule } from '../xtables/listing.js';
import { CHAIN, DEEPER, DIVISION, isDeeper } from './names.js';
import { RETRY_PROTOCOLS } from './policy-names.js';
import { retrySecondsFor } from './retry.js';

/** A listing in the plan's terms. */
export interface HeldRules {
  readonly frontends: ReadonlyMap<FrontendKey, FrontendPlan>;
  /** Frontends that refuse some connections, with no endpoints but as they refuse: see refusalRules. */
  readonly refusals: ReadonlyMap<FrontendKey, FrontendPlan>;
  readonly hairpinAddresses: ReadonlySet<IPAddress>;
  readonly healthChecks: readonly HealthCheckPlan[];
}

/**
 * Reads chains back: ours, and those of kube-proxy in the same mode as far as they are like ours. Frontends whose own
 * chains were not listed with their rules come without endpoints. A frontend without endpoints does not show how it would
 * treat connections if it had some.
 */
export function readBack(
  family: Family,
  listing: readonly IptablesChainListing[],
  { retryTimes }: Pick<NodePlan, 'retryTimes'>,
): HeldRules {
  return new Reader(family, new ListedRules(listing), retryTimes).read();
}

const KINDS: readonly (readonly [string, FrontendKind])[] = [
  [' cluster IP', 'ClusterIP'],
  [' external IP', 'ExternalIP'],
  [' loadbalancer IP', 'LoadBalancer'],
];

interface Endpoints {
  readonly list: EndpointList;
  /** Null: none has a weight of its own. */
  readonly shares: Shares | null;
  readonly affinitySeconds: number | null;
}

/** Beginnings of the names of the chains that divide one: see {@link divides}. */
type Division = readonly [division: string, deeper: string | null];

type Treatment = Pick<
  FrontendPlan,
  'endpoints' | 'localEndpoints' | 'balance' | 'masquerade' | 'affinitySeconds' | 'sourceRanges'
>;

class Reader {
  private readonly frontends = new Map<FrontendKey, FrontendPlan>();
  private readonly refusals = new Map<FrontendKey, FrontendPlan>();
  private readonly hairpin = new Set<IPAddress>();
  /** Sources with a refusal of their own, of each frontend. */
  private readonly refusedSources = new Map<FrontendKey, Set<IPPrefix>>();
  /** The timeout policy of each frontend's flows. */
  private readonly policies = new Map<FrontendKey, string>();

  constructor(
    private readonly family: Family,
    private readonly rules: ListedRules,
    private readonly retryTimes: RetryTimes,
  ) {}

  read(): HeldRules {
    for (const protocol of RETRY_PROTOCOLS) {
      this.readPolicies(CHAIN.retryOf[protocol], [DIVISION.retry[protocol], DEEPER.retry[protocol]], false);
      this.readPolicies(CHAIN.retryNodePorts[protocol], [DIVISION.retryNodePorts[protocol], null], true);
    }
    this.readForwarded(CHAIN.services, false);
    this.readForwarded(CHAIN.nodePorts, true);
    this.readRefused(CHAIN.services, [DIVISION.filterServices, DEEPER.filterServices], 'ClusterIP');
    this.readRefused(CHAIN.external, [DIVISION.external, DEEPER.external], 'LoadBalancer');
    this.readRefused(CHAIN.externalNodePorts, [DIVISION.externalNodePorts, null], 'NodePort');
    this.readRefused(CHAIN.proxyFirewall, [DIVISION.proxyFirewall, DEEPER.proxyFirewall], 'LoadBalancer');
    this.addSourceRanges();
    this.readHairpin(CHAIN.hairpin);
    const { frontends, refusals, hairpin: hairpinAddresses } = this;
    return { frontends, refusals, hairpinAddresses, healthChecks: this.healthChecks() };
  }

  private readForwarded(chain: string, isNodePort: boolean): void {
    for (const rule of this.rules.of('nat', chain)) {
      const key = frontendIn(rule, isNodePort);
      if (key !== null && rule.target !== null) this.add(key, rule, this.treatment(rule.target), isNodePort);
      else if (rule.target !== null && divides(rule.target, isNodePort ? DIVISION.nodePorts : DIVISION.services))
        this.readForwarded(rule.target, isNodePort);
    }
  }

  private add(key: FrontendKey, rule: ParsedRule, treatment: Treatment, isNodePort: boolean): void {
    const { kind, servicePort } = describe(rule.comment ?? '', isNodePort ? 'NodePort' : 'ExternalIP');
    this.frontends.set(key, { ...this.common(key, rule, kind), servicePort, whenEmpty: 'reject', ...treatment });
  }

  private readPolicies(chain: string, division: Division, isNodePort: boolean): void {
    for (const rule of this.rules.of('raw', chain)) {
      const key = frontendIn(rule, isNodePort);
      if (key !== null && rule.timeout !== null) this.policies.set(key, rule.timeout);
      else if (rule.target !== null && divides(rule.target, ...division))
        this.readPolicies(rule.target, division, isNodePort);
    }
  }

  private readRefused(chain: string, division: Division, kind: FrontendKind): void {
    for (const rule of this.rules.of('filter', chain)) {
      const key = frontendIn(rule, kind === 'NodePort');
      // Such a chain may have all rules of one frontend.
      if (rule.target !== null && divides(rule.target, ...division)) this.readRefused(rule.target, division, kind);
      else if (key !== null) this.addRefusal(key, rule, kind);
    }
  }

  private addRefusal(key: FrontendKey, rule: ParsedRule, fallback: FrontendKind): void {
    const text = rule.comment ?? '';
    const source = parsePrefix(rule.source ?? '');
    const isOthers = / traffic not accepted by /.test(text);
    const comment = text.replace(/ has no (local )?endpoints$| traffic not accepted by .*$/, '');
    const { kind, servicePort } = describe(comment, fallback);
    const none = new EndpointList(this.family, new Uint8Array(0));
    const unknown: FrontendPlan = {
      ...this.common(key, rule, kind),
      servicePort,
      balance: null,
      endpoints: none,
      localEndpoints: null,
      masquerade: kind === 'ClusterIP' ? 'off-cluster' : 'always',
      whenEmpty: 'reject',
      affinitySeconds: null,
      sourceRanges: isOthers ? [] : null,
    };
    for (const held of [this.frontends, this.refusals]) {
      const base = held.get(key) ?? unknown;
      const sourceRanges = source === null ? base.sourceRanges : (base.sourceRanges ?? []);
      const whenEmpty = isOthers ? base.whenEmpty : rule.target === 'DROP' ? 'drop' : 'reject';
      held.set(key, { ...base, whenEmpty, sourceRanges });
    }
    if (source !== null) this.refusedSources.set(key, (this.refusedSources.get(key) ?? new Set()).add(source));
  }

  private addSourceRanges(): void {
    for (const held of [this.frontends, this.refusals])
      for (const [key, sources] of this.refusedSources) {
        const plan = held.get(key);
        if (plan !== undefined)
          held.set(key, { ...plan, sourceRanges: [...new Set([...(plan.sourceRanges ?? []), ...sources])] });
      }
  }

  private common(
    key: FrontendKey,
    rule: ParsedRule,
    kind: FrontendKind,
  ): Omit<FrontendPlan, keyof Treatment | 'servicePort' | 'whenEmpty'> {
    const [protocol, port] = [protocolOf(rule) ?? 'TCP', Number(rule.port)] as const;
    return {
      key,
      kind,
      family: this.family,
      address: kind === 'NodePort' ? null : hostAddress(rule.destination),
      protocol,
      port,
      retrySeconds: retrySecondsFor(this.policies.get(key), { protocol, port }, this.retryTimes),
      ...UNHELD,
    };
  }

  private treatment(target: string): Treatment {
    if (target.startsWith('KUBE-FW-')) {
      const rules = this.rules.of('nat', target);
      const external = rules.find((rule) => rule.target?.startsWith('KUBE-EXT-'))?.target ?? '';
      const sourceRanges = rules.flatMap(({ source }) => parsePrefix(source ?? '') ?? []);
      return { ...this.treatment(external), sourceRanges };
    }
    if (target.startsWith('KUBE-EXT-')) return this.externalTreatment(this.rules.of('nat', target));
    const { list, shares, affinitySeconds } = this.endpointsOf(target);
    return {
      endpoints: list,
      localEndpoints: null,
      balance: balanceOf(list, shares, null),
      masquerade: 'off-cluster',
      affinitySeconds,
      sourceRanges: null,
    };
  }

  private externalTreatment(rules: readonly ParsedRule[]): Treatment {
    const jump = (prefix: string): string => rules.find((rule) => rule.target?.startsWith(prefix))?.target ?? '';
    const cluster = this.endpointsOf(jump('KUBE-SVC-'));
    const always = rules.some((rule) => rule.unconditional && rule.target === CHAIN.markMasquerade);
    const local = always ? null : this.endpointsOf(jump('KUBE-SVL-'));
    return {
      endpoints: cluster.list,
      localEndpoints: local && local.list,
      balance: balanceOf(cluster.list, cluster.shares, local),
      masquerade: always ? 'always' : 'node',
      affinitySeconds: cluster.affinitySeconds ?? local?.affinitySeconds ?? null,
      sourceRanges: null,
    };
  }

  /** The endpoints of a chain, or of the chains into which it is divided; kube-proxy has a chain for every endpoint. */
  private endpointsOf(chain: string): Endpoints {
    const found = new Map<string, Buffer>();
    const weights = new Map<string, number>();
    let affinitySeconds: number | null = null;
    const visit = (name: string): void => {
      for (const { translation, seconds, target, source, comment } of this.rules.of('nat', name)) {
        const endpoint = translation === null ? null : packEndpoint(this.family, translation);
        if (endpoint !== null) found.set(endpoint.toString('latin1'), endpoint);
        const [, weight = null] = WEIGHT.exec(comment ?? '') ?? [];
        if (endpoint !== null && weight !== null) weights.set(endpoint.toString('latin1'), Number(weight));
        if (seconds !== null) affinitySeconds = Number(seconds);
        if (target !== null && (target.startsWith('KUBE-SEP-') || divides(target, chain))) visit(target);
        const itself = name.startsWith('KUBE-SEP-') ? hostAddress(source) : null;
        if (itself !== null) this.hairpin.add(itself);
      }
    };
    visit(chain);
    const sorted = [...found.values()].sort((one, other) => Buffer.compare(one, other));
    const shares =
      weights.size === 0
        ? null
        : { weights: sorted.map((each) => weights.get(each.toString('latin1')) ?? 1), slots: null };
    return { list: new EndpointList(this.family, Buffer.concat(sorted)), shares, affinitySeconds };
  }

  private readHairpin(chain: string): void {
    for (const { source, target } of this.rules.of('nat', chain)) {
      const address = hostAddress(source);
      if (address !== null) this.hairpin.add(address);
      else if (target !== null && divides(target, DIVISION.hairpin, DEEPER.hairpin)) this.readHairpin(target);
    }
  }

  private healthChecks(chain: string = CHAIN.nodePorts): readonly HealthCheckPlan[] {
    return this.rules.of('filter', chain).flatMap(({ comment, port, target }): readonly HealthCheckPlan[] => {
      if (target !== null && divides(target, DIVISION.healthChecks)) return this.healthChecks(target);
      const service = / health check node port$/.test(comment ?? '') ? comment?.replace(/ .*/, '') : undefined;
      return service === undefined || !/^\d+$/.test(port ?? '')
        ? []
        : [{ service, port: Number(port), localEndpoints: 0 }];
    });
  }
}

/** As spread.ts writes it. */
const WEIGHT = /^weight ([0-9]{1,9})$/;

/** Lists without weights have equal ones; null: neither list has weights. */
function balanceOf(list: EndpointList, shares: Shares | null, local: Endpoints | null): Balance | null {
  if (shares === null && (local?.shares ?? null) === null) return null;
  const equal = ({ count }: EndpointList): Shares => ({ weights: new Array<number>(count).fill(1), slots: null });
  const localEndpoints = local === null ? null : (local.shares ?? equal(local.list));
  return { by: 'random', endpoints: shares ?? equal(list), localEndpoints };
}

/** Null for rules that do not select one frontend. */
export function frontendIn(rule: ParsedRule, isNodePort: boolean): FrontendKey | null {
  const protocol = protocolOf(rule);
  const address = hostAddress(rule.destination);
  if (protocol === null || !/^\d+$/.test(rule.port ?? '')) return null;
  if (isNodePort) return frontendKey(null, Number(rule.port), protocol);
  return address === null ? null : frontendKey(address, Number(rule.port), protocol);
}

/** Whether a chain divides another. @param division as in {@link DIVISION}. @param deeper as in {@link DEEPER}. */
function divides(target: string, division: string, deeper: string | null = null): boolean {
  return target.startsWith(`${division}-`) || (deeper !== null && isDeeper(target, deeper));
}

function describe(
  comment: string,
  fallback: FrontendKind,
): { readonly kind: FrontendKind; readonly servicePort: string } {
  for (const [ending, kind] of KINDS) {
    if (comment.endsWith(ending)) return { kind, servicePort: comment.slice(0, -ending.length) };
  }
  return { kind: fallback, servicePort: comment };
}

function protocolOf({ protocol }: ParsedRule): Protocol | null {
  return parseProtocol(protocol?.toUpperCase() ?? '');
}

/** The address of a prefix of full length; null for anything else. */
function hostAddress(text: string | null): IPAddress | null {
  const match = /^([^/]+)\/(32|128)$/.exec(text ?? '');
  return match?.[1] === undefined ? null : parseAddress(match[1]);
}

function packEndpoint(family: Family, text: string): Buffer | null {
  const match = /^\[?([^\]]+?)\]?:(\d+)$/.exec(text);
  const address = parseAddress(match?.[1] ?? '');
  const bytes = address === null ? null : addressBytes(address);
  if (bytes === null || bytes.length + 2 !== endpointSize(family)) return null;
  const packed = Buffer.alloc(bytes.length + 2);
  packed.set(bytes);
  packed.writeUInt16BE(Number(match?.[2]) & 0xffff, bytes.length);
  return packed;
}
