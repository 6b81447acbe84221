/** The messages of the API that the test API server can write and read, field by field as the API server's generated code writes them. */

/**
 * `always`: written though empty (a Go value). `present`: written when there (a Go pointer). `repeated`: each entry. `map`: text to text, by
 * sorted key.
 */
export type Mode = 'always' | 'present' | 'repeated' | 'map';
export type Scalar = 'text' | 'integer' | 'boolean' | 'time' | 'microTime' | 'json' | 'intOrString';

export interface Field {
  readonly number: number;
  readonly name: string;
  readonly type: Scalar | Message;
  readonly mode: Mode;
}

export type Message = readonly Field[];

function message(...fields: readonly (readonly [number, string, Scalar | Message, Mode])[]): Message {
  return fields.map(([number, name, type, mode]) => ({ number, name, type, mode }));
}

const MANAGED_FIELDS = message(
  [1, 'manager', 'text', 'always'],
  [2, 'operation', 'text', 'always'],
  [3, 'apiVersion', 'text', 'always'],
  [4, 'time', 'time', 'present'],
  [6, 'fieldsType', 'text', 'always'],
  [7, 'fieldsV1', 'json', 'present'],
  [8, 'subresource', 'text', 'always'],
);

const OBJECT_META = message(
  [1, 'name', 'text', 'always'],
  [2, 'generateName', 'text', 'always'],
  [3, 'namespace', 'text', 'always'],
  [4, 'selfLink', 'text', 'always'],
  [5, 'uid', 'text', 'always'],
  [6, 'resourceVersion', 'text', 'always'],
  [7, 'generation', 'integer', 'always'],
  [8, 'creationTimestamp', 'time', 'always'],
  [9, 'deletionTimestamp', 'time', 'present'],
  [10, 'deletionGracePeriodSeconds', 'integer', 'present'],
  [11, 'labels', 'text', 'map'],
  [12, 'annotations', 'text', 'map'],
  [14, 'finalizers', 'text', 'repeated'],
  [17, 'managedFields', MANAGED_FIELDS, 'repeated'],
);

export const LIST_META = message(
  [1, 'selfLink', 'text', 'always'],
  [2, 'resourceVersion', 'text', 'always'],
  [3, 'continue', 'text', 'always'],
  [4, 'remainingItemCount', 'integer', 'present'],
);

export const TYPE_META = message([1, 'apiVersion', 'text', 'always'], [2, 'kind', 'text', 'always']);

const SERVICE_PORT = message(
  [1, 'name', 'text', 'always'],
  [2, 'protocol', 'text', 'always'],
  [3, 'port', 'integer', 'always'],
  [4, 'targetPort', 'intOrString', 'always'],
  [5, 'nodePort', 'integer', 'always'],
  [6, 'appProtocol', 'text', 'present'],
);

const SERVICE_SPEC = message(
  [1, 'ports', SERVICE_PORT, 'repeated'],
  [2, 'selector', 'text', 'map'],
  [3, 'clusterIP', 'text', 'always'],
  [4, 'type', 'text', 'always'],
  [5, 'externalIPs', 'text', 'repeated'],
  [7, 'sessionAffinity', 'text', 'always'],
  [8, 'loadBalancerIP', 'text', 'always'],
  [9, 'loadBalancerSourceRanges', 'text', 'repeated'],
  [10, 'externalName', 'text', 'always'],
  [11, 'externalTrafficPolicy', 'text', 'always'],
  [12, 'healthCheckNodePort', 'integer', 'always'],
  [13, 'publishNotReadyAddresses', 'boolean', 'always'],
  [
    14,
    'sessionAffinityConfig',
    message([1, 'clientIP', message([1, 'timeoutSeconds', 'integer', 'present']), 'present']),
    'present',
  ],
  [17, 'ipFamilyPolicy', 'text', 'present'],
  [18, 'clusterIPs', 'text', 'repeated'],
  [19, 'ipFamilies', 'text', 'repeated'],
  [20, 'allocateLoadBalancerNodePorts', 'boolean', 'present'],
  [21, 'loadBalancerClass', 'text', 'present'],
  [22, 'internalTrafficPolicy', 'text', 'present'],
  [23, 'trafficDistribution', 'text', 'present'],
);

const INGRESS = message(
  [1, 'ip', 'text', 'always'],
  [2, 'hostname', 'text', 'always'],
  [3, 'ipMode', 'text', 'present'],
);

const SERVICE_STATUS = message([1, 'loadBalancer', message([1, 'ingress', INGRESS, 'repeated']), 'always']);

const OBJECT_REFERENCE = message(
  [1, 'kind', 'text', 'always'],
  [2, 'namespace', 'text', 'always'],
  [3, 'name', 'text', 'always'],
  [4, 'uid', 'text', 'always'],
  [5, 'apiVersion', 'text', 'always'],
  [6, 'resourceVersion', 'text', 'always'],
  [7, 'fieldPath', 'text', 'always'],
);

const CONDITIONS = message(
  [1, 'ready', 'boolean', 'present'],
  [2, 'serving', 'boolean', 'present'],
  [3, 'terminating', 'boolean', 'present'],
);

const HINT = message([1, 'name', 'text', 'always']);

const ENDPOINT = message(
  [1, 'addresses', 'text', 'repeated'],
  [2, 'conditions', CONDITIONS, 'always'],
  [3, 'hostname', 'text', 'present'],
  [4, 'targetRef', OBJECT_REFERENCE, 'present'],
  [5, 'deprecatedTopology', 'text', 'map'],
  [6, 'nodeName', 'text', 'present'],
  [7, 'zone', 'text', 'present'],
  [8, 'hints', message([1, 'forZones', HINT, 'repeated'], [2, 'forNodes', HINT, 'repeated']), 'present'],
);

