import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { JSON_CODEC } from '../../../src/sources/kubernetes/codec/json.js';
import { PROTOBUF_CODEC } from '../../../src/sources/kubernetes/codec/protobuf.js';
import type { RowKind } from '../../../src/state/rows.js';
import { encodeList, encodeWatchEvent } from '../../support/api-server/protobuf.js';
import type { ApiObject } from '../../support/api-objects.js';
import { rounds } from '../../support/extent.js';
import { SeededRandom } from '../../support/random.js';
import { decodeList, decodeWatch } from './decoded.js';

/** Made-up objects, right and wrong, that a real server's JSON and protobuf could both carry. */
class Maker {
  private version = 0;

  constructor(private readonly random: SeededRandom) {}

  metadata(labels: Readonly<Record<string, readonly string[]>> = {}): ApiObject {
    const { random } = this;
    const chosen = Object.entries(labels).filter(() => random.chance(0.5));
    return {
      name: random.pick(['web', 'a-1', 'x'.repeat(63), 'Bad Name', 'x'.repeat(64), 'sub.domain']),
      namespace: random.pick(['default', 'kube-system', 'team']),
      uid: 'u',
      resourceVersion: String(++this.version),
      creationTimestamp: random.pick(['2026-11-20T09:49:06Z', '1970-01-01T00:00:00Z', '1901-02-03T04:05:06Z', null]),
      ...(random.chance(0.2) ? { deletionTimestamp: '2026-11-20T10:00:00Z' } : {}),
      labels: { app: 'x', ...Object.fromEntries(chosen.map(([key, values]) => [key, random.pick(values)])) },
      annotations: random.chance(0.5)
        ? {
            other: 'x',
            'endpoints.kubernetes.io/last-change-trigger-time': random.pick(['2026-11-20T08:00:00.5Z', 'x', '']),
          }
        : {},
    };
  }

