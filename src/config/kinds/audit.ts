import { needs, rule } from '../tables/rules.js';
import type { Section } from '../tables/section.js';
import { scalar } from '../tables/formats.js';
import { bool, field, list, map, oneOf, partial, required, struct, text, type KindTable } from '../tables/types.js';

/** What the API server records of requests. */

export const STAGE = oneOf('RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic');
export const LEVEL = oneOf('None', 'Metadata', 'Request', 'RequestResponse');

/** Whether two entries of a list of resources, `a`, `a/b`, `a/*`, `*` + `/b` or `*`, have something in common. */
function overlap(one: string, other: string): boolean {
  const [oneParts, otherParts] = [one, other].map((entry) => (entry === '*' ? ['*', '*'] : entry.split('/')));
  if (one === '*' || other === '*') return true;
  if (oneParts?.length !== otherParts?.length) return false;
  return (oneParts ?? []).every(
    (part, index) => [part, otherParts?.[index]].includes('*') || part === otherParts?.[index],
  );
}

const WILDCARDS = rule('overlap', (section) => {
  const entries = section.texts('resources');
  const wild = entries.filter((entry) => entry.includes('*'));
  const found = wild.find((entry) => entries.some((other) => other !== entry && overlap(entry, other)));
  if (found !== undefined)
    section.refuse('overlap', 'resources', `has ${JSON.stringify(found)}, which overlaps others`);
});

const EITHER = rule('exclusive', (section) => {
  if (!section.has('nonResourceURLs')) return;
  for (const name of ['resources', 'namespaces'])
    if (section.has(name)) section.refuse('exclusive', name, 'must not be given beside nonResourceURLs');
});

const URLS = rule('format', (section) => {
  for (const [index, url] of section.texts('nonResourceURLs').entries())
    if (url !== '*' && !/^\/[^*]*\*?$/.test(url))
      section.refuse('format', `nonResourceURLs[${index}]`, 'cannot be read', 'a path, with * at its end only, or *');
});

const SELECTORS = ['users', 'userGroups', 'verbs', 'resources', 'namespaces', 'nonResourceURLs'];

/** The first rule that matches counts. */
const REACHABLE = rule('unreachable', (section) => {
  const rules = section.sections('rules');
  const isForAll = (each: Section): boolean => !SELECTORS.some((name) => each.has(name));
  const index = rules.findIndex(isForAll);
  if (index >= 0 && index < rules.length - 1)
    rules[index + 1]?.warn(
      'unreachable',
      '',
      'is never reached, like all after it: the rule before it matches everything',
    );
});

/** Nothing of it counts for a policy, but what it has is read. */
const METADATA = partial({ name: text, namespace: text, labels: map(text), annotations: map(text) });

const POLICY = struct(
  {
    metadata: METADATA,
    rules: required(
      list(
        struct(
          {
            level: required(LEVEL),
            users: list(text),
            userGroups: list(text),
            verbs: list(text),
            resources: list(
              struct(
                {
                  group: field(scalar('api group'), { mayBeEmpty: true }),
                  resources: list(text, { unique: '' }),
                  resourceNames: list(text),
                },
                needs('resourceNames', 'resources'),
                WILDCARDS,
              ),
            ),
            namespaces: list(text),
            nonResourceURLs: list(text),
            omitStages: list(STAGE),
            omitManagedFields: bool,
          },
          EITHER,
          URLS,
        ),
        { min: 1 },
      ),
    ),
    omitStages: list(STAGE),
    omitManagedFields: field(bool, { since: 23 }),
  },
  REACHABLE,
);

export const AUDIT_POLICY: KindTable = { kind: 'Policy', group: 'audit.k8s.io', versions: { v1: {} }, table: POLICY };

export const AUDIT: readonly KindTable[] = [
  AUDIT_POLICY,
  {
    kind: 'PolicyList',
    group: 'audit.k8s.io',
    versions: { v1: {} },
    table: struct({
      metadata: partial({}),
      items: required(list(struct({ ...POLICY.fields, apiVersion: text, kind: text }, ...POLICY.rules))),
    }),
  },
];