const ENDPOINT_PORT = message(
  [1, 'name', 'text', 'present'],
  [2, 'protocol', 'text', 'present'],
  [3, 'port', 'integer', 'present'],
  [4, 'appProtocol', 'text', 'present'],
);

const TAINT = message(
  [1, 'key', 'text', 'always'],
  [2, 'value', 'text', 'always'],
  [3, 'effect', 'text', 'always'],
  [4, 'timeAdded', 'time', 'present'],
);

const NODE_SPEC = message(
  [1, 'podCIDR', 'text', 'always'],
  [2, 'externalID', 'text', 'always'],
  [3, 'providerID', 'text', 'always'],
  [4, 'unschedulable', 'boolean', 'always'],
  [5, 'taints', TAINT, 'repeated'],
  [7, 'podCIDRs', 'text', 'repeated'],
);

const NODE_ADDRESS = message([1, 'type', 'text', 'always'], [2, 'address', 'text', 'always']);

const NODE_INFO = message(
  [1, 'machineID', 'text', 'always'],
  [2, 'systemUUID', 'text', 'always'],
  [3, 'bootID', 'text', 'always'],
  [4, 'kernelVersion', 'text', 'always'],
  [5, 'osImage', 'text', 'always'],
  [6, 'containerRuntimeVersion', 'text', 'always'],
  [7, 'kubeletVersion', 'text', 'always'],
  [8, 'kubeProxyVersion', 'text', 'always'],
  [9, 'operatingSystem', 'text', 'always'],
  [10, 'architecture', 'text', 'always'],
);

const NODE_STATUS = message(
  [3, 'phase', 'text', 'always'],
  [5, 'addresses', NODE_ADDRESS, 'repeated'],
  [
    6,
    'daemonEndpoints',
    message([1, 'kubeletEndpoint', message([1, 'Port', 'integer', 'always']), 'always']),
    'always',
  ],
  [7, 'nodeInfo', NODE_INFO, 'always'],
);

const CAUSE = message(
  [1, 'reason', 'text', 'always'],
  [2, 'message', 'text', 'always'],
  [3, 'field', 'text', 'always'],
);

const STATUS_DETAILS = message(
  [1, 'name', 'text', 'always'],
  [2, 'group', 'text', 'always'],
  [3, 'kind', 'text', 'always'],
  [4, 'causes', CAUSE, 'repeated'],
  [5, 'retryAfterSeconds', 'integer', 'always'],
  [6, 'uid', 'text', 'always'],
);

const EVENT_SERIES = message([1, 'count', 'integer', 'always'], [2, 'lastObservedTime', 'microTime', 'always']);

const EVENT_SOURCE = message([1, 'component', 'text', 'always'], [2, 'host', 'text', 'always']);

/** By kind; those of the same name by version too. */
export const MESSAGES: Readonly<Record<string, Message>> = {
  Service: message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'spec', SERVICE_SPEC, 'always'],
    [3, 'status', SERVICE_STATUS, 'always'],
  ),
  EndpointSlice: message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'endpoints', ENDPOINT, 'repeated'],
    [3, 'ports', ENDPOINT_PORT, 'repeated'],
    [4, 'addressType', 'text', 'always'],
  ),
  Node: message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'spec', NODE_SPEC, 'always'],
    [3, 'status', NODE_STATUS, 'always'],
  ),
  ServiceCIDR: message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'spec', message([1, 'cidrs', 'text', 'repeated']), 'always'],
  ),
  Status: message(
    [1, 'metadata', LIST_META, 'always'],
    [2, 'status', 'text', 'always'],
    [3, 'message', 'text', 'always'],
    [4, 'reason', 'text', 'always'],
    [5, 'details', STATUS_DETAILS, 'present'],
    [6, 'code', 'integer', 'always'],
  ),
  'v1/Event': message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'involvedObject', OBJECT_REFERENCE, 'always'],
    [3, 'reason', 'text', 'always'],
    [4, 'message', 'text', 'always'],
    [5, 'source', EVENT_SOURCE, 'always'],
    [6, 'firstTimestamp', 'time', 'always'],
    [7, 'lastTimestamp', 'time', 'always'],
    [8, 'count', 'integer', 'always'],
    [9, 'type', 'text', 'always'],
    [10, 'eventTime', 'microTime', 'always'],
    [11, 'series', EVENT_SERIES, 'present'],
    [12, 'action', 'text', 'always'],
    [13, 'related', OBJECT_REFERENCE, 'present'],
    [14, 'reportingComponent', 'text', 'always'],
    [15, 'reportingInstance', 'text', 'always'],
  ),
  'events.k8s.io/v1/Event': message(
    [1, 'metadata', OBJECT_META, 'always'],
    [2, 'eventTime', 'microTime', 'always'],
    [3, 'series', EVENT_SERIES, 'present'],
    [4, 'reportingController', 'text', 'always'],
    [5, 'reportingInstance', 'text', 'always'],
    [6, 'action', 'text', 'always'],
    [7, 'reason', 'text', 'always'],
    [8, 'regarding', OBJECT_REFERENCE, 'always'],
    [9, 'related', OBJECT_REFERENCE, 'present'],
    [10, 'note', 'text', 'always'],
    [11, 'type', 'text', 'always'],
    [12, 'deprecatedSource', EVENT_SOURCE, 'always'],
    [13, 'deprecatedFirstTimestamp', 'time', 'always'],
    [14, 'deprecatedLastTimestamp', 'time', 'always'],
    [15, 'deprecatedCount', 'integer', 'always'],
  ),
};
