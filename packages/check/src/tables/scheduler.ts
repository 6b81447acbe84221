import { atMost, rule } from '../../../../src/config/tables/rules.js';
import { Section, type Read } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  bool,
  durationWithin,
  embedded,
  field,
  int,
  int64,
  list,
  oneOf,
  parsed,
  path,
  required,
  struct,
  text,
  type KindTable,
  type StructType,
  type TypeMeta,
} from '../../../../src/config/tables/types.js';
import { CLIENT_CONNECTION, CONTENTION, DEBUGGING, LEADER_ELECTION } from './component.js';
import { gatedByFlag } from './feature-gates.js';
import { pem } from './pem.js';

/** The scheduler, and the arguments of its plugins. */

const GROUP = 'kubescheduler.config.k8s.io';

const PLUGINS = list(struct({ name: required(text), weight: int(0) }), { unique: 'name' });
const PLUGIN_SET = struct(
  { enabled: PLUGINS, disabled: PLUGINS },
  rule('value', (section) => {
    for (const plugin of section.sections('enabled'))
      if (plugin.text('name') === '*') plugin.refuse('value', 'name', 'is for disabled plugins alone', 'a plugin');
  }),
);

const POINTS = [
  'preEnqueue',
  'queueSort',
  'preFilter',
  'filter',
  'postFilter',
  'preScore',
  'score',
  'reserve',
  'permit',
  'preBind',
  'bind',
  'postBind',
  'multiPoint',
  'placementGenerate',
  'placementScore',
];

/** Points at which nodes get points. */
const SCORING = ['score', 'multiPoint', 'placementScore'];

const WEIGHTS = rule('no-effect', (section) => {
  for (const point of POINTS.filter((name) => !SCORING.includes(name)))
    for (const plugin of section.section(point)?.sections('enabled') ?? [])
      if ((plugin.number('weight') ?? 0) > 0)
        plugin.warn('no-effect', 'weight', 'has no effect here: nothing is scored');
});

/** The arguments' kind follows from the plugin's name. */
function argumentsOf(plugin: Section): TypeMeta {
  return { apiVersion: `${GROUP}/v1`, kind: `${plugin.text('name')}Args` };
}

/** Plugins of others have arguments of any kind. */
function kindsOfArguments(plugin: Section): readonly string[] {
  const kind = `${plugin.text('name')}Args`;
  return kind in ARGUMENTS ? [`${GROUP} ${kind}`] : [];
}

/** Plugins of Kubernetes that do not bind or do not sort. Those of others may do both. */
const NEITHER = `SchedulingGates NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit
  VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DefaultPreemption
  NodeResourcesBalancedAllocation ImageLocality DynamicResources NodeDeclaredFeatures GangScheduling`.split(/\s+/);

/** Without the defaults a profile still needs a plugin that sorts its queue, and one that binds. */
const STILL_COMPLETE = rule('required', (section) => {
  const names = (point: string, list: string): readonly string[] =>
    (section.within(`plugins.${point}`)?.sections(list) ?? []).map((plugin) => plugin.text('name'));
  if (!names('multiPoint', 'disabled').includes('*')) return;
  for (const [point, usual, other] of [
    ['queueSort', 'PrioritySort', 'DefaultBinder'],
    ['bind', 'DefaultBinder', 'PrioritySort'],
  ] as const) {
    const others = names('multiPoint', 'enabled').filter((name) => name !== other && !NEITHER.includes(name));
    if (names(point, 'enabled').length === 0 && others.length === 0)
      section.refuse('required', `plugins.${point}`, 'has no plugin, as multiPoint disables all', usual);
  }
});

/** Volume limits of single clouds, which storage drivers report now. */
const GONE = ['AzureDiskLimits', 'CinderLimits', 'EBSLimits', 'GCEPDLimits'];

const KNOWN_PLUGINS = rule('removed', (section) => {
  const sets = POINTS.flatMap((point) => section.within(`plugins.${point}`) ?? []);
  const plugins = sets.flatMap((set) => [...set.sections('enabled'), ...set.sections('disabled')]);
  for (const plugin of [...plugins, ...section.sections('pluginConfig')])
    if (GONE.includes(plugin.text('name'))) plugin.refuse('removed', 'name', 'is a plugin that there is no more');
});

const ONE_SORT = rule('exclusive', (section) => {
  if ((section.within('plugins.queueSort')?.sections('enabled') ?? []).length > 1)
    section.refuse('exclusive', 'plugins.queueSort.enabled', 'has several, and one sorts the queue');
});

