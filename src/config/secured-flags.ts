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
] as const satisfies readonly Flag[];