  Service(): ApiObject {
    const { random } = this;
    const address = (): string =>
      random.pick(['10.96.0.1', 'fd00::1', 'FD00:0::01', 'bad', '0.0.0.0', '010.1.1.1', '127.0.0.1']);
    const addresses = random.some([address(), address()], 0.7);
    return {
      kind: 'Service',
      apiVersion: 'v1',
      metadata: this.metadata({ 'service.kubernetes.io/service-proxy-name': ['', 'other'] }),
      spec: {
        type: random.pick(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', 'Odd']),
        ...(addresses.length === 0 ? {} : { clusterIP: addresses[0], clusterIPs: addresses }),
        ipFamilies: random.some(['IPv4', 'IPv6', 'IPv5'], 0.5),
        externalIPs: random.some(['192.0.2.1', '127.0.0.1', 'x'], 0.5),
        loadBalancerSourceRanges: random.some(['192.0.2.0/24', ' 10.0.0.0/8 ', 'fd00::/8', 'x'], 0.4),
        sessionAffinity: random.pick(['None', 'ClientIP', '']),
        ...(random.chance(0.5)
          ? {
              sessionAffinityConfig: {
                clientIP: random.chance(0.8) ? { timeoutSeconds: random.pick([1, 10800, 86400, 86401]) } : {},
              },
            }
          : {}),
        externalTrafficPolicy: random.pick(['Cluster', 'Local', '']),
        ...(random.chance(0.5) ? { internalTrafficPolicy: random.pick(['Cluster', 'Local']) } : {}),
        healthCheckNodePort: random.pick([0, 30100, 70000]),
        ports: random.some([80, 443, 65535, 65536], 0.6).map((port) => ({
          name: random.pick(['', 'http', 'p-1', 'Bad']),
          protocol: random.pick(['TCP', 'UDP', 'SCTP', 'ODD']),
          port,
          targetPort: random.pick([8080, 'named']),
          nodePort: random.pick([0, 30000, -1]),
        })),
      },
      status: {
        loadBalancer: {
          ingress: random.some(['192.0.2.10', 'fd00::10', 'x', ''], 0.4).map((ip) => ({
            ip,
            hostname: 'h',
            ...(random.chance(0.5) ? { ipMode: random.pick(['VIP', 'Proxy', 'Odd']) } : {}),
          })),
        },
      },
    };
  }

  EndpointSlice(): ApiObject {
    const { random } = this;
    const condition = (name: string): ApiObject => (random.chance(0.6) ? { [name]: random.chance(0.5) } : {});
    return {
      kind: 'EndpointSlice',
      apiVersion: 'discovery.k8s.io/v1',
      metadata: this.metadata({
        'kubernetes.io/service-name': ['web', 'web', 'Bad Name', ''],
        'service.kubernetes.io/headless': [''],
      }),
      addressType: random.pick(['IPv4', 'IPv4', 'IPv6', 'FQDN', 'Odd']),
      ports: random.some(['', 'http', 'Bad'], 0.5).map((name) => ({
        ...(random.chance(0.8) ? { name } : {}),
        ...(random.chance(0.8) ? { protocol: random.pick(['TCP', 'SCTP', 'ODD']) } : {}),
        ...(random.chance(0.8) ? { port: random.pick([0, 8080, 65536]) } : {}),
      })),
      endpoints: random
        .some(['10.0.0.1', '10.0.0.300', 'fd00::1', '', 'host', '127.0.0.1', '169.254.1.1', 'fe80::1', 'ff02::1'], 0.5)
        .map((address) => ({
          addresses: random.chance(0.9) ? [address, '10.9.9.9'] : [],
          conditions: { ...condition('ready'), ...condition('serving'), ...condition('terminating') },
          ...(random.chance(0.7)
            ? { nodeName: random.pick(['node-1', 'node-2', '', 'nœud-1', 'nœud-'.repeat(4)]) }
            : {}),
          ...(random.chance(0.5) ? { zone: 'z1' } : {}),
          ...(random.chance(0.5)
            ? {
                hints: {
                  forZones: [{ name: random.pick(['z1', '']) }],
                  forNodes: random.chance(0.5) ? [{ name: 'n' }] : [],
                },
              }
            : {}),
          ...(random.chance(0.5)
            ? {
                targetRef: { kind: random.pick(['Pod', 'Node']), name: random.pick(['p', 'web-1', 'web-12', '', 'ä']) },
                deprecatedTopology: { a: 'b' },
              }
            : {}),
        })),
    };
  }

  Node(): ApiObject {
    const { random } = this;
    return {
      kind: 'Node',
      apiVersion: 'v1',
      metadata: { ...this.metadata({ 'topology.kubernetes.io/zone': ['z1', ''] }), namespace: '' },
      spec: {
        podCIDR: random.pick(['10.1.0.0/24', '', 'x']),
        podCIDRs: random.some(['10.1.0.0/24', 'fd00::/64', 'x'], 0.4),
        taints: random
          .some(['ToBeDeletedByClusterAutoscaler', 'other'], 0.4)
          .map((key) => ({ key, effect: 'NoSchedule' })),
      },
      status: {
        addresses: random
          .some(['InternalIP', 'ExternalIP', 'Hostname'], 0.6)
          .map((type) => ({ type, address: random.pick(['192.0.2.1', 'fd00::1', 'host']) })),
      },
    };
  }

  ServiceCIDR(): ApiObject {
    return {
      kind: 'ServiceCIDR',
      apiVersion: 'networking.k8s.io/v1',
      metadata: { ...this.metadata(), namespace: '' },
      spec: { cidrs: this.random.some(['10.96.0.0/12', 'fd00:96::/112', 'x'], 0.5) },
    };
  }
}

const KINDS: readonly RowKind[] = ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'];

t.test('random objects: JSON and protobuf give the same rows, warnings and errors', (t) => {
  const maker = new Maker(new SeededRandom(2026));
  for (const kind of KINDS) {
    let good = 0;
    let bad = 0;
    for (let round = 0; round < rounds(500); round++) {
      const object = maker[kind]();
      const [json] = decodeWatch(JSON_CODEC, kind, Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`));
      const [protobuf] = decodeWatch(PROTOBUF_CODEC, kind, encodeWatchEvent('ADDED', object));
      if (JSON.stringify(protobuf) !== JSON.stringify(json)) {
        t.same(protobuf, json, JSON.stringify(object));
        break;
      }
      if (json !== undefined && 'object' in json && json.object.problem === null) good++;
      else bad++;
    }
    t.ok(good > 20 && bad > 20, `${kind}: ${good} good and ${bad} bad`);
  }
  t.end();
});

/** A slice that nothing is to be said about. */
function usualSlice(random: SeededRandom, endpoints: number): ApiObject {
  const family = random.pick(['IPv4', 'IPv6']);
  const hinted = random.chance(0.3);
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: 'web-1',
      namespace: 'default',
      resourceVersion: '1',
      labels: { 'kubernetes.io/service-name': 'web' },
    },
    addressType: family,
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpoints }, (_, index) => ({
      addresses: [family === 'IPv4' ? `10.${index >> 8}.${index & 255}.1` : `fd00::${index.toString(16)}`],
      ...(random.chance(0.9) ? { conditions: { ready: random.chance(0.8), serving: random.chance(0.8) } } : {}),
      ...(random.chance(0.9) ? { nodeName: `${random.pick(['node', 'nœud'])}-${random.below(20_000)}` } : {}),
      ...(hinted && random.chance(0.5) ? { hints: { forZones: [{ name: `zone-${random.below(3)}` }] } } : {}),
    })),
  };
}

t.test('JSON and protobuf agree on slices with up to thousands of endpoints', (t) => {
  const random = new SeededRandom(11);
  for (const endpoints of [0, 1, 2, 10, 100, 1000, 1001, 2500, 3, 6000, 1, 0]) {
    const object = usualSlice(random, endpoints);
    const [json] = decodeWatch(
      JSON_CODEC,
      'EndpointSlice',
      Buffer.from(`${JSON.stringify({ type: 'ADDED', object })}\n`),
    );
    const [protobuf] = decodeWatch(PROTOBUF_CODEC, 'EndpointSlice', encodeWatchEvent('ADDED', object));
    t.match(protobuf, { object: { row: { count: endpoints }, warnings: [], problem: null } });
    t.ok(isDeepStrictEqual(protobuf, json), `${endpoints} endpoints`);
  }
  t.end();
});

t.test('JSON and protobuf agree on lists of slices', (t) => {
  const maker = new Maker(new SeededRandom(7));
  for (const kind of KINDS) {
    const items = Array.from({ length: 50 }, () => maker[kind]());
    const metadata = { resourceVersion: '9' };
    const apiVersion = 'v1';
    const json = JSON.stringify({ kind: `${kind}List`, apiVersion, metadata, items });
    t.same(
      decodeList(PROTOBUF_CODEC, kind, encodeList({ apiVersion, kind, metadata, items })),
      decodeList(JSON_CODEC, kind, Buffer.from(json)),
      kind,
    );
  }
  t.end();
});
