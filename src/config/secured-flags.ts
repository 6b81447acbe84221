import { bool, int, row, text, type Flag } from './flag.js';

/** What stands in front of the pages on the metrics address, under the names that node agents have. */
export const SECURED_FLAGS = [
  bool('metrics-tls', 'serve --metrics-bind-address over TLS; implied by a certificate'),
  text('tls-cert-file', 'file', 'certificate for TLS, followed by intermediates; reloaded on change'),
  text('tls-private-key-file', 'file', 'key that belongs to --tls-cert-file'),
  text(
    'cert-dir',
    'directory',
    'directory of the self-signed serving certificate, used without --tls-cert-file, and of issued client certificates',
    '/var/lib/pointsman/pki',
  ),
  row(
    'tls-cipher-suites',
    'words',
    'cipher suites for TLS, by the names of the IANA; empty: those of the runtime',
    '[]',
  ),
  text(
    'tls-min-version',
    'version',
    'minimum TLS version: VersionTLS10, VersionTLS11, VersionTLS12 (also if empty) or VersionTLS13',
  ),
  row(
    'tls-sni-cert-key',
    'list',
    'files of another certificate, for clients that request one of the names; without names: those of the certificate; may be repeated',
    '[]',
    { value: "'certificate,key[:name,name]'" },
  ),
  text(
    'client-ca-file',
    'file',
    'CA certificates for clients, reloaded on change: the common name is the user, organizations are groups; with TLS',
  ),
  bool('authentication-token-webhook', 'have the API server review bearer tokens; with TLS'),
  row('authentication-token-webhook-cache-ttl', 'duration', 'how long a review of a bearer token is cached', '2m0s'),
  text(
    'authentication-config',
    'file',
    'AuthenticationConfiguration, reloaded on change: issuers of JSON Web Tokens, and paths that allow anonymous requests; with TLS',
  ),
  row(
    'anonymous-auth',
    'bool',
    'allow anonymous requests, as system:anonymous in group system:unauthenticated; with TLS',
    'true',
  ),
  text(
    'authorization-config',
    'file',
    'AuthorizationConfiguration in place of --authorization-mode, reloaded on change: webhooks in their order; with TLS',
  ),
  text(
    'authorization-mode',
    'AlwaysAllow|Webhook',
    'whether authenticated users may read every path, or the API server reviews each path; with TLS',
    'AlwaysAllow',
  ),
  row('authorization-webhook-cache-authorized-ttl', 'duration', 'how long an allowed path of a user is cached', '5m0s'),
  row('authorization-webhook-cache-unauthorized-ttl', 'duration', 'how long a denied path of a user is cached', '30s'),
  text(
    'audit-policy-file',
    'file',
    'Policy of audit.k8s.io, reloaded on change: which requests are written to --audit-log-path; with TLS',
  ),
  text('audit-log-path', 'file', 'file for Events of audit.k8s.io, one a line; -: standard output; with TLS'),
  int('audit-log-maxsize', 'size at which --audit-log-path is rotated; 0: 100', '0', { value: 'MB' }),
  int('audit-log-maxbackup', 'number of rotated files to keep; 0: all', '0', { value: 'files' }),
  int('audit-log-maxage', 'maximum age of rotated files; 0: unlimited', '0', { value: 'days' }),
  text(
    'audit-log-mode',
    'batch|blocking|blocking-strict',
    'whether requests wait until their Events are written, and with blocking-strict fail if that fails',
    'batch',
  ),
  text('audit-log-format', 'json', 'how Events are written', 'json'),
] as const satisfies readonly Flag[];
