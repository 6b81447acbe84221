import { needs, rule } from '../tables/rules.js';
import type { Section } from '../tables/section.js';
import { scalar } from '../tables/formats.js';
import { bool, field, list, map, oneOf, partial, required, struct, text, type KindTable } from '../tables/types.js';

/** What the API server records of requests. */

const STAGES = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'];
export const STAGE = oneOf(...STAGES);
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

/** Whether a list that selects everything where it is empty has all of another one. */
function includesAll(one: Section, other: Section, name: string): boolean {
  if (!one.has(name)) return true;
  const [own, others] = [one.texts(name), other.texts(name)];
  return other.has(name) && others.every((each) => own.includes(each));
}

function urlCovers(one: string, other: string): boolean {
  return one === other || (one.endsWith('*') && other.startsWith(one.slice(0, -1)));
}

/** An entry without resources is for all of its group. */
function resourcesCover(one: Section, other: Section): boolean {
  if (one.text('group') !== other.text('group')) return false;
  return includesAll(one, other, 'resources') && includesAll(one, other, 'resourceNames');
}

/** Whether all requests that a rule matches are matched by another one. */
function covers(one: Section, other: Section): boolean {
  const [resources, otherResources] = [one.sections('resources'), other.sections('resources')];
  const [urls, otherUrls] = [one.texts('nonResourceURLs'), other.texts('nonResourceURLs')];
  return (
    ['users', 'userGroups', 'verbs', 'namespaces'].every((name) => includesAll(one, other, name)) &&
    (!one.has('resources') ||
      (otherResources.length > 0 &&
        otherResources.every((each) => resources.some((entry) => resourcesCover(entry, each))))) &&
    (!one.has('nonResourceURLs') ||
      (otherUrls.length > 0 && otherUrls.every((each) => urls.some((url) => urlCovers(url, each)))))
  );
}

/** The first rule that matches counts. */
const REACHABLE = rule('unreachable', (section) => {
  const rules = section.sections('rules');
  for (const [index, each] of rules.entries()) {
    const earlier = rules.slice(0, index).findIndex((one) => covers(one, each));
    if (earlier >= 0) each.warn('unreachable', '', `is never reached: rules[${earlier}] matches all that it matches`);
  }
});

/** Stages that the policy omits are added to those that the rule omits. */
const SOME_STAGE = rule('no-effect', (section) => {
  const omitted = section.texts('omitStages');
  const isAll = (more: readonly string[]): boolean =>
    STAGES.every((stage) => omitted.includes(stage) || more.includes(stage));
  if (isAll([])) section.warn('no-effect', 'omitStages', 'has all stages: nothing is recorded');
  else
    for (const each of section.sections('rules'))
      if (each.text('level') !== 'None' && isAll(each.texts('omitStages')))
        each.warn('no-effect', 'omitStages', 'leaves no stage: nothing is recorded');
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
  SOME_STAGE,
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