const PROFILE = struct(
  {
    schedulerName: field(text, { default: 'default-scheduler', mayBeEmpty: true }),
    percentageOfNodesToScore: int(0, 100),
    plugins: struct(Object.fromEntries(POINTS.map((point) => [point, PLUGIN_SET])), WEIGHTS),
    pluginConfig: list(struct({ name: required(text), args: embedded(argumentsOf, kindsOfArguments) }), {
      unique: 'name',
    }),
  },
  KNOWN_PLUGINS,
  ONE_SORT,
  STILL_COMPLETE,
);

/** For comparison. */
function valuesOf(read: Read | null): unknown {
  if (Array.isArray(read)) return (read as readonly Read[]).map(valuesOf);
  return read instanceof Section ? read.names().map((name) => [name, valuesOf(read.read(name))]) : read;
}

/** Profiles are distinguished by name, and share one queue with the arguments of its plugin. */
const PROFILES = rule('profiles', (section) => {
  const profiles = section.sections('profiles');
  const names = new Set<string>();
  const sorts = new Set<string>();
  const configured = new Set<string>();
  for (const profile of profiles) {
    const isNamed = profile.isGiven('schedulerName') ? profile.has('schedulerName') : profiles.length === 1;
    if (!isNamed) profile.refuse('profiles', 'schedulerName', 'is missing', 'given by each of several profiles');
    else if (names.size === names.add(profile.text('schedulerName')).size)
      profile.refuse('profiles', 'schedulerName', 'is that of another profile, too');
    const sort = profile.within('plugins.queueSort');
    const enabled = (sort?.sections('enabled') ?? []).map((plugin) => plugin.text('name'));
    const disabled = (sort?.sections('disabled') ?? []).map((plugin) => plugin.text('name'));
    if (sorts.add(`${enabled.join()} ${disabled.join()}`).size > 1)
      profile.refuse('profiles', 'plugins.queueSort', 'is not that of the other profiles');
    const own = profile.sections('pluginConfig').filter((each) => enabled.includes(each.text('name')));
    if (configured.add(JSON.stringify(own.map(valuesOf))).size > 1)
      profile.refuse('profiles', 'pluginConfig', 'configures the queueSort plugin unlike the other profiles');
  }
});

/** What is given in place counts before a file. */
const UNUSED_FILES = rule('no-effect', (section) => {
  for (const name of ['cert', 'key', 'ca'])
    if (section.has(`${name}Data`) && section.has(`${name}File`))
      section.warn('no-effect', `${name}File`, `has no effect beside ${name}Data`);
});

/** A certificate and its key, each as a file or in place. */
const PAIR = rule('requires', (section) => {
  const has = (name: string): boolean => section.has(`${name}Data`) || section.has(`${name}File`);
  if (has('cert') !== has('key')) section.refuse('requires', '', 'must have a certificate and its key, or neither');
});

const VERBS = ['filterVerb', 'preemptVerb', 'prioritizeVerb', 'bindVerb'];

const EXTENDER = struct(
  {
    urlPrefix: required(scalar('http url')),
    filterVerb: text,
    preemptVerb: text,
    prioritizeVerb: text,
    bindVerb: text,
    weight: { ...int64, min: 0 },
    enableHTTPS: bool,
    tlsConfig: struct(
      {
        insecure: bool,
        serverName: text,
        certFile: path,
        keyFile: path,
        caFile: path,
        certData: scalar('base64'),
        keyData: field(scalar('base64'), { secret: true }),
        caData: scalar('base64'),
      },
      rule('tls', (section) => {
        if (section.truth('insecure') && (section.has('caFile') || section.has('caData')))
          section.refuse('tls', 'insecure', 'must not be true beside a CA');
      }),
      UNUSED_FILES,
      PAIR,
      pem('certData', 'certificate', 'base64'),
      pem('keyData', 'private key', 'base64'),
      pem('caData', 'certificate', 'base64'),
    ),
    httpTimeout: parsed(scalar('duration, not negative')),
    nodeCacheCapable: bool,
    managedResources: list(struct({ name: required(scalar('extended resource')), ignoredByScheduler: bool })),
    ignorable: bool,
  },
  rule('range', (section) => {
    if (section.has('prioritizeVerb') && (section.number('weight') ?? 0) < 1)
      section.refuse('range', 'weight', 'is not positive, and prioritizeVerb needs it', 'an integer of at least 1');
  }),
  rule('no-effect', (section) => {
    const isPlain = /^http:/i.test(section.text('urlPrefix'));
    if (isPlain && section.isGiven('tlsConfig'))
      section.warn('no-effect', 'tlsConfig', 'has no effect for a urlPrefix with http');
    if (!VERBS.some((name) => section.has(name)) && !section.has('managedResources'))
      section.warn('no-effect', '', `has no effect without ${VERBS.join(', ')} and managedResources`);
  }),
);

