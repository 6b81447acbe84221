import type { Golden } from './golden.js';

export const EGRESS: readonly Golden[] = [
  {
    apiVersion: 'apiserver.k8s.io/v1beta1',
    kind: 'EgressSelectorConfiguration',
    right: [
      'egressSelections: [{name: cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /run/k.sock}}}}, {name: etcd, connection: {proxyProtocol: Direct}}, {name: controlplane, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: "HTTPS://t:8131", tlsConfig: {clientKey: k, clientCert: c}}}}}]',
    ],
    wrong: [
      ['', 'error: EgressSelectorConfiguration.egressSelections: is missing: should be a list'],
      [
        'egressSelections: [{name: master, connection: {proxyProtocol: GRPC, transport: {tcp: {url: "https://t:1"}}}}, {name: controlplane, connection: {proxyProtocol: HTTPConnect}}, {name: controlplane, connection: {proxyProtocol: Direct, transport: {uds: {udsName: "unix:///x"}}}}]',
        'error: EgressSelectorConfiguration.egressSelections[0].connection.transport.tcp.tlsConfig: needs clientKey for a URL with https',
        'error: EgressSelectorConfiguration.egressSelections[0].connection.transport.tcp.tlsConfig: needs clientCert for a URL with https',
        'error: EgressSelectorConfiguration.egressSelections[0].connection.transport.tcp: must not be given with GRPC: should be uds',
        'warning: EgressSelectorConfiguration.egressSelections[0].name: "master": is deprecated: should be controlplane',
        'error: EgressSelectorConfiguration.egressSelections[1].connection.transport: is missing, HTTPConnect needs it',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.uds.udsName: "unix:///x": has a scheme: should be a path alone',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport: must not be given with Direct',
        'error: EgressSelectorConfiguration.egressSelections[2].name: "controlplane": is given twice',
        'error: EgressSelectorConfiguration.egressSelections: has master beside controlplane, which is the same',
      ],
      [
        'egressSelections: [{name: node, connection: {proxyProtocol: grpc}}, {name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {}}}, {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: "http://t", tlsConfig: {caBundle: a, clientKey: b, clientCert: c}}, uds: {}}}}]',
        'error: EgressSelectorConfiguration.egressSelections[0].name: "node": is not known: should be "controlplane" or "master" or "etcd" or "cluster"',
        'error: EgressSelectorConfiguration.egressSelections[0].connection.proxyProtocol: "grpc": has the wrong case: should be "GRPC"',
        'error: EgressSelectorConfiguration.egressSelections[1].connection.transport: needs tcp or uds',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.tcp.tlsConfig.caBundle: "a": must not be given for a URL with http',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.tcp.tlsConfig.clientKey: "b": must not be given for a URL with http',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.tcp.tlsConfig.clientCert: "c": must not be given for a URL with http',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.uds.udsName: is missing: should be text',
        'error: EgressSelectorConfiguration.egressSelections[2].connection.transport.uds: must not be given beside tcp',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1beta1',
    kind: 'TracingConfiguration',
    right: [
      '',
      `endpoint: localhost:4317
samplingRatePerMillion: 1000000`,
      'endpoint: dns:///collector.example:4317',
      'endpoint: dns://192.0.2.53/otel_collector',
      'endpoint: "[::1]:4317"',
      'endpoint: unix:///run/collector.sock',
    ],
    wrong: [
      [
        'endpoint: http://localhost:4317',
        'error: TracingConfiguration.endpoint: "http://localhost:4317/": has a scheme that is not known: should be host:port, dns:// or unix://',
      ],
      ...['localhost:port', 'localhost:99999', 'a b:1', 'dns://localhost:4317', 'unix://'].map(
        (endpoint) =>
          [
            `endpoint: "${endpoint}"`,
            `error: TracingConfiguration.endpoint: "${endpoint}": cannot be read: should be host:port, dns:// or unix://`,
          ] as const,
      ),
      [
        `endpoint: 1
samplingRatePerMillion: 1000001
SamplingRatePerMillion: 1`,
        'error: TracingConfiguration.endpoint: 1: has the wrong type: should be text',
        'error: TracingConfiguration.samplingRatePerMillion: 1000001: is out of range: should be an integer from 0 to 1000000',
        'error: TracingConfiguration.SamplingRatePerMillion: has the wrong case: should be samplingRatePerMillion',
      ],
    ],
  },
];
