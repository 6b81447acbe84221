import { AUDIT_POLICY } from '../../../src/config/kinds/audit.js';
import { readKind } from '../../../src/config/tables/document.js';
import type { Section } from '../../../src/config/tables/section.js';
import type { User } from './user.js';

/** At which point of a request's way an Event is of it. */
export type Stage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete' | 'Panic';

/** What of a request is written down, and when. */
export interface AuditVerdict {
  /** A level of audit.k8s.io; no body is recorded at any. */
  readonly level: string;
  readonly omitted: ReadonlySet<string>;
}

/** What rules look at. */
interface AuditedRequest {
  /** Null: the user is unknown. */
  readonly user: User | null;
  /** The method in small letters. */
  readonly verb: string;
  readonly path: string;
}

interface PolicyRule {
  readonly verdict: AuditVerdict | null;
  /** Empty lists are for all. */
  readonly users: readonly string[];
  readonly groups: readonly string[];
  readonly verbs: readonly string[];
  readonly paths: readonly string[];
}

/** A `Policy` of audit.k8s.io: the first rule that matches counts, and without one nothing is written down. */
export class AuditPolicy {
  private constructor(private readonly rules: readonly PolicyRule[]) {}

  /**
   * @param warn receives what has no effect.
   * @throws Error with every problem, each with the path of its field.
   */
  static read(text: string, warn: (problem: string) => void): AuditPolicy {
    const read = (policy: Section): AuditPolicy => {
      const rules = policy.sections('rules');
      const own = rules.filter((rule) => !isOfResources(rule));
      // One policy may serve the API server as well.
      if (own.length < rules.length)
        warn(
          `Policy.rules: ${rules.length - own.length} with resources or namespaces match nothing, as there are only paths`,
        );
      if ([policy, ...own].some((section) => section.isGiven('omitManagedFields')))
        warn('Policy.omitManagedFields: has no effect, as no bodies are recorded');
      return new AuditPolicy(own.map((rule) => readRule(rule, policy.texts('omitStages'))));
    };
    return readKind(text, [AUDIT_POLICY], read, warn);
  }

  /** Null: nothing of it is written down. */
  judge({ user, verb, path }: AuditedRequest): AuditVerdict | null {
    const found = this.rules.find(
      ({ users, groups, verbs, paths }) =>
        isFor(users, (name) => name === user?.name) &&
        isFor(groups, (group) => user?.groups.includes(group) === true) &&
        isFor(verbs, (each) => each === verb) &&
        isFor(paths, (each) => matchesPath(each, path)),
    );
    return found?.verdict ?? null;
  }
}

function isOfResources(rule: Section): boolean {
  return rule.has('resources') || rule.has('namespaces');
}

function readRule(rule: Section, omitted: readonly string[]): PolicyRule {
  const level = rule.text('level');
  return {
    verdict: level === 'None' ? null : { level, omitted: new Set([...omitted, ...rule.texts('omitStages')]) },
    users: rule.texts('users'),
    groups: rule.texts('userGroups'),
    verbs: rule.texts('verbs'),
    paths: rule.texts('nonResourceURLs'),
  };
}

function isFor(list: readonly string[], matches: (entry: string) => boolean): boolean {
  return list.length === 0 || list.some(matches);
}

/** @param pattern a path, or the beginning of paths with a star behind it. */
function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
