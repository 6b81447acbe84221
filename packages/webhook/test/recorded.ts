import { readFileSync } from 'node:fs';
import type { ApiObject } from '../../../test/support/api-objects.js';
import { fieldsOf, merge } from '../../../test/support/deploy/kustomize.js';
import { projectFile } from '../../../test/support/lab/agent.js';

/** Reviews as kube-apiserver 1.36.2 sent them, recorded with deploy/components/admission but for its conditions; `shop/shop` is of type LoadBalancer. */
export const RECORDED = ['create', 'update', 'status', 'delete', 'dry-run'] as const;
export type Recorded = (typeof RECORDED)[number];

/** What is different in a review: fields merge, lists are replaced. */
export interface Differences {
  readonly object?: ApiObject;
  readonly oldObject?: ApiObject;
  readonly request?: ApiObject;
}

export function recorded(name: Recorded, { object, oldObject, request = {} }: Differences = {}): ApiObject {
  const path = projectFile(`test/fixtures/admission-1.36/${name}.json`);
  const review = fieldsOf(JSON.parse(readFileSync(path, 'utf8')));
  const changes = {
    ...request,
    ...(object === undefined ? {} : { object }),
    ...(oldObject === undefined ? {} : { oldObject }),
  };
  return merge(review, { request: changes });
}

export function external(...externalIPs: readonly string[]): ApiObject {
  return { spec: { externalIPs } };
}

export function loadBalancer(...addresses: readonly string[]): ApiObject {
  return { status: { loadBalancer: { ingress: addresses.map((ip) => ({ ip, ipMode: 'VIP' })) } } };
}
