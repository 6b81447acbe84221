import { parsePrefix, prefixContains, type IPAddress, type IPPrefix } from '../../../src/base/ip.js';
import {
  RULE_ACTIONS,
  SERVICE_POLICY_KIND,
  SERVICE_RULES,
  type RuleAction,
  type ServiceRule,
} from '../../../src/config/kinds/admission.js';
import { readKind } from '../../../src/config/tables/document.js';
import type { Section } from '../../../src/config/tables/section.js';

/** What is refused, and who may have which external IPs. */
export interface ServicePolicy {
  readonly actions: ReadonlyMap<ServiceRule, RuleAction>;
  /** Null: every namespace may have any. */
  readonly externalIPs: readonly ExternalIPGrant[] | null;
}

interface ExternalIPGrant {
  /** With `*` at the end: every namespace that begins so. */
  readonly namespaces: readonly string[];
  readonly cidrs: readonly IPPrefix[];
}

/** Without a file: everything that is wrong is refused. */
export const DEFAULT_POLICY: ServicePolicy = { actions: new Map(), externalIPs: null };

/**
 * Reads a `ServicePolicy`.
 *
 * @param warn receives what has no effect.
 * @throws Error with every problem, each with the path of its field.
 */
export function readPolicy(text: string, warn: (problem: string) => void): ServicePolicy {
  return readKind(text, [SERVICE_POLICY_KIND], policyOf, warn);
}

function policyOf(document: Section): ServicePolicy {
  const rules = document.inner('rules');
  const action = (rule: ServiceRule): RuleAction => RULE_ACTIONS.find((each) => each === rules.text(rule)) ?? 'Refuse';
  const grants = document.sections('allowedExternalIPs').map((grant) => ({
    namespaces: grant.texts('namespaces'),
    cidrs: grant.texts('cidrs').flatMap((cidr) => parsePrefix(cidr) ?? []),
  }));
  return {
    actions: new Map(SERVICE_RULES.map((rule) => [rule, action(rule)])),
    externalIPs: document.isGiven('allowedExternalIPs') ? grants : null,
  };
}

export function mayHave({ externalIPs }: ServicePolicy, namespace: string, address: IPAddress): boolean {
  if (externalIPs === null) return true;
  return externalIPs.some(
    ({ namespaces, cidrs }) =>
      namespaces.some((pattern) => matches(pattern, namespace)) && cidrs.some((cidr) => prefixContains(cidr, address)),
  );
}

function matches(pattern: string, namespace: string): boolean {
  return pattern.endsWith('*') ? namespace.startsWith(pattern.slice(0, -1)) : pattern === namespace;
}
