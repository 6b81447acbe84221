import { FAMILIES, type Family } from '../../src/base/ip.js';
import type { Protocol } from '../../src/base/protocol.js';
import { endpoint } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import type { Row } from '../support/lab/packet-table.js';
import { hasNodePorts, type Allocation } from './addresses.js';
import { listed, type Case, type Flow, type ObjectSpec, type ServiceSpec } from './case.js';
import { applies, type DifferenceName } from './differences.js';
import { isPlace, PLACES, sender, type Place } from './places.js';

/** Target that a text of {@link Flow.to} names. */
type Target =
  | { readonly type: 'place'; readonly place: Place; readonly port: number }
  | {
      readonly type: 'address';
      readonly service: string;
      readonly kind: 'cluster' | 'external' | 'balancer';
      readonly number: number;
      readonly port: number;
    }
  | { readonly type: 'node-port'; readonly service: string; readonly at: Place; readonly port: number };

const TARGET =
  /^(?<service>[a-z][a-z0-9-]*)(?: (?<kind>external|balancer|node-port))?(?: (?<number>\d+))?(?: at (?<at>[a-z-]+))?:(?<port>\d+)$/;
const PLACE_TARGET = /^place (?<place>[a-z-]+):(?<port>\d+)$/;
const ANSWERED = /^(?<source>kept|masqueraded)(?: [a-z-]+(?::\d+)?)+$/;
const VERDICTS: readonly string[] = ['refused', 'dropped', 'unreachable'];

/** @throws with the text, where it names nothing. */
export function parseTarget(text: string): Target {
  const place = PLACE_TARGET.exec(text)?.groups;
  if (place?.['place'] !== undefined)
    return { type: 'place', place: known(place['place'], text), port: Number(place['port']) };
  const found = TARGET.exec(text)?.groups;
  if (found?.['service'] === undefined) throw new Error(`"${text}" names no target`);
  const { service, kind = 'cluster', number = '1', at = 'node' } = found;
  const port = Number(found['port']);
  if (kind === 'node-port') return { type: 'node-port', service, at: known(at, text), port };
  return { type: 'address', service, kind: kind as 'cluster', number: Number(number), port };
}

/** Who answers, with ports where they are given, and whether masqueraded; or a verdict. */
type Expectation =
  | { readonly type: 'verdict'; readonly verdict: string }
  | {
      readonly type: 'answered';
      readonly masqueraded: boolean;
      readonly by: readonly (readonly [Place, number | null])[];
    };

/** @throws with the text, where it expects nothing. */
export function parseExpectation(text: string): Expectation {
  if (VERDICTS.includes(text)) return { type: 'verdict', verdict: text };
  if (!ANSWERED.test(text)) throw new Error(`"${text}" expects nothing`);
  const [source, ...words] = text.split(' ');
  const by = words.map((word) => {
    const [name = '', port] = word.split(':');
    return [known(name, text), port === undefined ? null : Number(port)] as const;
  });
  return { type: 'answered', masqueraded: source === 'masqueraded', by };
}

function known(name: string, text: string): Place {
  if (!isPlace(name)) throw new Error(`"${text}": there is no place "${name}"`);
  return name;
}

export interface FlowRow extends Row {
  readonly hold: boolean;
}

/** The rows of a step's flows: each sender, target, protocol and family. */
export function rowsOf(
  { id, shows }: Case,
  flows: readonly Flow[],
  objects: readonly ObjectSpec[],
  allocation: Allocation,
  mode: LabMode,
): readonly FlowRow[] {
  return flows.flatMap((flow) =>
    (flow.family === undefined ? FAMILIES : [flow.family]).flatMap((family) =>
      listed<Protocol>(flow.protocol, ['TCP']).flatMap((protocol) =>
        listed<Place>(flow.from).flatMap((from) =>
          listed(flow.to).map((to): FlowRow => {
            const target = parseTarget(to);
            return {
              ...sender(from, family),
              to: addressOf(target, family, protocol, allocation),
              protocol,
              expect: outcomeOf(expectedIn(flow, mode, family), family, targetPort(target, protocol, objects)),
              shows: `${id}: ${flow.shows ?? shows.join(', ')}`,
              hold: flow.hold ?? false,
              ...(flow.times === undefined ? {} : { times: flow.times }),
              ...(flow.source === undefined
                ? {}
                : { source: hostOf(parseTarget(`${flow.source}:0`), family, allocation) }),
            };
          }),
        ),
      ),
    ),
  );
}

