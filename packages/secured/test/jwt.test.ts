// JSON Web Tokens by an AuthenticationConfiguration: a real issuer with discovery and keys that change, and tokens that are no good.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, SignJWT, UnsecuredJWT } from 'jose';
import t, { type Test } from 'tap';
import { AuthServer } from '../../../test/support/auth-server.js';
import { Authority } from '../../../test/support/certificates.js';
import { folder, open, scene, type Scene } from './scene.js';

const authority = new Authority();
t.teardown(() => {
  authority.remove();
});
const served = authority.issue({ commonName: 'served', alternativeNames: ['DNS:localhost', 'IP:127.0.0.1'] });
const TLS = [`--tls-cert-file=${served.certificateFile}`, `--tls-private-key-file=${served.keyFile}`];
const TRUSTED = ['--cacert', authority.own.certificateFile];
const HEAD = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' };

interface Signer {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

function signer(kid: string): Signer {
  return { kid, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
}

interface World extends Scene {
  readonly issuer: AuthServer;
  readonly keys: Signer[];
  readonly file: string;
  readonly says: { issuer: string };
  readonly write: (jwt: object, more?: object) => void;
  readonly token: (claims?: object, by?: Signer, alg?: string) => Promise<string>;
  readonly who: (token: string) => Promise<string>;
}

/** An issuer, and access control whose file knows it; the log of refused requests shows what it knows of a user. */
async function world(t: Test, jwt: object = {}, flags: readonly string[] = [], more: object = {}): Promise<World> {
  const issuer = await AuthServer.start({ key: served.key, cert: served.certificate });
  t.teardown(() => issuer.stop());
  const url = issuer.url();
  const keys = [signer('one')];
  const says = { issuer: url };
  issuer.handler = (request, response) => {
    const jwks = async (): Promise<object> => ({
      keys: await Promise.all(keys.map(async ({ kid, publicKey }) => ({ kid, ...(await exportJWK(publicKey)) }))),
    });
    if (request.url === '/keys') void jwks().then((set) => response.end(JSON.stringify(set)));
    else response.end(JSON.stringify({ issuer: says.issuer, jwks_uri: `${url}/keys` }));
  };
  const file = join(folder(t), 'authentication.yaml');
  const write = (changes: object, rest: object = more): void => {
    const usual = {
      issuer: { url, audiences: ['pointsman'], certificateAuthority: authority.own.certificate },
      claimMappings: { username: { claim: 'sub', prefix: 'oidc:' } },
    };
    writeFileSync(file, JSON.stringify({ ...HEAD, jwt: [{ ...usual, ...changes }], ...rest }));
  };
  write(jwt);
  const made = await scene(t, [...TLS, `--authentication-config=${file}`, ...flags]);
  const token = async (claims: object = {}, by: Signer = keys[0]!, alg = 'ES256'): Promise<string> => {
    const now = Math.floor(made.time.now / 1000);
    const whole = { iss: url, aud: 'pointsman', sub: 'prometheus', exp: now + 600, iat: now, ...claims };
    return new SignJWT(whole).setProtectedHeader({ alg, kid: by.kid }).sign(by.privateKey);
  };
  const who = async (bearer: string): Promise<string> => {
    const { status, body } = await made.ask('/metrics', ...TRUSTED, '-H', `Authorization: Bearer ${bearer}`);
    return `${status} ${body.trim()}`;
  };
  return { ...made, issuer, keys, file, says, write, token, who };
}

t.test('JWT: a token of a configured issuer is accepted, and every invalid one is refused', async (t) => {
  const { token, who, time, issuer, ask } = await world(t);
  const now = Math.floor(time.now / 1000);
  const good = await token();
  t.equal(await who(good), '200 scraped');
  t.equal(await who(await token({ aud: ['other', 'pointsman'] })), '200 scraped');
  const refused: readonly (readonly [name: string, token: string])[] = [
    ['wrong audience', await token({ aud: 'other' })],
    ['expired', await token({ exp: now - 60 })],
    ['expired for longer than clocks may differ', await token({ exp: now - 15 })],
    ['without end', await token({ exp: undefined })],
    ['not yet', await token({ nbf: now + 60 })],
    ['another key of that name', await token({}, signer('one'))],
    ['alg none', new UnsecuredJWT({ iss: issuer.url(), aud: 'pointsman', sub: 'admin', exp: now + 600 }).encode()],
    ['signed with the public key', await hmacToken(issuer.url(), now)],
    ['changed', `${good.slice(0, -8)}AAAAAAAA`],
    ['no user', await token({ sub: undefined })],
    ['a user that is no text', await token({ sub: 7 })],
    ['of an unknown issuer', await token({ iss: 'https://elsewhere.example' })],
    ['no token', 'abc'],
  ];
  for (const [name, bearer] of refused) t.match(await who(bearer), /^401 Unauthorized: the bearer token/, name);
  t.equal(await who(await token({ exp: now - 5 })), '200 scraped', 'clocks differ');
  time.now += 700_000;
  t.match(await who(good), /^401 .*ERR_JWT_EXPIRED/, 'again after its end');
  t.match(
    await ask('/metrics', ...TRUSTED),
    { status: 200 },
    'anonymous requests are admitted unless configured otherwise',
  );
});

/** Of who takes the public key for a shared secret. */
async function hmacToken(iss: string, now: number): Promise<string> {
  const claims = { iss, aud: 'pointsman', sub: 'admin', exp: now + 600 };
  return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(Buffer.alloc(64, 1));
}

t.test('JWT: a symmetric key among the keys of an issuer is not used', async (t) => {
  const { who, issuer, time } = await world(t);
  const secret = Buffer.alloc(64, 1);
  const { handler } = issuer;
  issuer.handler = (request, response, connection) => {
    if (request.url !== '/keys') handler(request, response, connection);
    else response.end(JSON.stringify({ keys: [{ kty: 'oct', kid: 'one', k: secret.toString('base64url') }] }));
  };
  t.match(await who(await hmacToken(issuer.url(), Math.floor(time.now / 1000))), /^401 /);
});

t.test('JWT: keys are fetched once, again for an unknown key id, and not for every made-up one', async (t) => {
  const { token, who, keys, issuer, clock, says } = await world(t);
  t.same([await who(await token()), await who(await token())], ['200 scraped', '200 scraped']);
  t.same(
    issuer.seen.map(({ url }) => url),
    ['/.well-known/openid-configuration', '/keys'],
  );
  keys.unshift(signer('two'));
  t.match(await who(await token()), /^401/, 'a moment after they were asked for');
  await clock.advance(10_000);
  t.equal(await who(await token()), '200 scraped');
  t.equal(issuer.seen.length, 4);
  for (let index = 0; index < 5; index++) t.match(await who(await token({}, signer(`made-up-${index}`))), /^401/);
  t.equal(issuer.seen.length, 4);
  await clock.advance(10_000);
  says.issuer = 'https://elsewhere.example';
  t.match(await who(await token({}, signer('three'))), /^503 .*keys of the issuer/, 'it tells of another issuer');
  t.equal(await who(await token()), '200 scraped', 'keys at hand still count');
});

t.test('JWT: an unreachable issuer gives 503, and is asked again after a while', async (t) => {
  const { token, who, issuer, clock, log } = await world(t);
  const { handler } = issuer;
  issuer.handler = (_, response) => response.writeHead(500).end();
  t.match(await who(await token()), /^503 Service Unavailable: cannot get the keys of the issuer of the bearer token$/);
  t.match(await who(await token()), /^503/);
  t.equal(issuer.seen.length, 1);
  t.equal(log.lines.filter((line) => line.startsWith('error cannot get the keys of an issuer')).length, 1);
  issuer.handler = handler;
  await clock.advance(10_000);
  t.equal(await who(await token()), '200 scraped');
});

t.test('JWT: CEL expressions map claims to the user, and validation rules refuse with their messages', async (t) => {
  const { token, who, write, look, received, log } = await world(t, {
    claimValidationRules: [
      { claim: 'hd', requiredValue: 'example.com' },
      { expression: 'claims.exp - claims.iat <= 86400', message: 'lives too long' },
    ],
    claimMappings: {
      username: { expression: "claims.email_verified ? claims.email : ''" },
      groups: { expression: "claims.roles.split(',')" },
      uid: { claim: 'sub' },
      extra: [{ key: 'example.com/tenant', valueExpression: "claims.?tenant.orValue('')" }],
    },
    userValidationRules: [
      { expression: "!user.username.startsWith('system:')", message: 'is reserved' },
      { expression: "'ops' in user.groups" },
    ],
  });
  const claims = { hd: 'example.com', email: 'a@example.com', email_verified: true, roles: 'dev,ops' };
  t.equal(await who(await token(claims)), '200 scraped');
  const cases: readonly (readonly [claims: object, why: RegExp])[] = [
    [{ hd: 'other' }, /claim hd does not have the required value/],
    [{ iat: 1 }, /lives too long/],
    [{ email_verified: false }, /have no user name/],
    [{ email: 'system:masters' }, /is reserved/],
    [{ roles: 'dev' }, /does not hold: 'ops' in user.groups/],
    [{ roles: undefined }, /groups: No such key: roles/],
    [{ email: 'constructor', roles: 7 }, /groups: /],
  ];
  for (const [changes, why] of cases)
    t.match(await who(await token({ ...claims, ...changes })), new RegExp(`^401 .*${why.source}`));
  write({ claimMappings: { username: { claim: 'nickname' } } });
  await look();
  t.equal(await who(await token(claims)), '200 scraped', 'what cannot be used changes nothing');
  t.match(log.lines.at(-1), /--authentication-config|username.prefix: is missing/);
  write({ claimMappings: { username: { claim: 'nickname', prefix: '' } } });
  await look();
  t.same(
    received.filter((line) => line.startsWith('--')),
    ['--authentication-config refused', '--authentication-config applied'],
  );
  t.match(await who(await token(claims)), /^401/);
});

t.test('JWT: a user named by claim email is refused when the issuer has not verified the address', async (t) => {
  const { token, who } = await world(t, { claimMappings: { username: { claim: 'email', prefix: '' } } });
  const email = 'a@example.com';
  t.equal(await who(await token({ email, email_verified: true })), '200 scraped');
  t.equal(await who(await token({ email })), '200 scraped', 'an issuer that does not report it');
  for (const email_verified of [false, 'true', 0])
    t.match(await who(await token({ email, email_verified })), /^401 .*claim email_verified is not true/);
});

t.test('JWT: egressSelectorType of an issuer has no effect, which is logged', async (t) => {
  const way = { issuer: { url: 'https://issuer.example', audiences: ['a'], egressSelectorType: 'controlplane' } };
  const { log } = await world(t, way);
  t.same(
    log.lines.filter((line) => line.startsWith('warn')),
    [
      'warn --authentication-config: AuthenticationConfiguration.jwt[0].issuer.egressSelectorType: has no effect, issuers are asked without a proxy',
    ],
  );
});

t.test('anonymous requests are admitted by path, as the authentication file says', async (t) => {
  const { ask } = await world(t, {}, [], { anonymous: { enabled: true, conditions: [{ path: '/healthz' }] } });
  const status = async (path: string): Promise<number> => (await ask(path, ...TRUSTED)).status;
  t.same(
    [await status('/healthz'), await status('/healthz?a'), await status('/metrics'), await status('/healthz/ping')],
    [200, 200, 401, 401],
  );
  const none = await world(t, {}, [], { anonymous: { enabled: false } });
  t.match(await none.ask('/metrics', ...TRUSTED), { status: 401 });
});

t.test('every invalid authentication file is refused with the name of the field', async (t) => {
  const file = join(folder(t), 'authentication.yaml');
  const problem = async (content: object, ...flags: readonly string[]): Promise<string> => {
    writeFileSync(file, JSON.stringify({ ...HEAD, ...content }));
    const opened = await open([...TLS, `--authentication-config=${file}`, ...flags], {});
    if ('problem' in opened) return opened.problem;
    await opened.close();
    return 'none';
  };
  const issuer = { url: 'https://issuer.example', audiences: ['a'] };
  const username = { claim: 'sub', prefix: '' };
  const fine = { issuer, claimMappings: { username } };
  const jwt = (changes: object): object => ({ jwt: [{ ...fine, ...changes }] });
  for (const version of ['v1', 'v1beta1', 'v1alpha1'])
    t.equal(await problem({ ...jwt({}), apiVersion: `apiserver.config.k8s.io/${version}` }), 'none');
  const cases: readonly (readonly [content: object, field: string])[] = [
    [{ apiVersion: 'v1' }, '.apiVersion: '],
    [{ kind: 'Config' }, '.kind: '],
    [{ ...jwt({}), more: 1 }, '.more: is an unknown field'],
    [jwt({ issuer: { ...issuer, url: 'http://a' } }), '.jwt[0].issuer.url: '],
    [jwt({ issuer: { ...issuer, audiences: [] } }), '.jwt[0].issuer.audiences: '],
    [jwt({ issuer: { ...issuer, audiences: ['a', 'b'] } }), '.jwt[0].issuer.audienceMatchPolicy: '],
    [jwt({ issuer: { ...issuer, discoveryURL: 'https://issuer.example/' } }), '.jwt[0].issuer.discoveryURL: '],
    [jwt({ issuer: { ...issuer, certificateAuthority: 'x' } }), '.jwt[0].issuer.certificateAuthority: '],
    [{ jwt: [fine, fine] }, '.jwt[1].issuer.url: "https://issuer.example/": is given twice'],
    [jwt({ claimMappings: {} }), '.jwt[0].claimMappings.username: is missing'],
    [
      jwt({ claimMappings: { username: { claim: 'sub' } } }),
      '.jwt[0].claimMappings.username.prefix: is missing beside claim',
    ],
    [
      jwt({ claimMappings: { username: { claim: 'a', expression: 'b' } } }),
      '.jwt[0].claimMappings.username.expression: "b": must not be given beside claim',
    ],
    [
      jwt({ claimMappings: { username: { expression: 'claims.email' } } }),
      '.jwt[0].claimMappings.username.expression: ',
    ],
    [jwt({ claimMappings: { username: { expression: '1 +' } } }), '.jwt[0].claimMappings.username.expression: '],
    [
      jwt({ claimMappings: { username, groups: { expression: 'other.x' } } }),
      '.jwt[0].claimMappings.groups.expression: ',
    ],
    [
      jwt({ claimMappings: { username, extra: [{ key: 'a', valueExpression: "'a'" }] } }),
      '.jwt[0].claimMappings.extra[0].key: ',
    ],
    [jwt({ claimValidationRules: [{ expression: '1' }] }), '.jwt[0].claimValidationRules[0].expression: '],
    [
      jwt({ claimValidationRules: [{ claim: 'a', message: 'b' }] }),
      '.jwt[0].claimValidationRules[0].message: "b": needs expression beside it',
    ],
    [jwt({ userValidationRules: [{ expression: 'claims.a' }] }), '.jwt[0].userValidationRules[0].expression: '],
    [{ anonymous: { enabled: false, conditions: [{ path: '/a' }] } }, '.anonymous.conditions: has no effect'],
    ...['', 'x'].map(
      (prefix) =>
        [
          jwt({ claimMappings: { username: { expression: 'claims.sub', prefix } } }),
          '.jwt[0].claimMappings.username.prefix: ',
        ] as const,
    ),
    [
      jwt({ claimMappings: { username, groups: { expression: '[1, 2]' } } }),
      '.jwt[0].claimMappings.groups.expression: "[1, 2]": evaluates to list<int>',
    ],
    [
      jwt({ claimMappings: { username, extra: [{ key: 'example.com/a', valueExpression: '[1]' }] } }),
      '.jwt[0].claimMappings.extra[0].valueExpression: "[1]": evaluates to list<int>',
    ],
    ...[
      'claims .email',
      "claims.email + '-email_verified'",
      'claims["email"]',
      "claims.?email.orValue('')",
      'claims[claims.known ? "email" : "sub"]',
      'has(claims.email_verified) ? claims.email : claims.sub',
    ].map(
      (expression) =>
        [
          jwt({
            claimMappings: { username: { expression } },
            claimValidationRules: [{ expression: 'claims.my_email_verified_by == "x" && "email_verified" in claims' }],
          }),
          '.jwt[0].claimMappings.username.expression: ',
        ] as const,
    ),
  ];
  for (const [content, field] of cases) {
    const text = await problem(content);
    t.ok(
      text.startsWith('--authentication-config: ') && text.includes(`AuthenticationConfiguration${field}`),
      `${field} ${text}`,
    );
  }
  for (const right of [
    jwt({ claimMappings: { username, groups: { expression: '["a", claims.b]' } } }),
    jwt({ claimMappings: { username, groups: { expression: 'claims.groups' } } }),
    jwt({ claimMappings: { username: { expression: '"email of " + claims.email_of + claims.sub.email' } } }),
    jwt({ claimMappings: { username: { expression: 'claims["email_verified"] ? claims .email : ""' } } }),
    jwt({
      claimMappings: { username: { expression: 'claims.email' } },
      claimValidationRules: [{ expression: 'claims.?email_verified.orValue(false) == true' }],
    }),
  ])
    t.equal(await problem(right), 'none', JSON.stringify(right));
  t.match(
    await problem({ anonymous: { enabled: true } }, '--anonymous-auth=true'),
    '.anonymous: Forbidden: --anonymous-auth is given',
  );
});
