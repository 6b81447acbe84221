import { messageOf } from '../../../src/base/error-message.js';
import { checkCertificates } from '../../../src/base/pem.js';
import { trimEnd } from '../../../src/base/text.js';
import { AUTHENTICATION_KIND } from '../../../src/config/kinds/access.js';
import { readKind } from '../../../src/config/tables/document.js';
import { compile, type Expression } from '../../../src/config/tables/expression.js';
import type { Section } from '../../../src/config/tables/section.js';

/** An `AuthenticationConfiguration`, checked. */
interface AuthenticationFile {
  readonly jwt: readonly JwtSettings[];
  /** Null: not set. */
  readonly anonymous: AnonymousSettings | null;
}

export interface AnonymousSettings {
  readonly enabled: boolean;
  /** Paths for which it holds; null: all. */
  readonly paths: readonly string[] | null;
}

/** One issuer, and what is made of its tokens. */
export interface JwtSettings {
  readonly issuer: {
    readonly url: string;
    readonly discoveryUrl: string;
    /** PEM; null: what the runtime trusts. */
    readonly authority: string | null;
    readonly audiences: readonly string[];
  };
  readonly claimRules: readonly ClaimRule[];
  readonly username: Mapped;
  readonly groups: Mapped | null;
  readonly uid: Mapped | null;
  readonly extra: readonly { readonly key: string; readonly expression: Expression }[];
  readonly userRules: readonly Rule[];
}

export interface Rule {
  readonly expression: Expression;
  /** The error message when it does not hold; empty: the expression. */
  readonly message: string;
}

type ClaimRule = Rule | { readonly claim: string; readonly requiredValue: string };

/** Where a part of a user comes from. */
export type Mapped = { readonly claim: string; readonly prefix: string } | { readonly expression: Expression };

const WELL_KNOWN = '/.well-known/openid-configuration';

/**
 * @param warn receives what has no effect.
 * @throws Error with every problem, each with the path of its field.
 */
export function readAuthenticationFile(text: string, warn: (problem: string) => void): AuthenticationFile {
  return readKind(
    text,
    AUTHENTICATION_KIND,
    (root) => ({
      jwt: root.sections('jwt').map((section) => readIssuer(section, warn)),
      anonymous: root.has('anonymous') ? readAnonymous(root.inner('anonymous')) : null,
    }),
    warn,
  );
}

function readAnonymous(section: Section): AnonymousSettings {
  const paths = section.sections('conditions').map((condition) => condition.text('path'));
  return { enabled: section.truth('enabled'), paths: paths.length === 0 ? null : paths };
}

function readIssuer(section: Section, warn: (problem: string) => void): JwtSettings {
  const mappings = section.inner('claimMappings');
  const mapped = (name: string): Mapped | null => readMapped(mappings.inner(name));
  const issuer = section.inner('issuer');
  if (issuer.has('egressSelectorType'))
    warn(`${issuer.pathOf('egressSelectorType')}: has no effect, issuers are asked without a proxy`);
  return {
    issuer: readIssuerAddress(issuer),
    claimRules: section.sections('claimValidationRules').map((rule) => readClaimRule(rule)),
    username: mapped('username') ?? { claim: '', prefix: '' },
    groups: mapped('groups'),
    uid: mapped('uid'),
    extra: mappings
      .sections('extra')
      .map((extra) => ({ key: extra.text('key'), expression: compile(extra.text('valueExpression'), 'claims') })),
    userRules: section.sections('userValidationRules').map((rule) => readRule(rule, 'user')),
  };
}

function readIssuerAddress(section: Section): JwtSettings['issuer'] {
  const url = section.text('url');
  const authority = section.text('certificateAuthority');
  try {
    if (authority !== '') checkCertificates(authority, 'the text');
  } catch (error) {
    section.refuse('certificate', 'certificateAuthority', messageOf(error));
  }
  return {
    url,
    discoveryUrl: section.text('discoveryURL') || `${trimEnd(url, '/')}${WELL_KNOWN}`,
    authority: authority || null,
    audiences: section.texts('audiences'),
  };
}

function readClaimRule(section: Section): ClaimRule {
  if (!section.has('claim')) return readRule(section, 'claims');
  return { claim: section.text('claim'), requiredValue: section.text('requiredValue') };
}

function readRule(section: Section, variable: string): Rule {
  return { expression: compile(section.text('expression'), variable), message: section.text('message') };
}

function readMapped(section: Section): Mapped | null {
  if (section.has('claim')) return { claim: section.text('claim'), prefix: section.text('prefix') };
  return section.has('expression') ? { expression: compile(section.text('expression'), 'claims') } : null;
}
