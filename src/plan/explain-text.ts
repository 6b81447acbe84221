import { greatest } from '../base/extremes.js';
import type { ExplainedBalance, ExplainedEndpoint, ExplainedPolicy, ExplainedSource, Explanation } from './explain.js';
import { masqueradedEndpoints } from './masqueraded.js';
import type { SkippedSlice } from './candidates.js';
import type { Exclusion } from './selection-rules.js';
import { KIND_NAMES, printConflict } from './text.js';
import type { MasqueradeReason, SourceKind } from './trace.js';

/** Column at which the text of a subject begins. */
const INDENT = 12;

/** A subject in the first column, and its lines beside it. */
export function paragraph(subject: string, lines: readonly string[]): string[] {
  return lines.map((line, index) => `${(index === 0 ? subject : '').padEnd(INDENT)}${line}`);
}

/** The lines of an explanation on one subject. */
export interface Paragraph {
  readonly subject: string;
  readonly lines: readonly string[];
}

/** An explanation for people: the verdict, then what it comes from. */
export function printExplanation(explanation: Explanation): string[] {
  return [
    printHead(explanation),
    ...explanationParagraphs(explanation).flatMap(({ subject, lines }) => paragraph(subject, lines)),
  ];
}

/** The causes of the verdict, in the order of the decision; some without lines. */
export function explanationParagraphs(explanation: Explanation): readonly Paragraph[] {
  const { frontend, policy, conflicts, sourceRanges, balance, affinitySeconds, retrySeconds, notes } = explanation;
  const service =
    frontend === null
      ? 'none has this address and port'
      : `${frontend.servicePort}, ${KIND_NAMES[frontend.kind]} ${frontend.key}`;
  return [
    { subject: 'source', lines: [printSource(explanation.source)] },
    { subject: 'service', lines: [service] },
    { subject: 'conflict', lines: conflicts.map(printConflict) },
    { subject: 'ranges', lines: sourceRanges === null ? [] : [printRanges(explanation)] },
    { subject: 'policy', lines: policy === null ? [] : [printPolicy(policy)] },
    { subject: 'endpoints', lines: frontend === null ? [] : printEndpoints(explanation) },
    { subject: 'balance', lines: balance === null ? [] : [printBalance(balance)] },
    { subject: 'masquerade', lines: explanation.masquerade === null ? [] : printMasquerade(explanation) },
    { subject: 'affinity', lines: affinitySeconds === null ? [] : [`by client address, for ${affinitySeconds} s`] },
    { subject: 'unanswered', lines: retrySeconds === null ? [] : [printRetry(retrySeconds)] },
    { subject: 'note', lines: notes },
  ];
}

function printRetry(seconds: number): string {
  return `an attempt that is not answered is sent elsewhere after ${seconds} s`;
}

/** The verdict in a sentence. */
export function printHead(explanation: Explanation): string {
  const { protocol, source, destination, verdict } = explanation;
  const packet = `${protocol} from ${source.address ?? SENDERS[source.kind]} to ${destination}`;
  switch (verdict.type) {
    case 'none':
      return explanation.frontend === null
        ? `${packet} is left alone: it is not for a Service`
        : `${packet} is left alone: the Service has no endpoint that it could go to, and this platform refuses nothing`;
    case 'reject':
      return `${packet} is rejected: ${REJECTIONS[verdict.because]}`;
    case 'drop':
      return `${packet} is dropped: ${DROPS[verdict.because]}`;
    case 'forward': {
      const { endpoints } = verdict;
      const where = endpoints.length === 1 ? (endpoints[0] ?? '') : `one of ${endpoints.length} endpoints`;
      const use =
        explanation.masquerade === 'platform'
          ? 'with the source that the platform gives it'
          : printSourceUse(endpoints, masqueradedEndpoints(explanation));
      return `${packet} is forwarded to ${where}, ${use}`;
    }
  }
}

function printSourceUse(endpoints: readonly string[], masqueraded: readonly string[]): string {
  if (masqueraded.length === 0) return 'keeping its source';
  return masqueraded.length === endpoints.length ? 'masqueraded' : 'masqueraded or not as the endpoint may be';
}

const SENDERS: Readonly<Record<SourceKind, string>> = {
  pod: 'a pod',
  node: 'this node',
  other: 'outside',
};

const REJECTIONS = {
  'no-endpoints': 'the Service has no endpoint that could serve',
  'unused-port': 'no Service has this port of the address',
} as const;

const DROPS = {
  policy: 'policy Local, and there is no endpoint on this node',
  'source-range': 'the source is in none of loadBalancerSourceRanges',
  unallocated: 'the address is in a service CIDR and no Service has it',
} as const;

