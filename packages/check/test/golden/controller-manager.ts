import type { Golden } from './golden.js';

export const CONTROLLER_MANAGER: readonly Golden[] = [
  {
    apiVersion: 'kubecontrollermanager.config.k8s.io/v1alpha1',
    kind: 'KubeControllerManagerConfiguration',
    right: [
      `Generic: {Port: 10252, Address: 0.0.0.0, MinResyncPeriod: 12h, ClientConnection: {qps: 20, burst: 30, contentType: a}, LeaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, resourceLock: leases}, Controllers: ["*", -ttl], Debugging: {enableProfiling: true}, LeaderMigrationEnabled: true, LeaderMigration: {controllerLeaders: [{name: a, component: "*"}]}}
KubeCloudShared: {CloudProvider: {Name: external}, ClusterCIDR: "10.244.0.0/16,fd00::/48", AllocateNodeCIDRs: true, CIDRAllocatorType: RangeAllocator, NodeMonitorPeriod: 5s}
NodeIPAMController: {ServiceCIDR: 10.96.0.0/16, SecondaryServiceCIDR: "fd01::/112", NodeCIDRMaskSizeIPv4: 24, NodeCIDRMaskSizeIPv6: 64}
EndpointSliceController: {ConcurrentServiceEndpointSyncs: 5, MaxEndpointsPerSlice: 100, EndpointUpdatesBatchPeriod: 0s}
NodeLifecycleController: {NodeEvictionRate: 0.1, UnhealthyZoneThreshold: 0.55, NodeMonitorGracePeriod: 46s}
CSRSigningController: {KubeletServingSignerConfiguration: {CertFile: a, KeyFile: b}, ClusterSigningDuration: 8760h}
HPAController: {HorizontalPodAutoscalerTolerance: 0.1}
PersistentVolumeBinderController: {VolumeConfiguration: {EnableDynamicProvisioning: true, PersistentVolumeRecyclerConfiguration: {MaximumRetry: 3}}}
GarbageCollectorController: {GCIgnoredResources: [{Group: "", Resource: events}]}
PodGCController: {TerminatedPodGCThreshold: -1}
DeprecatedController: {}
DeviceTaintEvictionController: {ConcurrentSyncs: 8}
ResourceClaimController: {ConcurrentSyncs: 0}
AttachDetachController: {ReconcilerSyncLoopPeriod: 0s}`,
      'EndpointSliceController: {ConcurrentServiceEndpointSyncs: 0, MaxEndpointsPerSlice: 0}\nJobController: {ConcurrentJobSyncs: 0}',
    ],
    wrong: [
      [
        `generic: {}
Generic: {Port: 70000, Controllers: [job, -job], LeaderElection: {leaseDuration: 10s}, Webhooks: []}
KubeCloudShared: {ClusterCIDR: "", AllocateNodeCIDRs: true, CIDRAllocatorType: range}
NodeIPAMController: {SecondaryServiceCIDR: 10.0.0.0/8}
NodeLifecycleController: {UnhealthyZoneThreshold: 55}
EndpointSliceController: {MaxEndpointsPerSlice: 1001, ConcurrentServiceEndpointSyncs: -1, EndpointUpdatesBatchPeriod: -1s}
CSRSigningController: {ClusterSigningCertFile: a, KubeletClientSignerConfiguration: {KeyFile: b}}
JobController: {ConcurrentJobSyncs: -1}
DeprecatedController: {x: 1}`,
        'error: KubeControllerManagerConfiguration.Generic.Port: 70000: is out of range: should be an integer from 0 to 65535',
        'error: KubeControllerManagerConfiguration.Generic.LeaderElection.renewDeadline: "10s": must be below leaseDuration',
        'error: KubeControllerManagerConfiguration.Generic.Webhooks: is an unknown field',
        'warning: KubeControllerManagerConfiguration.Generic.Controllers: names "job" twice, the first one counts',
        'error: KubeControllerManagerConfiguration.KubeCloudShared.ClusterCIDR: "": is empty, and AllocateNodeCIDRs needs it',
        'error: KubeControllerManagerConfiguration.KubeCloudShared.CIDRAllocatorType: "range": is not known: should be "RangeAllocator" or "CloudAllocator" or "IPAMFromCluster" or "IPAMFromCloud"',
        'error: KubeControllerManagerConfiguration.CSRSigningController.KubeletClientSignerConfiguration.KeyFile: "b": needs CertFile beside it',
        'error: KubeControllerManagerConfiguration.CSRSigningController.ClusterSigningCertFile: "a": needs ClusterSigningKeyFile beside it',
        'error: KubeControllerManagerConfiguration.CSRSigningController.KubeletClientSignerConfiguration: must not have files beside ClusterSigningCertFile and ClusterSigningKeyFile',
        'error: KubeControllerManagerConfiguration.DeprecatedController.x: is an unknown field',
        'error: KubeControllerManagerConfiguration.EndpointSliceController.ConcurrentServiceEndpointSyncs: -1: is out of range: should be an integer from 1 to 50',
        'error: KubeControllerManagerConfiguration.EndpointSliceController.MaxEndpointsPerSlice: 1001: is out of range: should be an integer from 1 to 1000',
        'error: KubeControllerManagerConfiguration.EndpointSliceController.EndpointUpdatesBatchPeriod: "-1s": cannot be read: should be a duration of at least 0s',
        'error: KubeControllerManagerConfiguration.JobController.ConcurrentJobSyncs: -1: is out of range: should be an integer of at least 1',
        'error: KubeControllerManagerConfiguration.NodeIPAMController.SecondaryServiceCIDR: "10.0.0.0/8": needs ServiceCIDR beside it',
        'warning: KubeControllerManagerConfiguration.NodeLifecycleController.UnhealthyZoneThreshold: 55: is a number of nodes only by the reference: no zone counts as unhealthy: should be a number from 0 to 1',
        'error: KubeControllerManagerConfiguration.generic: has the wrong case: should be Generic',
      ],
      [
        `Generic: {LeaderElection: {renewDeadline: 2s, retryPeriod: 2s}, Debugging: {enableProfiling: false, enableContentionProfiling: true}}
KubeCloudShared: {ClusterCIDR: 10.0.0.0/8, ConfigureCloudRoutes: true, AllocateNodeCIDRs: false}
NodeIPAMController: {ServiceCIDR: 12.0.0.0/8, SecondaryServiceCIDR: 11.0.0.0/8, NodeCIDRMaskSize: 25}
CSRSigningController: {ClusterSigningKeyFile: k}`,
        'error: KubeControllerManagerConfiguration.Generic.LeaderElection.retryPeriod: "2s": must be below renewDeadline',
        'warning: KubeControllerManagerConfiguration.Generic.Debugging.enableContentionProfiling: true: has no effect as enableProfiling is false',
        'warning: KubeControllerManagerConfiguration.KubeCloudShared.ConfigureCloudRoutes: true: has no effect without AllocateNodeCIDRs',
        'error: KubeControllerManagerConfiguration.CSRSigningController.ClusterSigningKeyFile: "k": needs ClusterSigningCertFile beside it',
        'error: KubeControllerManagerConfiguration.NodeIPAMController.SecondaryServiceCIDR: "11.0.0.0/8": has the IP family of ServiceCIDR: should be of the other one',
        'error: KubeControllerManagerConfiguration.NodeIPAMController.NodeCIDRMaskSize: 25: is more than 16 bits longer than ClusterCIDR 10.0.0.0/8',
      ],
      [
        'Generic: {Controllers: ["", "-"], LeaderMigration: {leaderName: a}, LeaderMigrationEnabled: false}\nKubeCloudShared: {ExternalCloudVolumePlugin: a, CloudProvider: {Name: b}}\nNodeLifecycleController: {NodeMonitorGracePeriod: 45s}',
        'error: KubeControllerManagerConfiguration.Generic.Controllers[0]: has no name: should be *, a name, or - and a name',
        'error: KubeControllerManagerConfiguration.Generic.Controllers[1]: has no name: should be *, a name, or - and a name',
        'warning: KubeControllerManagerConfiguration.Generic.LeaderMigration: has no effect without LeaderMigrationEnabled',
        'warning: KubeControllerManagerConfiguration.KubeCloudShared.ExternalCloudVolumePlugin: "a": has no effect unless CloudProvider.Name is "external"',
        'warning: KubeControllerManagerConfiguration.NodeLifecycleController.NodeMonitorGracePeriod: "45s": is not above 45s, the sum of the timeouts of HTTP/2 for pings (15s) and reading (30s)',
      ],
      [
        'NodeLifecycleController: {UnhealthyZoneThreshold: 3}',
        'warning: KubeControllerManagerConfiguration.NodeLifecycleController.UnhealthyZoneThreshold: 3: is a number of nodes only by the reference: no zone counts as unhealthy: should be a number from 0 to 1',
      ],
      [
        'NodeLifecycleController: {UnhealthyZoneThreshold: 2}',
        'error: KubeControllerManagerConfiguration.NodeLifecycleController.UnhealthyZoneThreshold: 2: is neither a share nor a number of nodes: should be a number from 0 to 1',
      ],
      [
        'Generic: {Controllers: ["*", -jobs]}\nKubeCloudShared: {CIDRAllocatorType: CloudAllocator}',
        'error: KubeControllerManagerConfiguration.Generic.Controllers: has "-jobs", which is no controller',
        'error: KubeControllerManagerConfiguration.KubeCloudShared.CIDRAllocatorType: "CloudAllocator": is gone since Kubernetes 1.31: should be "RangeAllocator"',
      ],
      [
        'AttachDetachController: {ReconcilerSyncLoopPeriod: 0sx}',
        'error: KubeControllerManagerConfiguration.AttachDetachController.ReconcilerSyncLoopPeriod: "0sx": cannot be read: should be a duration of at least 1s',
      ],
      [
        `AttachDetachController: {ReconcilerSyncLoopPeriod: 999ms}
DeviceTaintEvictionController: {ConcurrentSyncs: -1}
ResourceClaimController: {ConcurrentSyncs: "1"}
PodGCController: {TerminatedPodGCThreshold: 2147483648}
NodeLifecycleController: {NodeMonitorGracePeriod: null}
CSRSigningController: {ClusterSigningDuration: null}`,
        'error: KubeControllerManagerConfiguration.AttachDetachController.ReconcilerSyncLoopPeriod: "999ms": is out of range: should be a duration of at least 1s',
        'error: KubeControllerManagerConfiguration.DeviceTaintEvictionController.ConcurrentSyncs: -1: is out of range: should be an integer of at least 1',
        'error: KubeControllerManagerConfiguration.ResourceClaimController.ConcurrentSyncs: "1": has the wrong type: should be an integer of at least 1',
        'error: KubeControllerManagerConfiguration.PodGCController.TerminatedPodGCThreshold: 2147483648: is out of range: should be an integer from -2147483648 to 2147483647',
        'error: KubeControllerManagerConfiguration.NodeLifecycleController.NodeMonitorGracePeriod: null: has the wrong type: should be a duration of at least 0s',
        'error: KubeControllerManagerConfiguration.CSRSigningController.ClusterSigningDuration: null: has the wrong type: should be a duration above 0s',
      ],
      [
        'CSRSigningController: {LegacyUnknownSignerConfiguration: {CertFile: a}}',
        'error: KubeControllerManagerConfiguration.CSRSigningController.LegacyUnknownSignerConfiguration.CertFile: "a": needs KeyFile beside it',
      ],
      [
        `Generic: {LeaderElection: {leaderElect: false, leaseDuration: 1s}}
KubeCloudShared: {ClusterCIDR: "10.0.0.0/16,fd00::/64"}
NodeIPAMController: {NodeCIDRMaskSizeIPv4: 15, NodeCIDRMaskSizeIPv6: 81}`,
        'error: KubeControllerManagerConfiguration.NodeIPAMController.NodeCIDRMaskSizeIPv4: 15: is smaller than the length of ClusterCIDR 10.0.0.0/16',
        'error: KubeControllerManagerConfiguration.NodeIPAMController.NodeCIDRMaskSizeIPv6: 81: is more than 16 bits longer than ClusterCIDR fd00::/64',
      ],
    ],
  },
  {
    apiVersion: 'cloudcontrollermanager.config.k8s.io/v1alpha1',
    kind: 'CloudControllerManagerConfiguration',
    right: [
      `Generic: {}
NodeController: {ConcurrentNodeSyncs: 1, ConcurrentNodeStatusUpdates: 0}
ServiceController: {ConcurrentServiceSyncs: 1}
NodeStatusUpdateFrequency: 5m
Webhook: {Webhooks: ["*"]}`,
    ],
    wrong: [
      [
        'Webhook: {Webhooks: [""]}',
        'error: CloudControllerManagerConfiguration.Webhook.Webhooks[0]: has no name: should be *, a name, or - and a name',
      ],
      [
        `NodeController: {ConcurrentNodeSyncs: "1", ConcurrentNodeStatusUpdates: -1}
NodeStatusUpdateFrequency: -1s
Webhook: {Webhooks: [a, a]}
NodeIPAMController: {}`,
        'error: CloudControllerManagerConfiguration.NodeController.ConcurrentNodeSyncs: "1": has the wrong type: should be an integer of at least 1',
        'error: CloudControllerManagerConfiguration.NodeController.ConcurrentNodeStatusUpdates: -1: is out of range: should be an integer of at least 0',
        'error: CloudControllerManagerConfiguration.NodeStatusUpdateFrequency: "-1s": cannot be read: should be a duration above 0s',
        'warning: CloudControllerManagerConfiguration.Webhook.Webhooks: names "a" twice, the first one counts',
        'error: CloudControllerManagerConfiguration.NodeIPAMController: is an unknown field',
      ],
    ],
  },
  {
    apiVersion: 'controllermanager.config.k8s.io/v1alpha1',
    kind: 'LeaderMigrationConfiguration',
    right: [
      `leaderName: x
resourceLock: leases
controllerLeaders: [{name: route, component: "*"}]`,
    ],
    wrong: [
      [
        '',
        'error: LeaderMigrationConfiguration.leaderName: is missing: should be text',
        'error: LeaderMigrationConfiguration.resourceLock: is missing: should be "leases" or "endpoints"',
      ],
      [
        `leaderName: a
resourceLock: lease
controllerLeaders: [{name: a, component: b}, {name: a, component: c}, {name: d}]`,
        'error: LeaderMigrationConfiguration.resourceLock: "lease": is not known: should be "leases" or "endpoints"',
        'error: LeaderMigrationConfiguration.controllerLeaders[1].name: "a": is given twice',
        'error: LeaderMigrationConfiguration.controllerLeaders[2].component: is missing: should be text',
      ],
    ],
  },
  {
    apiVersion: 'controllermanager.config.k8s.io/v1',
    kind: 'LeaderMigrationConfiguration',
    right: ['leaderName: x\ncontrollerLeaders: [{name: route, component: "*"}]'],
    wrong: [
      ['leaderName: x\nresourceLock: leases', 'error: LeaderMigrationConfiguration.resourceLock: is an unknown field'],
    ],
  },
];
