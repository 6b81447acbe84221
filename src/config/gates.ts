import { KUBERNETES_MINOR } from './version.js';

/** A feature gate that a node proxy can meet, as it is in one release. */
interface Gate {
  readonly stage: 'alpha' | 'beta' | 'stable' | 'deprecated';
  readonly enabled: boolean;
  /** Cannot be set to the other value. */
  readonly locked: boolean;
}

const ALPHA: Gate = { stage: 'alpha', enabled: false, locked: false };
const BETA: Gate = { stage: 'beta', enabled: true, locked: false };
const LOCKED: Gate = { stage: 'stable', enabled: true, locked: true };
const STABLE: Gate = { stage: 'stable', enabled: true, locked: false };
const DEPRECATED: Gate = { stage: 'deprecated', enabled: true, locked: false };

/** Each gate by the minor releases in which it came and changed, in ascending order. */
type Releases = Readonly<Record<number, Gate>>;

const RELEASES: ReadonlyMap<string, Releases> = new Map<string, Releases>([
  ['AllowServiceExternalIPs', { 36: STABLE }],
  ['MultiCIDRServiceAllocator', { 36: LOCKED }],
  ['PreferSameTrafficDistribution', { 36: LOCKED }],
  ['NFTablesProxyMode', { 36: LOCKED }],
  ['NFTablesNetlink', { 37: BETA }],
  ['KubeProxyNFTablesLocalhostNodePorts', { 37: ALPHA, 38: BETA }],
  ['KubeProxyIPVS', { 37: DEPRECATED, 40: { ...DEPRECATED, enabled: false } }],
  ['WinDSR', { 36: LOCKED }],
  ['WinOverlay', { 36: LOCKED }],
  ['ComponentFlagz', { 36: BETA }],
  ['ComponentStatusz', { 36: BETA }],
  ['NativeHistograms', { 36: ALPHA, 37: BETA }],
  ['ContextualLogging', { 36: BETA }],
  ['LoggingAlphaOptions', { 36: ALPHA }],
  ['LoggingBetaOptions', { 36: BETA }],
  ['WatchListClient', { 36: BETA }],
  ['ClientsPreferCBOR', { 36: ALPHA }],
  ['ClientsAllowCBOR', { 36: ALPHA }],
]);

const GATES: ReadonlyMap<string, Gate> = gatesOf(KUBERNETES_MINOR);

/** The gates that a release has, as they are there. */
function gatesOf(minor: number): ReadonlyMap<string, Gate> {
  const isThere = ([since]: [string, Gate]): boolean => Number(since) <= minor;
  return new Map(
    [...RELEASES].flatMap(([name, releases]): [string, Gate][] => {
      const gate = Object.entries(releases).filter(isThere).at(-1)?.[1];
      return gate === undefined ? [] : [[name, gate]];
    }),
  );
}

/** Set every gate of one stage that is not set by its own name. */
const STAGES: ReadonlyMap<string, Gate['stage']> = new Map([
  ['AllAlpha', 'alpha'],
  ['AllBeta', 'beta'],
]);

/** In mode nftables, node ports answer on loopback. */
export const LOCALHOST_GATE = 'KubeProxyNFTablesLocalhostNodePorts';

/** Those that we act upon; the others are as they are by default, whatever is set. */
const ACTING = [
  'AllowServiceExternalIPs',
  'ComponentFlagz',
  'ComponentStatusz',
  'KubeProxyIPVS',
  LOCALHOST_GATE,
  'LoggingAlphaOptions',
  'LoggingBetaOptions',
] as const;

type GateName = (typeof ACTING)[number];

type GateSettings = Readonly<Record<string, boolean>>;

export function isGateEnabled(name: GateName, settings: GateSettings): boolean {
  const gate = GATES.get(name);
  return gate !== undefined && isEnabled(name, gate, settings);
}

function isEnabled(name: string, gate: Gate, settings: GateSettings): boolean {
  return settings[name] ?? settings[stageGate(gate)] ?? gate.enabled;
}

/** The gate that sets all of this one's stage; empty when there is none. */
function stageGate({ stage }: Gate): string {
  return [...STAGES].find(([, of]) => of === stage)?.[0] ?? '';
}

/** A gate as Kubernetes' metrics show it. */
export interface GateState {
  readonly name: string;
  /** Empty for what is stable. */
  readonly stage: 'ALPHA' | 'BETA' | 'DEPRECATED' | '';
  readonly enabled: boolean;
}

const STAGE_WORDS = { alpha: 'ALPHA', beta: 'BETA', stable: '', deprecated: 'DEPRECATED' } as const;

/** Every gate as it acts, those of whole stages as they are set. */
export function gateStates(settings: GateSettings): readonly GateState[] {
  const acting: ReadonlySet<string> = new Set(ACTING);
  return [
    ...[...STAGES].map(([name, stage]) => ({ name, stage: STAGE_WORDS[stage], enabled: settings[name] ?? false })),
    ...[...GATES].map(([name, gate]) => ({
      name,
      stage: STAGE_WORDS[gate.stage],
      enabled: acting.has(name) ? isEnabled(name, gate, settings) : gate.enabled,
    })),
  ];
}

/** Settings that a locked gate does not allow, as messages. */
export function lockedGateProblems(settings: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.entries(settings)
    .map(([name, value]) => ({ name, value, gate: GATES.get(name) }))
    .filter(({ value, gate }) => gate?.locked === true && gate.enabled !== value)
    .map(
      ({ name, value, gate }) =>
        `cannot set feature gate ${name} to ${value}, feature is locked to ${gate?.enabled ?? value}`,
    );
}

/** Gates that are set, by their own name or by that of their stage, to what we do not do. */
export function ineffectiveGates(settings: GateSettings): readonly string[] {
  const acting: ReadonlySet<string> = new Set(ACTING);
  return [...GATES].flatMap(([name, gate]) => {
    const value = isEnabled(name, gate, settings);
    if (gate.locked || acting.has(name) || value === gate.enabled) return [];
    return [`${name}=${value}${name in settings ? '' : ` (by ${stageGate(gate)})`}`];
  });
}

export function unknownGates(settings: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.keys(settings).filter((name) => !GATES.has(name) && !STAGES.has(name));
}
