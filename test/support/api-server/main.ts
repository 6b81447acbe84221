import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ApiObject } from '../api-objects.js';
import type { SigningFiles } from '../certificates.js';
import { clusterObjects, parseKinds } from './cluster.js';
import { serveControl } from './control.js';
import type { PolicyRule } from './rbac.js';
import { encodeObject } from './protobuf.js';
import type { TlsFiles, WatchListSupport } from './options.js';
import { ApiServer } from './server.js';

/**
 * The test API server as a process of its own. Prints one line of JSON once it listens, `{"url": …, "control": …}`, and ends when its standard
 * input does, so that it never outlives the test that started it.
 */

const WATCH_LIST: readonly WatchListSupport[] = ['yes', 'invalid', 'errorEvent', 'ignored'];

const { values } = parseArgs({
  options: {
    address: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    /** Path of a socket to be controlled through in place of a port. */
    control: { type: 'string' },
    'tls-cert-file': { type: 'string' },
    'tls-key-file': { type: 'string' },
    'client-ca-file': { type: 'string' },
    token: { type: 'string', multiple: true, default: [] },
    /** A file with a JSON list of the rules of a ClusterRole. */
    rules: { type: 'string' },
    'watch-list': { type: 'string', default: 'yes' },
    'bookmark-ms': { type: 'string', default: '60000' },
    /** Certificate and key that sign requests for certificates. */
    'signer-cert-file': { type: 'string' },
    'signer-key-file': { type: 'string' },
    without: { type: 'string', multiple: true, default: [] },
    /** A file with a JSON list of objects. */
    objects: { type: 'string' },
    /** `services,endpoints,nodes`: a made-up cluster. */
    cluster: { type: 'string' },
    /** Of which kinds the Services of the made-up cluster are: `plain`, `affinity` or `mix`. */
    kinds: { type: 'string', default: 'plain' },
  },
});

function tlsFiles(): TlsFiles | null {
  const { 'tls-cert-file': cert, 'tls-key-file': key, 'client-ca-file': ca } = values;
  if (cert === undefined || key === undefined) return null;
  return { cert: readFileSync(cert), key: readFileSync(key), clientCa: ca === undefined ? null : readFileSync(ca) };
}

function signer(): SigningFiles | null {
  const { 'signer-cert-file': certificateFile, 'signer-key-file': keyFile } = values;
  return certificateFile === undefined || keyFile === undefined ? null : { certificateFile, keyFile };
}

const server = new ApiServer({
  address: values.address,
  port: Number(values.port),
  tls: tlsFiles(),
  tokens: values.token,
  rules: values.rules === undefined ? null : (JSON.parse(readFileSync(values.rules, 'utf8')) as readonly PolicyRule[]),
  watchList: WATCH_LIST.find((support) => support === values['watch-list']) ?? 'yes',
  bookmarkMs: Number(values['bookmark-ms']),
  signer: signer(),
  without: values.without,
});
if (values.objects !== undefined) {
  server.put(...(JSON.parse(readFileSync(values.objects, 'utf8')) as readonly ApiObject[]));
}
if (values.cluster !== undefined) {
  const [services = 0, endpoints = 0, nodes = 1] = values.cluster.split(',').map(Number);
  // Encoded at once, so that the first client need not wait for it.
  for (const object of clusterObjects({ services, endpoints, nodes, kinds: parseKinds(values.kinds) })) {
    encodeObject(server.store.put(object));
  }
  server.store.compact();
}
await server.start();
const place = values.control === undefined ? { host: values.address, port: 0 } : { path: values.control };
const listening = (await serveControl(server, place)).address();
const control = typeof listening === 'object' ? `http://${values.address}:${listening?.port ?? 0}` : listening;
process.stdout.write(`${JSON.stringify({ url: server.url, control })}\n`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
