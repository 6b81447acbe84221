import { dump } from 'js-yaml';
import type { KubeProxyConfiguration } from './document.js';

/**
 * The document as YAML the way kube-proxy writes it: every field, keys in alphabetical order, fields that Kubernetes marks as optional
 * left out when they say nothing. Reading it back gives the same document.
 */
export function printConfiguration(document: KubeProxyConfiguration): string {
  const { featureGates, windowsRunAsService, logging, ...always } = document;
  const { vmodule, options, ...log } = logging;
  const shown = {
    ...always,
    ...(Object.keys(featureGates).length > 0 ? { featureGates } : {}),
    ...(windowsRunAsService ? { windowsRunAsService } : {}),
    logging: {
      ...log,
      ...(vmodule.length > 0 ? { vmodule } : {}),
      options: { json: printStreamOptions(options.json), text: printStreamOptions(options.text) },
    },
  };
  return dump(shown, { sortKeys: true, noRefs: true, lineWidth: -1, quoteStyle: 'double', seqNoIndent: true });
}

function printStreamOptions({
  splitStream,
  infoBufferSize,
}: KubeProxyConfiguration['logging']['options']['json']): object {
  return { infoBufferSize, ...(splitStream ? { splitStream } : {}) };
}
