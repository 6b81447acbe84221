import { IPTABLES_FLAVORS, type HttpHeader, type Surroundings } from './config.js';
import { invalid } from './errors.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { readManifestsSources } from './manifests-sources.js';
import { listFlag, settingOf, textFlag, type CommandLine } from './flags.js';

/** What the configuration needs beside its document: the node's name, and what only flags say. */
export function readSurroundings(
  line: CommandLine,
  document: KubeProxyConfiguration,
  systemHostname: () => string,
): { readonly value: Surroundings; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const nodeName = (document.hostnameOverride || systemHostname()).trim().toLowerCase();
  if (nodeName === '') problems.push(`${KIND}.hostnameOverride: empty hostname is invalid`);
  const manifests = readManifestsSources(listFlag(line, 'manifests'));
  problems.push(...manifests.problems);
  const headerLines = listFlag(line, 'manifests-header');
  if (headerLines.length > 0 && !manifests.sources.some(({ type }) => type === 'url')) {
    problems.push('--manifests-header: Forbidden: only with a URL in --manifests');
  }
  const manifestsHeaders = headerLines.map(parseHeader);
  // The value may be a credential, so messages name the flag only.
  if (manifestsHeaders.includes(null)) problems.push("--manifests-header: Invalid value: must be 'Name: value'");
  const flavorText = textFlag(line, 'iptables-flavor') || 'auto';
  const iptablesFlavor = IPTABLES_FLAVORS.find((flavor) => flavor === flavorText);
  if (iptablesFlavor === undefined)
    problems.push(invalid('--iptables-flavor', flavorText, `must be one of ${IPTABLES_FLAVORS.join(', ')}`));
  return {
    value: {
      nodeName,
      master: textFlag(line, 'master'),
      manifests: manifests.sources,
      manifestsHeaders: manifestsHeaders.filter((header) => header !== null),
      statusSocket: settingOf(line, 'status-socket') || null,
      iptablesFlavor: iptablesFlavor ?? 'auto',
    },
    problems,
  };
}

/** A field name is an RFC 9110 token, a value visible text; anything else would make a malformed request. */
function parseHeader(line: string): HttpHeader | null {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line);
  return match === null ? null : { name: match[1] ?? '', value: (match[2] ?? '').trim() };
}
