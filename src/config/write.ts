import { yamlLibrary } from '../base/yaml-library.js';
import { KUBE_PROXY, type KubeProxyConfiguration } from './document.js';
import { written } from './tables/settings.js';

/**
 * The document as YAML the way kube-proxy writes it: every field, keys in alphabetical order, fields that Kubernetes marks as optional
 * left out when they say nothing. Reading it back gives the same document.
 */
export function printConfiguration(document: KubeProxyConfiguration): string {
  const fields = configurationFields(document);
  const { dump } = yamlLibrary();
  const text = dump(fields, { sortKeys: true, noRefs: true, lineWidth: -1, quoteStyle: 'double', seqNoIndent: true });
  // kube-proxy's library quotes twice what unquoted would be another type, and once what would be another structure: `[::]:10256`, `::`.
  return text.replace(/: "([[:][^"'\\]*)"$/gm, ": '$1'");
}

/** What of the document is shown, to be written as YAML or as JSON. */
export function configurationFields(document: KubeProxyConfiguration): Readonly<Record<string, unknown>> {
  return written(KUBE_PROXY, document);
}
