import { FAMILIES } from '../../../../src/base/ip.js';
import type { ServiceLimits } from '../../../../src/base/service-limits.js';
import { claimProblems, limitProblems, type ClaimProblem } from '../../../../src/plan/claim-problems.js';
import { PlannedCluster } from '../../../../src/plan/planned-cluster.js';
import { objectKey, refOf, type Row } from '../../../../src/state/rows.js';
import { Store } from '../../../../src/state/store.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { keyOf, pathOf } from '../objects.js';
import { findingAt, printDocument, type Place } from './place.js';

/** Services that no node could program, by the code that plans them on a node. */

export function serviceFindings(documents: readonly Document[], limits: ServiceLimits): readonly Finding[] {
  const objects = documents.flatMap((document) => (document.row === null ? [] : [{ document, row: document.row }]));
  if (objects.length === 0) return [];
  // As in a file of manifests, the first of one name counts.
  const first = [...new Map([...objects].reverse().map((object) => [keyOf(object.row), object])).values()].reverse();
  return [...repeated(objects), ...wrongClaims(first, limits)];
}

interface ObjectDocument {
  readonly document: Document;
  readonly row: Row;
}

function placeOf({ document, row }: ObjectDocument, path: string, value: string): Place {
  return { document, path: `${pathOf(row.kind, refOf(row))}${path === '' ? '' : `.${path}`}`, value };
}

function repeated(objects: readonly ObjectDocument[]): readonly Finding[] {
  const first = new Map<string, Document>();
  return objects.flatMap((object) => {
    const key = keyOf(object.row);
    const other = first.get(key);
    if (other === undefined) first.set(key, object.document);
    if (other === undefined) return [];
    return [
      findingAt('error', 'unique', placeOf(object, '', refOf(object.row).name), `is also in ${printDocument(other)}`),
    ];
  });
}

/** Reports the Service that does not get its claim, of two that claim the same. */
function wrongClaims(objects: readonly ObjectDocument[], limits: ServiceLimits): readonly Finding[] {
  const store = new Store();
  const writer = store.register('files');
  writer.apply(objects.map(({ row }) => ({ type: 'upsert', row })));
  writer.complete();
  const cluster = new PlannedCluster([], limits);
  cluster.update(store.snapshot, store.takeChanges());
  return objects.flatMap((object) => {
    return problemsOf(object.row, cluster)
      .filter(({ standing }) => standing === 'denied')
      .map(({ rule, path, value, problem }) => findingAt('error', RULES[rule], placeOf(object, path, value), problem));
  });
}

function problemsOf(row: Row, cluster: PlannedCluster): readonly ClaimProblem[] {
  if (row.kind !== 'Service') return [];
  const problems = claimProblems(row, cluster);
  if (problems.some(({ rule }) => rule === 'frontends')) return problems;
  // Without the endpoints, which may be given as well, it is within the limits.
  const key = objectKey(row.namespace, row.name);
  const plans = FAMILIES.flatMap((family) => cluster.tables[family].plan(key) ?? []);
  return [...problems, ...plans.flatMap(({ family, limitations }) => limitProblems(family, limitations))];
}

const RULES: Readonly<Record<ClaimProblem['rule'], string>> = {
  frontends: 'frontends',
  conflict: 'service-conflict',
  port: 'port-clash',
  'node-address': 'taken-address',
  'service-range': 'taken-address',
  'pod-range': 'taken-address',
  'source-ranges': 'source-ranges',
};
