import { messageOf } from '../../base/error-message.js';
import { checkCertificates } from '../../base/pem.js';
import { trimEnd } from '../../base/text.js';
import { invalid, printValue } from '../../config/errors.js';
import type { FieldReader } from '../../config/reader.js';
import { Compiler, type Expression, type ResultType } from './cel.js';
import { readConfigurationFile } from './configuration-file.js';

/** An `AuthenticationConfiguration`, checked. */
export interface AuthenticationFile {
  readonly jwt: readonly JwtSettings[];
  /** Null: not said. */
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
  /** What is told when it does not hold; empty: the expression. */
  readonly message: string;
}

export type ClaimRule = Rule | { readonly claim: string; readonly requiredValue: string };

/** Where a part of a user comes from. */
export type Mapped = { readonly claim: string; readonly prefix: string } | { readonly expression: Expression };

const KIND = 'AuthenticationConfiguration';
/** As the API server has it. */
const MAX_ISSUERS = 64;
const WELL_KNOWN = '/.well-known/openid-configuration';

/** @throws Error with every problem, each with the path of its field. */
export function readAuthenticationFile(text: string): AuthenticationFile {
  return readConfigurationFile(text, KIND, ['v1', 'v1beta1', 'v1alpha1'], (root, problems) => {
    const jwt = root
      .sections('jwt')
      .map((section, index) => new IssuerReader(section, `${KIND}.jwt[${index}]`, problems).read());
    if (jwt.length > MAX_ISSUERS)
      problems.push(`${KIND}.jwt: Too many: ${jwt.length}: must have at most ${MAX_ISSUERS} items`);
    for (const [index, { issuer }] of jwt.entries()) {
      const others = jwt.slice(0, index).map((other) => other.issuer);
      if (others.some(({ url }) => url === issuer.url))
        problems.push(`${KIND}.jwt[${index}].issuer.url: Duplicate value: ${printValue(issuer.url)}`);
      if (others.some(({ discoveryUrl }) => discoveryUrl === issuer.discoveryUrl))
        problems.push(`${KIND}.jwt[${index}].issuer.discoveryURL: Duplicate value: ${printValue(issuer.discoveryUrl)}`);
    }
    return { jwt, anonymous: root.isSet('anonymous') ? readAnonymous(root.section('anonymous'), problems) : null };
  });
}

function readAnonymous(section: FieldReader, problems: string[]): AnonymousSettings {
  const enabled = section.truth('enabled');
  const conditions = section.sections('conditions').map((condition, index) => {
    const path = condition.text('path');
    if (!path.startsWith('/'))
      problems.push(invalid(`${KIND}.anonymous.conditions[${index}].path`, path, 'must begin with a slash'));
    condition.finish();
    return path;
  });
  section.finish();
  if (!enabled && conditions.length > 0) problems.push(`${KIND}.anonymous.conditions: Forbidden: enabled is false`);
  return { enabled, paths: conditions.length === 0 ? null : conditions };
}

/** Reads one entry of `jwt`. */
class IssuerReader {
  private readonly claims = new Compiler('claims');

  constructor(
    private readonly section: FieldReader,
    private readonly path: string,
    private readonly problems: string[],
  ) {}

  read(): JwtSettings {
    const { section, path, problems } = this;
    const issuer = this.issuer(section.section('issuer'), `${path}.issuer`);
    const claimRules = section
      .sections('claimValidationRules')
      .flatMap((rule, index) => this.claimRule(rule, `${path}.claimValidationRules[${index}]`));
    const mappings = section.section('claimMappings');
    const at = `${path}.claimMappings`;
    const username = this.mapped(mappings.section('username'), `${at}.username`, ['string'], true);
    const groups = this.mapped(mappings.section('groups'), `${at}.groups`, ['string', 'list'], true);
    const uid = this.mapped(mappings.section('uid'), `${at}.uid`, ['string'], false);
    const extra = mappings.sections('extra').flatMap((entry, index) => this.extra(entry, `${at}.extra[${index}]`));
    mappings.finish();
    const duplicate = extra.find(({ key }, index) => extra.findIndex((other) => other.key === key) < index);
    if (duplicate !== undefined) problems.push(`${at}.extra: Duplicate value: ${printValue(duplicate.key)}`);
    if (username === null) problems.push(`${at}.username: Required value: claim or expression`);
    const user = new Compiler('user');
    const userRules = section
      .sections('userValidationRules')
      .flatMap((rule, index) => this.rule(user, rule, `${path}.userValidationRules[${index}]`));
    section.finish();
    this.checkEmail(
      username,
      claimRules,
      extra.map(({ expression }) => expression),
      at,
    );
    return { issuer, claimRules, username: username ?? { claim: '', prefix: '' }, groups, uid, extra, userRules };
  }

