import type { Flag } from './flag.js';

/** What stands in front of the pages on the metrics address, under the names that node agents have. */
export const SECURED_FLAGS = [
  {
    name: 'metrics-tls',
    type: 'bool',
    help: 'serve --metrics-bind-address over TLS; a certificate switches it on as well',
    initial: 'false',
  },
  {
    name: 'tls-cert-file',
    type: 'string',
    value: 'file',
    help: 'certificate for TLS, with intermediates behind it, followed while running',
    initial: '',
  },
  {
    name: 'tls-private-key-file',
    type: 'string',
    value: 'file',
    help: 'key that belongs to --tls-cert-file',
    initial: '',
  },
  {
    name: 'cert-dir',
    type: 'string',
    value: 'directory',
    help: 'where a self-signed certificate for the addresses of this node is made and kept when --tls-cert-file is not given',
    initial: '/var/lib/pointsman/pki',
  },
  {
    name: 'tls-cipher-suites',
    type: 'words',
    help: 'cipher suites for TLS, by the names of the IANA; empty: those of the runtime',
    initial: '[]',
  },
  {
    name: 'tls-min-version',
    type: 'string',
    value: 'version',
    help: 'lowest version of TLS: VersionTLS10, VersionTLS11, VersionTLS12, which it is when empty, or VersionTLS13',
    initial: '',
  },
  {
    name: 'tls-sni-cert-key',
    type: 'list',
    value: "'certificate,key[:name,name]'",
    help: 'files of another certificate, for clients that ask for one of the names, which are those of the certificate unless they are given; may be repeated',
    initial: '[]',
  },
  {
    name: 'client-ca-file',
    type: 'string',
    value: 'file',
    help: 'certificates that vouch for client certificates, followed while running: the common name is the user, organizations are groups; with TLS',
    initial: '',
  },
  {
    name: 'authentication-token-webhook',
    type: 'bool',
    help: 'have the API server review bearer tokens; with TLS',
    initial: 'false',
  },
  {
    name: 'authentication-token-webhook-cache-ttl',
    type: 'duration',
    help: 'how long a review of a bearer token counts',
    initial: '2m0s',
  },
  {
    name: 'authentication-config',
    type: 'string',
    value: 'file',
    help: 'AuthenticationConfiguration, followed while running: issuers of JSON Web Tokens, and for which paths nobody has to say who it is; with TLS',
    initial: '',
  },
  {
    name: 'anonymous-auth',
    type: 'bool',
    help: 'let ask who does not say who it is, as system:anonymous of the group system:unauthenticated; with TLS',
    initial: 'true',
  },
  {
    name: 'authorization-mode',
    type: 'string',
    value: 'AlwaysAllow|Webhook',
    help: 'whether whoever may ask may ask for everything, or the API server reviews each path; with TLS',
    initial: 'AlwaysAllow',
  },
  {
    name: 'authorization-webhook-cache-authorized-ttl',
    type: 'duration',
    help: 'how long it counts that a user may ask for a path',
    initial: '5m0s',
  },
  {
    name: 'authorization-webhook-cache-unauthorized-ttl',
    type: 'duration',
    help: 'how long it counts that a user may not',
    initial: '30s',
  },
] as const satisfies readonly Flag[];
