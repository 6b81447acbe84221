import { YamlError } from '../../../src/base/yaml.js';
import { API_GROUP } from '../../../src/config/kind.js';
import { splitApiVersion } from '../../../src/config/tables/api-version.js';
import { Mapping, readMappings } from '../../../src/config/yaml.js';
import type { Document } from './documents.js';
import { heldFile } from './findings.js';
import { impliedMeta, tablesOf } from './kinds.js';
import { CONFIG_MAP } from './tables/config-map.js';

/** A file that a document holds as text. */
interface HeldFile {
  /** The file of the document, and where in it. */
  readonly file: string;
  readonly text: string;
}

/** Keys that hold configuration by kubeadm's convention. Others are read if their text has a kind that is known here. */
const CONVENTIONAL = ['config.conf', 'kubeconfig.conf', 'kubelet', 'ClusterConfiguration'];

/** Configuration files in a ConfigMap. */
export function heldFiles({ file, kind, section }: Document): readonly HeldFile[] {
  const data = kind === CONFIG_MAP.kind ? (section?.section('data') ?? null) : null;
  if (section === null || data === null) return [];
  const name = section.within('metadata')?.text('name') ?? '';
  const namespace = section.within('metadata')?.text('namespace') || 'default';
  return data
    .names()
    .map((key) => ({ key, text: data.text(key) }))
    .filter(({ key, text }) => text !== '' && (CONVENTIONAL.includes(key) || holdsConfiguration(text)))
    .map(({ key, text }) => ({ file: heldFile(file, `${namespace}/${name}`, key), text }));
}

function holdsConfiguration(text: string): boolean {
  try {
    return readMappings(text).some((value) => value instanceof Mapping && isConfiguration(value));
  } catch (error) {
    if (error instanceof YamlError) return false;
    throw error;
  }
}

function isConfiguration(mapping: Mapping): boolean {
  if (impliedMeta(mapping) !== null) return true;
  const [apiVersion, kind] = ['apiVersion', 'kind'].map((name) => mapping.entries.get(name));
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return false;
  return splitApiVersion(apiVersion).group === API_GROUP || tablesOf(kind).length > 0;
}