function expectedIn({ expect, differs = {} }: Flow, mode: LabMode, family: Family): string {
  const names = Object.keys(differs) as DifferenceName[];
  const name = names.find((each) => applies(each, mode, family));
  return (name === undefined ? undefined : differs[name]) ?? expect;
}

function addressOf(target: Target, family: Family, protocol: Protocol, allocation: Allocation): string {
  const { type, port } = target;
  const number = type === 'node-port' ? allocation.nodePort(target.service, port, protocol) : port;
  return endpoint(hostOf(target, family, allocation), number);
}

function hostOf(target: Target, family: Family, allocation: Allocation): string {
  switch (target.type) {
    case 'place':
      return PLACES[target.place][family];
    case 'address':
      return allocation.address(target.service, target.kind, target.number, family);
    case 'node-port':
      return PLACES[target.at][family];
  }
}

/** Where a Service's port leads; any other one leads to its own number. */
function targetPort({ port, ...target }: Target, protocol: Protocol, objects: readonly ObjectSpec[]): number {
  if (target.type === 'place') return port;
  const spec = objects.find((each): each is ServiceSpec => 'service' in each && each.service === target.service);
  const found = spec?.ports.find((each) => each.port === port && (each.protocol ?? 'TCP') === protocol);
  return found?.targetPort ?? port;
}

/** In the words of Lab.verdict. */
function outcomeOf(text: string, family: Family, port: number): string {
  const expectation = parseExpectation(text);
  if (expectation.type === 'verdict') return expectation.verdict;
  return expectation.by
    .map(([place, own]) => endpoint(PLACES[place][family], own ?? port))
    .sort()
    .map((address) => (expectation.masqueraded ? `${address} masqueraded` : address))
    .join(', ');
}

/** The servers that a case needs: all its endpoints, those too that must not answer, and the places that its flows ask without a Service. */
export function serversOf({ steps }: Case): readonly (readonly [place: Place, port: number, protocol: Protocol])[] {
  const endpoints = steps.flatMap(({ objects = [] }) =>
    objects.flatMap((spec) =>
      'service' in spec
        ? spec.endpoints.flatMap((each) =>
            spec.ports.map(
              ({ port, targetPort: target = port, protocol = 'TCP' }) =>
                [typeof each === 'string' ? each : each.pod, target, protocol] as const,
            ),
          )
        : [],
    ),
  );
  const places = steps.flatMap(({ flows }) =>
    flows.flatMap(({ to, protocol, expect }) => {
      const expectation = parseExpectation(expect);
      if (expectation.type === 'verdict') return [];
      const targets = listed(to).map(parseTarget);
      return targets.flatMap(({ type, port }) =>
        type !== 'place'
          ? []
          : expectation.by.flatMap(([place, own]) =>
              listed<Protocol>(protocol, ['TCP']).map((each) => [place, own ?? port, each] as const),
            ),
      );
    }),
  );
  return [...endpoints, ...places];
}

/** Whether a case has what a target names; `unused` is in none. */
export function isThere(target: Target, { steps }: Case): boolean {
  if (target.type === 'place' || target.service === 'unused') return true;
  const { service: name, port } = target;
  const specs = steps.flatMap(({ objects = [] }) =>
    objects.filter((spec): spec is ServiceSpec => 'service' in spec && spec.service === name),
  );
  if (target.type === 'node-port')
    return specs.some((spec) => hasNodePorts(spec) && spec.ports.some((each) => each.port === port));
  const { kind, number } = target;
  return specs.some(
    ({ externals = 0, balancers = 0 }) => number <= { cluster: 1, external: externals, balancer: balancers }[kind],
  );
}
