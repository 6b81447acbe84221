import { isPort } from '../../base/protocol.js';
import { exclusive, rule, someOf } from '../tables/rules.js';
import { scalar } from '../tables/formats.js';
import { int, list, oneOf, path, required, struct, text, type KindTable } from '../tables/types.js';
import { apiServerKind, renamedKind } from './apiserver-groups.js';

/** How the API server reaches nodes, its store and webhooks, and where its traces go. */

const FILES = ['caBundle', 'clientKey', 'clientCert'];

/** What TLS needs, by the scheme of the URL. */
const TUNNEL_TLS = rule('tls', (section) => {
  const tls = section.section('tlsConfig');
  const isSecure = /^https:/i.test(section.text('url'));
  if (section.text('url') === '' || tls === null) return;
  for (const name of FILES) {
    if (!isSecure && tls.has(name)) tls.refuse('tls', name, 'must not be given for a URL with http');
    if (isSecure && name !== 'caBundle' && !tls.has(name))
      section.refuse('tls', 'tlsConfig', `needs ${name} for a URL with https`);
  }
});

const SOCKET_PATH = rule('socket', (section) => {
  if (/^[a-z]+:/i.test(section.text('udsName'))) section.refuse('socket', 'udsName', 'has a scheme', 'a path alone');
});

const TRANSPORT = struct(
  {
    tcp: struct(
      { url: required(scalar('http url')), tlsConfig: struct({ caBundle: path, clientKey: path, clientCert: path }) },
      TUNNEL_TLS,
    ),
    uds: struct({ udsName: required(text) }, SOCKET_PATH),
  },
  exclusive('tcp', 'uds'),
  someOf('tcp', 'uds'),
);

const PROTOCOL = rule('transport', (section) => {
  const protocol = section.text('proxyProtocol');
  const isDirect = protocol === 'Direct';
  if (protocol === '') return;
  if (isDirect && section.has('transport')) section.refuse('transport', 'transport', 'must not be given with Direct');
  if (!isDirect && !section.has('transport'))
    section.refuse('transport', 'transport', `is missing, ${protocol} needs it`);
  if (protocol === 'GRPC' && section.section('transport')?.has('tcp') === true)
    section.refuse('transport', 'transport.tcp', 'must not be given with GRPC', 'uds');
});

/** Both names mean the same. */
const ONE_CONTROL_PLANE = rule('unique', (section) => {
  const names = section.sections('egressSelections').map((selection) => selection.text('name'));
  if (names.includes('master') && names.includes('controlplane'))
    section.refuse('unique', 'egressSelections', 'has master beside controlplane, which is the same');
});

const OLD_NAME = rule('deprecated', (section) => {
  if (section.text('name') === 'master') section.warn('deprecated', 'name', 'is deprecated', 'controlplane');
});

const EGRESS = struct(
  {
    egressSelections: required(
      list(
        struct(
          {
            name: required(oneOf('controlplane', 'master', 'etcd', 'cluster')),
            connection: required(
              struct(
                { proxyProtocol: required(oneOf('HTTPConnect', 'GRPC', 'Direct')), transport: TRANSPORT },
                PROTOCOL,
              ),
            ),
          },
          OLD_NAME,
        ),
        { unique: 'name' },
      ),
    ),
  },
  ONE_CONTROL_PLANE,
);

/** As gRPC names what it connects to. */
const ENDPOINT = rule('endpoint', (section) => {
  const endpoint = section.text('endpoint');
  const [, scheme = 'dns'] = /^([^/]*):\/\//.exec(endpoint) ?? [];
  const refuse = (problem: string): void => {
    section.refuse('endpoint', 'endpoint', problem, 'host:port, dns:// or unix://');
  };
  if (!['dns', 'unix', 'unix-abstract'].includes(scheme)) refuse('has a scheme that is not known');
  else if (endpoint !== '' && !isTarget(endpoint, scheme)) refuse('cannot be read');
});

const DNS_TARGET = /^(?:dns:\/\/[^/]*\/)?(?:\[[\da-f:.]+\]|[^\s/:@[\]]+)(?::(\d{1,5}))?$/i;

function isTarget(endpoint: string, scheme: string): boolean {
  if (scheme !== 'dns') return endpoint.length > `${scheme}://`.length;
  const target = DNS_TARGET.exec(endpoint);
  return target !== null && (target[1] === undefined || isPort(Number(target[1])));
}

/** Of components other than the API server, too, as a section of their own documents. */
export const TRACING = struct({ endpoint: text, samplingRatePerMillion: int(0, 1_000_000) }, ENDPOINT);

export const EGRESS_KIND = apiServerKind('EgressSelectorConfiguration', EGRESS, {}, { v1alpha1: {}, v1beta1: {} });
export const TRACING_KIND = renamedKind('TracingConfiguration', TRACING, { v1: { since: 34 } });

export const EGRESS_AND_TRACING: readonly KindTable[] = [...EGRESS_KIND, ...TRACING_KIND];
