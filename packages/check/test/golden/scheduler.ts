import { PEM_CERTIFICATE, PEM_KEY, type Golden } from './golden.js';

export const SCHEDULER: readonly Golden[] = [
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    right: [
      'profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: {x: 1, y: {z: 2}}}]}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: {y: {z: 2}, x: 1}}]}]',
      'profiles: [{plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: Mine}]}, filter: {disabled: [{name: "*"}]}}}]',
      'profiles: [{plugins: {multiPoint: {disabled: [{name: "*"}]}, queueSort: {enabled: [{name: PrioritySort}]}, bind: {enabled: [{name: DefaultBinder}]}}, pluginConfig: [{name: NodeAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}}]}]\nleaderElection: {leaderElect: true}\ndelayCacheUntilActive: true',
      `extenders: [{urlPrefix: "https://x", filterVerb: f, tlsConfig: {certFile: a, keyData: ${PEM_KEY}}}]`,
      '',
      `parallelism: 16
leaderElection: {leaderElect: true}
clientConnection: {kubeconfig: /a, qps: 50.5, burst: 100}
enableProfiling: true
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
delayCacheUntilActive: true
profiles: [{schedulerName: default-scheduler, plugins: {score: {enabled: [{name: A, weight: 500}], disabled: [{name: "*"}]}, placementGenerate: {enabled: [{name: G}]}, placementScore: {enabled: [{name: S, weight: 2}]}}, pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: cpu, weight: 1}], requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}}, {name: Mine, args: {x: 1}}]}, {schedulerName: other}]
extenders: [{urlPrefix: "http://x", filterVerb: filter, prioritizeVerb: p, weight: 1, bindVerb: bind, managedResources: [{name: example.com/a, ignoredByScheduler: true}], httpTimeout: 30s}]`,
    ],
    wrong: [
      [
        `parallelism: 0
percentageOfNodesToScore: 101
podInitialBackoffSeconds: 11
profiles: [{schedulerName: other, plugins: {Score: {}, queueSort: {enabled: [{name: A}, {name: A}]}}}, {schedulerName: other, pluginConfig: [{name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b]}}, {name: NodeResourcesFit}, {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]`,
        'error: KubeSchedulerConfiguration.parallelism: 0: is out of range: should be an integer of at least 1',
        'error: KubeSchedulerConfiguration.percentageOfNodesToScore: 101: is out of range: should be an integer from 0 to 100',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.queueSort.enabled[1].name: "A": is given twice',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.Score: has the wrong case: should be score',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.queueSort.enabled: has several, and one sorts the queue',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig[0].args.ignoredResourceGroups: has a slash: should be groups without names',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig[1].name: is given twice',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig[2].args.hardPodAffinityWeight: 101: is out of range: should be an integer from 0 to 100',
        'error: KubeSchedulerConfiguration.podInitialBackoffSeconds: 11: must not be above podMaxBackoffSeconds',
        'error: KubeSchedulerConfiguration.profiles[1].schedulerName: "other": is that of another profile, too',
        'error: KubeSchedulerConfiguration.profiles[1].plugins.queueSort: is not that of the other profiles',
      ],
      [
        `profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: A}]}, bind: {enabled: [{name: B, weight: 2}]}, multiPoint: {enabled: [{name: C, weight: 2}]}}, pluginConfig: [{name: A}]}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: A}]}}}]\nextenders: [{urlPrefix: "https://x", filterVerb: f, tlsConfig: {certFile: a, certData: ${PEM_CERTIFICATE}, keyFile: b, keyData: ${PEM_KEY}, caFile: c, caData: ${PEM_CERTIFICATE}}}]\nleaderElection: {leaderElect: true, leaseDuration: 5s}`,
        'error: KubeSchedulerConfiguration.leaderElection.renewDeadline: "10s": must be below leaseDuration',
        'warning: KubeSchedulerConfiguration.profiles[0].plugins.bind.enabled[0].weight: 2: has no effect here: nothing is scored',
        'warning: KubeSchedulerConfiguration.extenders[0].tlsConfig.certFile: "a": has no effect beside certData',
        'warning: KubeSchedulerConfiguration.extenders[0].tlsConfig.keyFile: "b": has no effect beside keyData',
        'warning: KubeSchedulerConfiguration.extenders[0].tlsConfig.caFile: "c": has no effect beside caData',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig: configures the queueSort plugin unlike the other profiles',
      ],
      [
        'profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: NodeAffinity}]}, filter: {enabled: [{name: "*"}]}}, pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: NodeAffinity}]}}, pluginConfig: [{name: NodeAffinity, args: {kind: NodeAffinityArgs, apiVersion: kubescheduler.config.k8s.io/v1, addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}}]}]',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.filter.enabled[0].name: "*": is for disabled plugins alone: should be a plugin',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig: configures the queueSort plugin unlike the other profiles',
      ],
      [
        'profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: {x: 1}}]}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: {x: 2}}]}]',
        'error: KubeSchedulerConfiguration.profiles[1].pluginConfig: configures the queueSort plugin unlike the other profiles',
      ],
      [
        'profiles: [{plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: NodeName}, {name: PrioritySort}]}}, pluginConfig: [{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}}, {name: Mine, args: {apiVersion: mine.example/v1, kind: Any}}]}]\nleaderElection: {leaderElect: false}\ndelayCacheUntilActive: true',
        'error: KubeSchedulerConfiguration.profiles[0].pluginConfig[0].args.kind: "kubescheduler.config.k8s.io/v1 NodeAffinityArgs": is not the kind that belongs here: should be "kubescheduler.config.k8s.io NodeResourcesFitArgs"',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.bind: has no plugin, as multiPoint disables all: should be DefaultBinder',
        'warning: KubeSchedulerConfiguration.delayCacheUntilActive: true: has no effect without leader election',
      ],
      [
        'extenders: [{urlPrefix: "http://x", weight: -1, tlsConfig: {certFile: a, caData: YQ==}}, {urlPrefix: "https://y", managedResources: [{name: a.example/b}], tlsConfig: {certData: YQ==, keyData: UzNjcjN0}}]',
        'error: KubeSchedulerConfiguration.extenders[0].weight: -1: is out of range: should be an integer of at least 0',
        'error: KubeSchedulerConfiguration.extenders[0].tlsConfig: must have a certificate and its key, or neither',
        'error: KubeSchedulerConfiguration.extenders[0].tlsConfig.caData: "YQ==": has no certificate: should be PEM, in base64',
        'warning: KubeSchedulerConfiguration.extenders[0].tlsConfig: has no effect for a urlPrefix with http',
        'warning: KubeSchedulerConfiguration.extenders[0]: has no effect without filterVerb, preemptVerb, prioritizeVerb, bindVerb and managedResources',
        'error: KubeSchedulerConfiguration.extenders[1].tlsConfig.certData: "YQ==": has no certificate: should be PEM, in base64',
        'error: KubeSchedulerConfiguration.extenders[1].tlsConfig.keyData: has no private key: should be PEM, in base64',
      ],
      [
        'leaderElection: {resourceLock: endpoints, leaseDuration: null}\nprofiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: NodeResourcesFit, args: {nobody: 1}}]}]\nextenders: [{urlPrefix: "http://a", managedResources: [{name: a.example/b}, {name: cpu}]}, {urlPrefix: "http://b", managedResources: [{name: a.example/b}]}]',
        'error: KubeSchedulerConfiguration.leaderElection.leaseDuration: null: has the wrong type: should be a duration above 0s',
        'error: KubeSchedulerConfiguration.leaderElection.resourceLock: "endpoints": is not known: should be "leases"',
        'error: KubeSchedulerConfiguration.profiles[0].pluginConfig[0].args.nobody: is an unknown field',
        'error: KubeSchedulerConfiguration.profiles[0].plugins.filter.enabled[0].name: "EBSLimits": is a plugin that there is no more',
        'error: KubeSchedulerConfiguration.extenders[0].managedResources[1].name: "cpu": cannot be read: should be a resource with a domain, such as example.com/gpu',
        'error: KubeSchedulerConfiguration.extenders[1].managedResources[0].name: "a.example/b": is given twice',
      ],
      [
        'podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: 0\nprofiles: [{}, {schedulerName: ""}, {schedulerName: a, plugins: {queueSort: {disabled: [{name: "*"}]}}}]',
        'error: KubeSchedulerConfiguration.podInitialBackoffSeconds: 0: is out of range: should be an integer of at least 1',
        'error: KubeSchedulerConfiguration.podMaxBackoffSeconds: 0: is out of range: should be an integer of at least 1',
        'error: KubeSchedulerConfiguration.profiles[0].schedulerName: "default-scheduler": is missing: should be given by each of several profiles',
        'error: KubeSchedulerConfiguration.profiles[1].schedulerName: "": is missing: should be given by each of several profiles',
        'error: KubeSchedulerConfiguration.profiles[2].plugins.queueSort: is not that of the other profiles',
      ],
      [
        'enableProfiling: false\nenableContentionProfiling: true\npodInitialBackoffSeconds: 10',
        'warning: KubeSchedulerConfiguration.enableContentionProfiling: true: has no effect as enableProfiling is false',
        'warning: KubeSchedulerConfiguration.podMaxBackoffSeconds: 10: is podInitialBackoffSeconds: no pod waits longer than at first',
      ],
      [
        'extenders: [{urlPrefix: x, prioritizeVerb: p, bindVerb: a, tlsConfig: {insecure: true, caFile: x, keyData: S3cr3t, certData: "?"}}, {urlPrefix: "http://user:S3cr3t@h", bindVerb: b, weight: 1, httpTimeout: 5, managedResources: [{}]}]',
        'error: KubeSchedulerConfiguration.extenders[0].urlPrefix: "x": cannot be read: should be a URL that begins with http:// or https://',
        'error: KubeSchedulerConfiguration.extenders[0].tlsConfig.certData: "?": cannot be read: should be base64',
        'error: KubeSchedulerConfiguration.extenders[0].tlsConfig.keyData: cannot be read: should be base64',
        'error: KubeSchedulerConfiguration.extenders[0].tlsConfig.insecure: true: must not be true beside a CA',
        'error: KubeSchedulerConfiguration.extenders[0].weight: is not positive, and prioritizeVerb needs it: should be an integer of at least 1',
        'error: KubeSchedulerConfiguration.extenders[1].httpTimeout: 5: has the wrong type: should be a duration of at least 0s',
        'error: KubeSchedulerConfiguration.extenders[1].managedResources[0].name: is missing: should be a resource with a domain, such as example.com/gpu',
        'error: KubeSchedulerConfiguration.extenders[1].bindVerb: "b": must be given by one extender only',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'DefaultPreemptionArgs',
    right: [
      `minCandidateNodesPercentage: 10
minCandidateNodesAbsolute: 0`,
    ],
    wrong: [
      [
        `minCandidateNodesPercentage: 101
minCandidateNodesAbsolute: -1`,
        'error: DefaultPreemptionArgs.minCandidateNodesPercentage: 101: is out of range: should be an integer from 0 to 100',
        'error: DefaultPreemptionArgs.minCandidateNodesAbsolute: -1: is out of range: should be an integer of at least 0',
      ],
      [
        'minCandidateNodesPercentage: 0\nminCandidateNodesAbsolute: 0',
        'error: DefaultPreemptionArgs: must not have zero for both of its fields',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'InterPodAffinityArgs',
    right: ['ignorePreferredTermsOfExistingPods: true'],
    wrong: [
      [
        'hardPodAffinityWeight: -1',
        'error: InterPodAffinityArgs.hardPodAffinityWeight: -1: is out of range: should be an integer from 0 to 100',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'NodeAffinityArgs',
    right: [
      'addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a.example/b, operator: In, values: [c]}, {key: d, operator: Exists}, {key: e, operator: Gt, values: ["1"]}]}, {matchFields: [{key: metadata.name, operator: NotIn, values: [node]}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: a, operator: DoesNotExist}]}}]}',
    ],
    wrong: [
      [
        'addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {matchExpressions: [{key: "a b", operator: in}, {key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: a, operator: Lt, values: [b, c]}, {key: a, operator: Gt, values: [many]}, {key: a, operator: In, values: ["a b", c]}], matchFields: [{key: name, operator: Exists, values: []}]}}]}',
        'error: NodeAffinityArgs.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: is empty: should be a list of at least 1',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 101: is out of range: should be an integer from 1 to 100',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: "a b": cannot be read: should be a name of a label, such as "example.com/role"',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator: "in": has the wrong case: should be "In"',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].values: is missing, the operator needs it',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[2].values: must not be given with Exists',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[3].values: must have one entry with Lt: should be an integer',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[4].values: must have one entry with Gt: should be an integer',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[5].values[0]: "a b": cannot be read: should be a value of a label: at most 63 of A-Z, a-z, 0-9, "-", "_" and "."',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: "name": is not known: should be "metadata.name"',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator: "Exists": is not known: should be "In" or "NotIn"',
        'error: NodeAffinityArgs.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].values: is empty: should be a list of 1 to 1 entries',
      ],
      ['AddedAffinity: {}', 'error: NodeAffinityArgs.AddedAffinity: has the wrong case: should be addedAffinity'],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'NodeResourcesBalancedAllocationArgs',
    right: ['resources: [{name: cpu, weight: 1}]'],
    wrong: [
      [
        'resources: [{name: cpu, weight: 101}, {name: cpu}, {}]',
        'error: NodeResourcesBalancedAllocationArgs.resources[0].weight: 101: is out of range: should be an integer from 0 to 1',
        'error: NodeResourcesBalancedAllocationArgs.resources[1].name: "cpu": is given twice',
        'error: NodeResourcesBalancedAllocationArgs.resources[2].name: is missing: should be text',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'NodeResourcesFitArgs',
    right: [
      `ignoredResources: [example.com/a]
ignoredResourceGroups: [example.com]`,
    ],
    wrong: [
      [
        'scoringStrategy: {}',
        'error: NodeResourcesFitArgs.scoringStrategy.type: is missing: should be "LeastAllocated" or "MostAllocated" or "RequestedToCapacityRatio"',
      ],
      [
        'scoringStrategy: {type: Least}',
        'error: NodeResourcesFitArgs.scoringStrategy.type: "Least": is not known: should be "LeastAllocated" or "MostAllocated" or "RequestedToCapacityRatio"',
      ],
      [
        'scoringStrategy: {type: RequestedToCapacityRatio}',
        'error: NodeResourcesFitArgs.scoringStrategy.requestedToCapacityRatio: has no shape, and the type needs it',
      ],
      [
        'scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {shape: [{utilization: 50, score: 11}, {utilization: 50, score: 1}, {score: 1}]}}',
        'error: NodeResourcesFitArgs.scoringStrategy.requestedToCapacityRatio.shape[0].score: 11: is out of range: should be an integer from 0 to 10',
        'error: NodeResourcesFitArgs.scoringStrategy.requestedToCapacityRatio.shape: must have points of rising utilization',
        'error: NodeResourcesFitArgs.scoringStrategy.requestedToCapacityRatio: must not be given with type LeastAllocated',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'PodTopologySpreadArgs',
    right: [
      '',
      `defaultingType: List
defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]`,
    ],
    wrong: [
      [
        'defaultConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: Never, labelSelector: {}}]',
        'error: PodTopologySpreadArgs.defaultConstraints[0].maxSkew: 0: is out of range: should be an integer of at least 1',
        'error: PodTopologySpreadArgs.defaultConstraints[0].whenUnsatisfiable: "Never": is not known: should be "DoNotSchedule" or "ScheduleAnyway"',
        'error: PodTopologySpreadArgs.defaultConstraints[0].labelSelector: is an unknown field',
        'error: PodTopologySpreadArgs.defaultConstraints: must not be given with defaultingType System',
      ],
      [
        `defaultingType: list
defaultConstraints: [{}]`,
        'error: PodTopologySpreadArgs.defaultConstraints[0].maxSkew: is missing: should be an integer of at least 1',
        'error: PodTopologySpreadArgs.defaultConstraints[0].topologyKey: is missing: should be a name of a label, such as "example.com/role"',
        'error: PodTopologySpreadArgs.defaultConstraints[0].whenUnsatisfiable: is missing: should be "DoNotSchedule" or "ScheduleAnyway"',
        'error: PodTopologySpreadArgs.defaultingType: "list": has the wrong case: should be "List"',
        'error: PodTopologySpreadArgs.defaultConstraints: must not be given with defaultingType System',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'PodTopologySpreadArgs',
    right: [],
    wrong: [
      [
        'defaultingType: List\ndefaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: "a b", whenUnsatisfiable: DoNotSchedule}]',
        'error: PodTopologySpreadArgs.defaultConstraints[2].topologyKey: "a b": cannot be read: should be a name of a label, such as "example.com/role"',
        'error: PodTopologySpreadArgs.defaultConstraints[1].topologyKey: "a": is given twice with this whenUnsatisfiable',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'VolumeBindingArgs',
    right: ['bindTimeoutSeconds: 5000000000'],
    wrong: [
      [
        `bindTimeoutSeconds: -1
shape: [{utilization: 101, score: 1}]`,
        'error: VolumeBindingArgs.bindTimeoutSeconds: -1: is out of range: should be an integer of at least 0',
        'error: VolumeBindingArgs.shape[0].utilization: 101: is out of range: should be an integer from 0 to 100',
        'warning: VolumeBindingArgs.shape: needs --feature-gates=StorageCapacityScoring=true',
      ],
    ],
  },
];