function printSource({ sender, address, interface: name, kind }: ExplainedSource): string {
  const kinds: Readonly<Record<SourceKind, string>> = {
    pod: 'a pod by the local detector',
    node: 'the node itself',
    other: 'neither a pod by the local detector nor the node',
  };
  const who =
    sender.type === 'external' ? 'an external client' : (address ?? (sender.type === 'node' ? 'node' : 'any client'));
  return `${who}${name === null ? '' : ` through ${name}`}: ${kinds[kind]}`;
}

function printRanges({ sourceRanges, source, verdict }: Explanation): string {
  const ranges = (sourceRanges ?? []).join(', ');
  if (verdict.type !== 'drop' || verdict.because !== 'source-range') return `${ranges}: the source is admitted`;
  return source.address === null
    ? `${ranges}: others are dropped; ask with an address to see one admitted`
    : `${ranges}: the source is not admitted`;
}

function printPolicy({ field, value, applied }: ExplainedPolicy): string {
  if (value === 'Cluster') return `${field} Cluster: endpoints on every node`;
  if (applied === 'Local') return `${field} Local: endpoints on this node only`;
  return `${field} Local, which pods and the node itself are not subject to: endpoints on every node`;
}

function printEndpoints({ endpoints, skippedSlices }: Explanation): readonly string[] {
  const skipped = skippedSlices.map(printSkipped);
  if (endpoints.length === 0) return ['none', ...skipped];
  const width = (texts: readonly string[]): number => greatest(texts.map((text) => text.length));
  const addresses = width(endpoints.map(({ endpoint }) => endpoint));
  const nodes = width(endpoints.map(({ node }) => node ?? '-'));
  const lines = endpoints.map(
    (each) => `${each.endpoint.padEnd(addresses)}  ${(each.node ?? '-').padEnd(nodes)}  ${printUse(each)}`,
  );
  return [...lines, ...skipped];
}

function printBalance({ by, slots }: ExplainedBalance): string {
  const [first] = by.split('=');
  const how = first === 'hash' ? `${by}: the same client gets the same endpoint` : 'by chance, in unequal shares';
  return slots === null ? how : `${how}; a table of ${slots} slots`;
}

function printUse(endpoint: ExplainedEndpoint): string {
  const reason = endpointReason(endpoint);
  const share = endpoint.share === undefined ? '' : `, ${endpoint.share.toFixed(1)} %`;
  return `${endpoint.excluded === null ? `used${share}` : 'not used'}${reason === null ? '' : `: ${reason}`}`;
}

/** Why an endpoint is not used, or why it is used although it is not ready; null: neither applies. */
export function endpointReason({ excluded, conditions, nodeHints, zoneHints }: ExplainedEndpoint): string | null {
  if (excluded === null) return conditions.includes('ready') ? null : 'terminating, and none is ready';
  const exclusions: Readonly<Record<Exclusion, string>> = {
    'not-ready': conditions.includes('terminating') ? 'terminating, and others are ready' : 'not ready',
    'not-serving': 'not ready, and does not serve',
    'not-terminating': 'not ready',
    'node-hint': `hints name other nodes: ${nodeHints.join(', ')}`,
    'zone-hint': `hints name other zones: ${zoneHints.join(', ')}`,
    'other-node': 'not on this node',
    'no-weight': 'weight 0: no new connections',
    'other-port': 'most have another port, and this platform has one for an address',
    'zone-share': 'other zones have room for connections from this zone',
    'over-limit': 'this platform has no more for an address',
    duplicate: 'the same address and port are given again',
  };
  return exclusions[excluded];
}

export function printSkipped({ slice, family, endpoints, because }: SkippedSlice): string {
  const why = because === 'other-family' ? family : 'it has no port of this name and protocol';
  return `not used: ${endpoints} of slice ${slice}: ${why}`;
}

const MASQUERADE: Readonly<Record<MasqueradeReason, string>> = {
  'external-policy-cluster': 'yes: externalTrafficPolicy is Cluster',
  'sent-by-node': 'yes: the node itself sends it',
  'masquerade-all': 'yes: masqueradeAll',
  'not-a-pod': 'yes: the source is not a pod by the local detector',
  'kept-pod': 'no: the source is a pod',
  'kept-no-detector': 'no: there is no local detector, every source counts as a pod',
  'kept-policy-local': 'no: policy Local keeps the source',
  platform: 'as the platform does it: nothing here asks for it',
};

function printMasquerade({ masquerade, verdict, delivered }: Explanation): readonly string[] {
  if (masquerade === null || verdict.type !== 'forward') return [];
  const exceptions = verdict.masquerade
    ? delivered.map(
        (endpoint) => `no if it goes to ${endpoint}, on this node itself: what does not leave keeps its source`,
      )
    : verdict.hairpin.map((endpoint) => `yes if it goes to ${endpoint}, the sender itself`);
  return [MASQUERADE[masquerade], ...exceptions];
}