const ONE_BINDS = rule('extenders', (section) => {
  const [, ...others] = section.sections('extenders').filter((extender) => extender.has('bindVerb'));
  for (const extender of others) extender.refuse('extenders', 'bindVerb', 'must be given by one extender only');
});

/** A resource has one extender. */
const MANAGED_ONCE = rule('unique', (section) => {
  const seen = new Set<string>();
  for (const resource of section.sections('extenders').flatMap((each) => each.sections('managedResources')))
    if (resource.has('name') && seen.size === seen.add(resource.text('name')).size)
      resource.refuse('unique', 'name', 'is given twice');
});

/** It is to be greater, though the scheduler takes it. */
const CONSTANT_BACKOFF = rule('order', (section) => {
  const most = section.number('podMaxBackoffSeconds');
  if (most !== null && most === section.number('podInitialBackoffSeconds'))
    section.warn('order', 'podMaxBackoffSeconds', 'is podInitialBackoffSeconds: no pod waits longer than at first');
});

const UNTIL_ACTIVE = rule('no-effect', (section) => {
  const election = section.section('leaderElection');
  if (
    section.truth('delayCacheUntilActive') &&
    election?.isGiven('leaderElect') === true &&
    !election.truth('leaderElect')
  )
    section.warn('no-effect', 'delayCacheUntilActive', 'has no effect without leader election');
});

const SCHEDULER = struct(
  {
    ...DEBUGGING,
    parallelism: field(int(1), { default: 16 }),
    leaderElection: LEADER_ELECTION,
    clientConnection: CLIENT_CONNECTION,
    percentageOfNodesToScore: int(0, 100),
    podInitialBackoffSeconds: field({ ...int64, min: 1 }, { default: 1 }),
    podMaxBackoffSeconds: field({ ...int64, min: 1 }, { default: 10 }),
    profiles: list(PROFILE),
    extenders: list(EXTENDER),
    delayCacheUntilActive: bool,
  },
  CONTENTION,
  atMost('podInitialBackoffSeconds', 'podMaxBackoffSeconds'),
  CONSTANT_BACKOFF,
  PROFILES,
  ONE_BINDS,
  MANAGED_ONCE,
  UNTIL_ACTIVE,
);

/** Weight 0 stands for 1. */
const RESOURCES = list(struct({ name: required(text), weight: int(0, 100) }));
const BALANCED = list(struct({ name: required(text), weight: int(0, 1) }), { unique: 'name' });

const RISING = rule('order', (section) => {
  const utilizations = section.sections('shape').map((point) => point.number('utilization') ?? 0);
  if (utilizations.some((value, index) => index > 0 && value <= (utilizations[index - 1] ?? -1)))
    section.refuse('order', 'shape', 'must have points of rising utilization');
});
const SHAPE = list(struct({ utilization: int(0, 100), score: int(0, 10) }));

const RATIO = rule('requires', (section) => {
  const isRatio = section.text('type') === 'RequestedToCapacityRatio';
  const ratio = section.section('requestedToCapacityRatio');
  if (isRatio && ratio?.has('shape') !== true)
    section.refuse('requires', 'requestedToCapacityRatio', 'has no shape, and the type needs it');
  if (section.has('type') && !isRatio && section.isGiven('requestedToCapacityRatio'))
    section.refuse('requires', 'requestedToCapacityRatio', `must not be given with type ${section.text('type')}`);
});

const SPREADING = rule('exclusive', (section) => {
  if (section.text('defaultingType') !== 'List' && section.has('defaultConstraints'))
    section.refuse('exclusive', 'defaultConstraints', 'must not be given with defaultingType System');
});

const SOME_CANDIDATES = rule('range', (section) => {
  const numbers = ['minCandidateNodesPercentage', 'minCandidateNodesAbsolute'].map((name) => section.number(name));
  if (numbers.every((number) => number === 0)) section.refuse('range', '', 'must not have zero for both of its fields');
});

