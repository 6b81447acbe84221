import { readTextFileSync } from '../base/bounded-file.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import { EGRESS_KIND } from '../config/kinds/egress.js';
import { readKind } from '../config/tables/document.js';
import type { Section } from '../config/tables/section.js';
import { MAX_CONFIG_BYTES } from '../config/yaml.js';
import type { Egress, TunnelAccess } from '../sources/kubernetes/auth/access.js';
import type { PemSource } from '../sources/kubernetes/auth/kubeconfig.js';
import { parseProxyUrl } from '../sources/kubernetes/auth/proxy.js';

/** Of the 108 bytes of an address (unix(7)) the last one ends the path; Node cuts off what is too long and says nothing. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * What an `EgressSelectorConfiguration` says of the way to the API server; null: nothing.
 *
 * @param origin of the file, for messages.
 */
export function readEgress(
  file: string,
  origin: string,
  log: Pick<Log, 'warn'>,
): { readonly egress: Egress | null } | { readonly problem: string } {
  try {
    const text = readTextFileSync(file, MAX_CONFIG_BYTES);
    const warn = (problem: string): void => {
      log.warn(`${origin}: ${problem}`);
    };
    return { egress: readKind(text, EGRESS_KIND, (section) => selected(section, origin), warn) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function selected(document: Section, origin: string): Egress | null {
  const selections = document.sections('egressSelections');
  const ours = selections.find(isControlPlane);
  for (const selection of selections)
    if (selection !== ours) selection.warn('unused', 'name', 'has no effect here', 'controlplane');
  if (ours === undefined) {
    document.warn('unused', 'egressSelections', 'has no controlplane, so the file has no effect');
    return null;
  }
  const connection = ours.inner('connection');
  switch (connection.text('proxyProtocol')) {
    case 'Direct':
      return { type: 'direct' };
    case 'HTTPConnect':
      return { type: 'tunnel', origin, ...tunnelOf(connection.inner('transport')) };
    default:
      connection.refuse('protocol', 'proxyProtocol', 'is not supported', 'HTTPConnect or Direct');
      return null;
  }
}

/** By either of its names. */
function isControlPlane(selection: Section): boolean {
  return ['controlplane', 'master'].includes(selection.text('name'));
}

function tunnelOf(transport: Section): Pick<TunnelAccess, 'name' | 'to' | 'login' | 'tls'> {
  if (transport.has('uds')) {
    const uds = transport.inner('uds');
    const path = uds.text('udsName');
    if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
      uds.refuse('socket', 'udsName', 'is too long', `at most ${MAX_SOCKET_PATH_BYTES} bytes`);
    return { name: `egress ${path}`, to: { path }, login: null, tls: null };
  }
  const tcp = transport.inner('tcp');
  const url = tcp.text('url');
  const proxy = parseProxyUrl(url);
  if (typeof proxy === 'string') {
    tcp.refuse('url', 'url', proxy);
    return { name: '', to: { path: '' }, login: null, tls: null };
  }
  const { type, host, port, login } = proxy;
  const name = `egress ${type}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { name, to: { host, port }, login, tls: type === 'https' ? tlsOf(tcp.inner('tlsConfig'), host) : null };
}

function tlsOf(files: Section, serverName: string): TunnelAccess['tls'] {
  const pem = (name: string): PemSource => ({ type: 'file', path: files.text(name), field: files.pathOf(name) });
  return {
    serverName,
    authority: files.has('caBundle') ? pem('caBundle') : null,
    insecure: false,
    pair: { certificate: pem('clientCert'), key: pem('clientKey') },
  };
}
