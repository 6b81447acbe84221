import type { Flag } from './flag.js';
import { into, text, truth } from './flag-setters.js';

const WINDOWS = { platform: 'win32', remark: 'has no effect on Linux' } as const;

/** Flags that set fields of the section winkernel (behaviour FL-53). */
export const WINDOWS_FLAGS: readonly Flag[] = [
  {
    name: 'network-name',
    type: 'string',
    initial: '',
    help: 'Windows only: name of the HNS network, its beginning as "vpcbr*", or a type as "type=Overlay"; empty: that in the environment variable KUBE_NETWORK',
    ...WINDOWS,
    set: text(into('winkernel', 'networkName')),
  },
  {
    name: 'source-vip',
    type: 'string',
    initial: '',
    help: 'Windows only: source address of what is balanced on overlay networks, or the name of the HNS endpoint that has it',
    ...WINDOWS,
    set: text(into('winkernel', 'sourceVip')),
  },
  {
    name: 'enable-dsr',
    type: 'bool',
    initial: 'false',
    help: 'Windows only: answers of cluster IPs go straight to the client',
    ...WINDOWS,
    set: truth(into('winkernel', 'enableDSR')),
  },
  {
    name: 'root-hnsendpoint-name',
    type: 'string',
    initial: 'cbr0',
    help: 'Windows only: name of the HNS endpoint of the node itself',
    ...WINDOWS,
    set: text(into('winkernel', 'rootHnsEndpointName')),
  },
  {
    name: 'forward-healthcheck-vip',
    type: 'bool',
    initial: 'false',
    help: 'Windows only: health checks sent to a load balancer are passed on to the node',
    ...WINDOWS,
    set: truth(into('winkernel', 'forwardHealthCheckVip')),
  },
];
