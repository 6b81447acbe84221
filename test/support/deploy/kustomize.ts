import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { load, loadAll } from 'js-yaml';
import type { ApiObject } from '../api-objects.js';

/** List items that a strategic merge patch finds by a field, by the name of the list (meta/v1 patchMergeKey). */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  env: 'name',
  ports: 'containerPort',
  volumeMounts: 'mountPath',
};

const FIELDS = [
  ...['apiVersion', 'kind', 'resources', 'components', 'patches', 'nameSuffix', 'labels', 'images'],
  'configMapGenerator',
];

const VERSIONS: Readonly<Record<string, string>> = {
  Kustomization: 'kustomize.config.k8s.io/v1beta1',
  Component: 'kustomize.config.k8s.io/v1alpha1',
};

/**
 * What `kubectl kustomize` makes of a folder, as far as deploy/ needs it: resources, components, strategic merge patches, name suffixes, labels
 * with their selectors, images. Throws on anything else, and on paths that lead nowhere.
 *
 * Made anew because the real one cannot be had where these tests run: Debian's kubernetes-client is 1.20, whose kustomize (2.0) knows neither components nor
 * `labels` and takes no folders as resources; npm has binaries that somebody else than the project publishes, and the tests run as root; building it takes
 * Go. `test/deploy/manifests.test.ts` compares with kubectl where there is one.
 */
export function build(folder: string, base: readonly ApiObject[] = []): ApiObject[] {
  return buildText(folder, readFileSync(join(folder, 'kustomization.yaml'), 'utf8'), base);
}

/** The same with the lines that are commented out, such as `#   - ../components/privileged`. */
export function buildUncommented(folder: string): ApiObject[] {
  return buildText(folder, uncommented(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')));
}

export function uncommented(text: string): string {
  return text.replaceAll(/^# ?(\w+:|  - )/gm, '$1');
}

function buildText(folder: string, text: string, base: readonly ApiObject[] = []): ApiObject[] {
  const file = join(folder, 'kustomization.yaml');
  const kustomization = fieldsOf(load(text, { filename: file }));
  const { kind, apiVersion } = kustomization;
  if (apiVersion !== VERSIONS[String(kind)])
    throw new Error(`${file}: kubectl refuses ${String(kind)} of ${String(apiVersion)}`);
  for (const field of Object.keys(kustomization)) {
    if (!FIELDS.includes(field)) throw new Error(`${file}: ${field} is not known here`);
  }
  let objects = [...base];
  for (const path of strings(kustomization['resources'])) {
    const resource = join(folder, path);
    objects.push(...(statSync(resource).isDirectory() ? build(resource) : documents(resource)));
  }
  for (const generator of items(kustomization['configMapGenerator'])) objects.push(configMap(folder, generator));
  for (const path of strings(kustomization['components'])) objects = build(join(folder, path), objects);
  for (const { path, target } of items(kustomization['patches'])) objects = patched(objects, folder, path, target);
  const { nameSuffix = '' } = kustomization;
  objects = objects.map((object) => suffixed(object, String(nameSuffix)));
  for (const { pairs, includeSelectors } of items(kustomization['labels'])) {
    objects = objects.map((object) => labelled(object, fieldsOf(pairs), includeSelectors === true));
  }
  for (const image of items(kustomization['images'])) objects = objects.map((object) => withImage(object, image));
  return objects;
}

/** Of files alone, by a name without a hash. */
function configMap(folder: string, { name, namespace, files, options }: ApiObject): ApiObject {
  const { disableNameSuffixHash, labels } = fieldsOf(options);
  if (disableNameSuffixHash !== true) throw new Error(`${folder}: hashes of generated names are not known here`);
  const data = strings(files).map((entry): [string, string] => {
    const [key = '', path = key] = entry.split('=');
    return [key, readFileSync(join(folder, path), 'utf8')];
  });
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: fieldsOf(labels) },
    data: Object.fromEntries(data),
  };
}

/** The documents of a YAML file. */
export function documents(file: string): ApiObject[] {
  return loadAll(readFileSync(file, 'utf8'), { filename: file }).map(fieldsOf);
}

/** A strategic merge patch: maps merge, lists of objects merge by their key, other lists are replaced, and null removes. */
export function merge(object: ApiObject, patch: ApiObject): ApiObject {
  const merged = { ...object };
  for (const [name, value] of Object.entries(patch)) {
    const key = MERGE_KEYS[name];
    if (value === null) {
      Reflect.deleteProperty(merged, name);
      continue;
    }
    if (Array.isArray(value) && key !== undefined) merged[name] = mergeList(items(merged[name]), items(value), key);
    else if (isFields(value)) merged[name] = merge(fieldsOf(merged[name]), value);
    else merged[name] = value;
  }
  return merged;
}

function mergeList(list: readonly ApiObject[], patches: readonly ApiObject[], key: string): ApiObject[] {
  const merged = [...list];
  const added: ApiObject[] = [];
  for (const patch of patches) {
    const index = merged.findIndex((item) => item[key] === patch[key]);
    if (index < 0) added.push(patch);
    else merged[index] = merge(merged[index] ?? {}, patch);
  }
  // As kustomize has it, what is new comes first.
  return [...added, ...merged];
}

function patched(objects: readonly ApiObject[], folder: string, path: unknown, target: unknown): ApiObject[] {
  const file = join(folder, String(path));
  const [patch = {}] = documents(file);
  const { name } = fieldsOf(patch['metadata']);
  const meant = (object: ApiObject): boolean =>
    target === undefined
      ? object['kind'] === patch['kind'] && fieldsOf(object['metadata'])['name'] === name
      : object['kind'] === fieldsOf(target)['kind'];
  if (!objects.some(meant)) throw new Error(`${file}: there is nothing to patch`);
  // The name of a patch with a target means nothing.
  return objects.map((object) =>
    meant(object) ? { ...merge(object, patch), metadata: merge(fieldsOf(object['metadata']), {}) } : object,
  );
}

function suffixed(object: ApiObject, suffix: string): ApiObject {
  const { name } = fieldsOf(object['metadata']);
  return merge(object, { metadata: { name: `${String(name)}${suffix}` } });
}

function labelled(object: ApiObject, labels: ApiObject, selectors: boolean): ApiObject {
  const selected = selectors && object['kind'] === 'DaemonSet';
  const spec = { selector: { matchLabels: labels }, template: { metadata: { labels } } };
  return merge(object, { metadata: { labels }, ...(selected ? { spec } : {}) });
}

function withImage(object: ApiObject, { name, newName, newTag, digest }: ApiObject): ApiObject {
  if (!['DaemonSet', 'Deployment'].includes(String(object['kind']))) return object;
  const pod = podSpec(object);
  const images = (list: string): ApiObject[] =>
    items(pod[list]).map((container) =>
      String(container['image']).split(':')[0] === name
        ? {
            ...container,
            image: `${String(newName)}${typeof digest === 'string' ? `@${digest}` : `:${String(newTag)}`}`,
          }
        : container,
    );
  const lists = ['initContainers', 'containers'].filter((list) => list in pod);
  return merge(object, {
    spec: { template: { spec: Object.fromEntries(lists.map((list) => [list, images(list)])) } },
  });
}

/** The pod that a DaemonSet or a Deployment makes. */
export function podSpec(daemonSet: ApiObject): ApiObject {
  return fieldsOf(fieldsOf(fieldsOf(daemonSet['spec'])['template'])['spec']);
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): ApiObject {
  return isFields(value) ? value : {};
}

/** The objects in a list; none in anything else. */
export function items(value: unknown): ApiObject[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function isFields(value: unknown): value is ApiObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
