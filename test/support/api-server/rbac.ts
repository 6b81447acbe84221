import type { IncomingMessage } from 'node:http';

/** A rule of a ClusterRole (rbac.authorization.k8s.io/v1). */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface Access {
  readonly verb: string;
  readonly apiGroup: string;
  readonly resource: string;
}

const WRITING: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

/** What a request wants to do, in the terms of a rule; null when it is not about a resource. */
export function accessOf({ method = 'GET', url = '/' }: IncomingMessage): Access | null {
  const { pathname, searchParams } = new URL(url, 'http://server');
  const match = /^\/(?:api|apis\/([^/]+))\/[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)(\/[^/]+)?$/.exec(pathname);
  if (match === null) return null;
  const [, apiGroup = '', resource = '', name] = match;
  const watches = ['1', 'true'].includes(searchParams.get('watch') ?? '');
  const reading = name !== undefined ? 'get' : watches ? 'watch' : 'list';
  return { verb: WRITING[method] ?? reading, apiGroup, resource };
}

/** Whether one of the rules lets it be done. */
export function allows(rules: readonly PolicyRule[], access: Access): boolean {
  return rules.some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups.includes(access.apiGroup) && resources.includes(access.resource) && verbs.includes(access.verb),
  );
}