const REPEATED = rule('unique', (section) => {
  const seen = new Set<string>();
  for (const each of section.sections('defaultConstraints'))
    if (seen.size === seen.add(`${each.text('topologyKey')} ${each.text('whenUnsatisfiable')}`).size)
      each.refuse('unique', 'topologyKey', 'is given twice with this whenUnsatisfiable');
});

const SHAPE_GATE = gatedByFlag('StorageCapacityScoring', 'shape', (section) => section.isGiven('shape'));

const CONSTRAINT = struct({
  maxSkew: required(int(1)),
  topologyKey: required(scalar('label key')),
  whenUnsatisfiable: required(oneOf('DoNotSchedule', 'ScheduleAnyway')),
  minDomains: int(1),
  nodeAffinityPolicy: oneOf('Honor', 'Ignore'),
  nodeTaintsPolicy: oneOf('Honor', 'Ignore'),
});

const OPERATORS = oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt');

const REQUIREMENT = struct(
  { key: required(scalar('label key')), operator: required(OPERATORS), values: list(scalar('label value')) },
  rule('requires', (section) => {
    const operator = section.text('operator');
    const values = section.texts('values');
    const count = values.length;
    if (['In', 'NotIn'].includes(operator) && count === 0)
      section.refuse('requires', 'values', 'is missing, the operator needs it');
    if (['Exists', 'DoesNotExist'].includes(operator) && count > 0)
      section.refuse('requires', 'values', `must not be given with ${operator}`);
    if (['Gt', 'Lt'].includes(operator) && (count !== 1 || !/^[-+]?\d+$/.test(values[0] ?? '')))
      section.refuse('requires', 'values', `must have one entry with ${operator}`, 'an integer');
  }),
);

/** The only field of nodes is the name. */
const FIELD = struct({
  key: required(oneOf('metadata.name')),
  operator: required(oneOf('In', 'NotIn')),
  values: required(list(text, { min: 1, max: 1 })),
});
const TERM = struct({ matchExpressions: list(REQUIREMENT), matchFields: list(FIELD) });

const NODE_AFFINITY = struct({
  requiredDuringSchedulingIgnoredDuringExecution: struct({ nodeSelectorTerms: required(list(TERM, { min: 1 })) }),
  preferredDuringSchedulingIgnoredDuringExecution: list(
    struct({ weight: required(int(1, 100)), preference: required(TERM) }),
  ),
});

const ARGUMENTS: Readonly<Record<string, StructType>> = {
  DefaultPreemptionArgs: struct(
    {
      minCandidateNodesPercentage: field(int(0, 100), { default: 10 }),
      minCandidateNodesAbsolute: field(int(0), { default: 100 }),
    },
    SOME_CANDIDATES,
  ),
  DynamicResourcesArgs: struct({
    filterTimeout: scalar('duration, not negative'),
    bindingTimeout: durationWithin('1s'),
  }),
  InterPodAffinityArgs: struct({
    hardPodAffinityWeight: field(int(0, 100), { default: 1 }),
    ignorePreferredTermsOfExistingPods: bool,
  }),
  NodeAffinityArgs: struct({ addedAffinity: NODE_AFFINITY }),
  NodeResourcesBalancedAllocationArgs: struct({ resources: BALANCED }),
  NodeResourcesFitArgs: struct(
    {
      ignoredResources: list(scalar('label key')),
      ignoredResourceGroups: list(text),
      scoringStrategy: struct(
        {
          type: required(oneOf('LeastAllocated', 'MostAllocated', 'RequestedToCapacityRatio')),
          resources: RESOURCES,
          requestedToCapacityRatio: struct({ shape: SHAPE }, RISING),
        },
        RATIO,
      ),
    },
    rule('format', (section) => {
      if (section.texts('ignoredResourceGroups').some((group) => group.includes('/')))
        section.refuse('format', 'ignoredResourceGroups', 'has a slash', 'groups without names');
    }),
  ),
  PodTopologySpreadArgs: struct(
    { defaultConstraints: list(CONSTRAINT), defaultingType: field(oneOf('System', 'List'), { default: 'System' }) },
    SPREADING,
    REPEATED,
  ),
  VolumeBindingArgs: struct(
    { bindTimeoutSeconds: field({ ...int64, min: 0 }, { default: 600 }), shape: SHAPE },
    RISING,
    SHAPE_GATE,
  ),
};

export const SCHEDULERS: readonly KindTable[] = Object.entries({
  KubeSchedulerConfiguration: SCHEDULER,
  ...ARGUMENTS,
}).map(([kind, table]) => ({ kind, group: GROUP, versions: { v1: { since: 25 } }, table }));