  private issuer(section: FieldReader, path: string): JwtSettings['issuer'] {
    const { problems } = this;
    const url = section.text('url');
    const discovery = section.text('discoveryURL');
    const authority = section.text('certificateAuthority');
    const audiences = section.texts('audiences') ?? [];
    const policy = section.text('audienceMatchPolicy');
    section.finish();
    this.checkUrl(url, `${path}.url`);
    if (discovery !== '') this.checkUrl(discovery, `${path}.discoveryURL`);
    if (discovery !== '' && trimEnd(discovery, '/') === trimEnd(url, '/'))
      problems.push(invalid(`${path}.discoveryURL`, discovery, 'must be different from url'));
    if (audiences.length === 0 || audiences.includes(''))
      problems.push(`${path}.audiences: Required value: at least one, and none that is empty`);
    if (!['', 'MatchAny'].includes(policy) || (audiences.length > 1 && policy === ''))
      problems.push(
        invalid(`${path}.audienceMatchPolicy`, policy, 'must be MatchAny where there are several audiences, or empty'),
      );
    try {
      if (authority !== '') checkCertificates(authority, `${path}.certificateAuthority`);
    } catch (error) {
      problems.push(messageOf(error));
    }
    return {
      url,
      discoveryUrl: discovery || `${trimEnd(url, '/')}${WELL_KNOWN}`,
      authority: authority || null,
      audiences,
    };
  }

  private checkUrl(text: string, path: string): void {
    const url = URL.canParse(text) ? new URL(text) : null;
    const isFine = url?.protocol === 'https:' && url.username + url.password + url.search + url.hash === '';
    // There may be a password in it.
    if (!isFine)
      this.problems.push(`${path}: Invalid value: must be a URL https://host/path without user, query and fragment`);
  }

  private claimRule(section: FieldReader, path: string): readonly ClaimRule[] {
    const claim = section.text('claim');
    const requiredValue = section.text('requiredValue');
    if (claim === '' && requiredValue === '') return this.rule(this.claims, section, path);
    if (claim === '') this.problems.push(`${path}.claim: Required value: beside requiredValue`);
    for (const field of ['expression', 'message'])
      if (section.text(field) !== '') this.problems.push(`${path}.${field}: Forbidden: beside claim`);
    section.finish();
    return [{ claim, requiredValue }];
  }

  private rule(compiler: Compiler, section: FieldReader, path: string): readonly Rule[] {
    const source = section.text('expression');
    const message = section.text('message');
    section.finish();
    if (source === '') this.problems.push(`${path}.expression: Required value`);
    const expression = source === '' ? null : compiler.compile(source, `${path}.expression`, ['bool'], this.problems);
    return expression === null ? [] : [{ expression, message }];
  }

  /** @param isPrefixed whether a claim needs a prefix beside it, which may be empty. */
  private mapped(section: FieldReader, path: string, types: readonly ResultType[], isPrefixed: boolean): Mapped | null {
    const { problems } = this;
    const claim = section.text('claim');
    const prefix = isPrefixed && section.isSet('prefix') ? section.text('prefix') : null;
    const source = section.text('expression');
    section.finish();
    if (source !== '') {
      if (claim !== '' || prefix !== null) problems.push(`${path}.expression: Forbidden: beside claim or prefix`);
      const expression = this.claims.compile(source, `${path}.expression`, types, problems);
      return expression && { expression };
    }
    if (claim === '') {
      if (prefix !== null) problems.push(`${path}.claim: Required value: beside prefix`);
      return null;
    }
    if (isPrefixed && prefix === null) problems.push(`${path}.prefix: Required value: beside claim; it may be empty`);
    return { claim, prefix: prefix ?? '' };
  }

  private extra(
    section: FieldReader,
    path: string,
  ): readonly { readonly key: string; readonly expression: Expression }[] {
    const key = section.text('key');
    const source = section.text('valueExpression');
    section.finish();
    if (
      !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[-a-z0-9._~!$&'()*+,;=:@/%]+$/.test(key) ||
      /(^|\.)(k8s|kubernetes)\.io\//.test(key)
    )
      this.problems.push(
        invalid(
          `${path}.key`,
          key,
          'must be a domain, which is not of kubernetes.io, a slash and a path, in lower case',
        ),
      );
    const expression = this.claims.compile(source, `${path}.valueExpression`, ['string', 'list'], this.problems);
    return expression === null ? [] : [{ key, expression }];
  }

  /** An address that nobody verified is anybody's. */
  private checkEmail(
    username: Mapped | null,
    rules: readonly ClaimRule[],
    extra: readonly Expression[],
    at: string,
  ): void {
    if (username === null || !('expression' in username) || !/\bclaims\.\??email\b/.test(username.expression.source))
      return;
    const all = [
      username.expression,
      ...rules.flatMap((rule) => ('expression' in rule ? rule.expression : [])),
      ...extra,
    ];
    if (!all.some(({ source }) => source.includes('email_verified')))
      this.problems.push(
        invalid(
          `${at}.username.expression`,
          username.expression.source,
          'uses claims.email, so that some expression must look at claims.email_verified',
        ),
      );
  }
}
