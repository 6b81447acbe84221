// What stands in front of the pages on the metrics address: flags, and what is wrong with them.
import t from 'tap';
import { failure, loaded } from './load-from.js';

const PAIR = ['--tls-cert-file=/c', '--tls-private-key-file=/k'];

t.test('flags of the metrics address that enable TLS', (t) => {
  t.equal(loaded([]).config.secured, null);
  t.same(loaded(['--metrics-tls']).config.secured?.tls, {
    pair: null,
    directory: '/var/lib/pointsman/pki',
    named: [],
    ciphers: null,
    minVersion: 'TLSv1.2',
  });
  t.match(loaded(PAIR).config.secured?.tls.pair, { certificateFile: '/c', keyFile: '/k' });
  t.match(loaded(['--tls-sni-cert-key=/c,/k:A.example,*.b.example']).config.secured?.tls.named, [
    { certificateFile: '/c', keyFile: '/k', names: ['a.example', '*.b.example'] },
  ]);
  const suites = '--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256';
  t.match(loaded(['--metrics-tls', suites, '--tls-min-version=VersionTLS13']).config.secured?.tls, {
    ciphers: 'TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256',
    minVersion: 'TLSv1.3',
  });
  t.same(loaded(['--proxy-mode=nftables', '--cert-dir=/d', '--tls-min-version=VersionTLS13']).warnings, [
    '--tls-min-version: has no effect without --metrics-tls',
    '--cert-dir: has no effect without --metrics-tls, --bootstrap-kubeconfig or --rotate-certificates',
  ]);
  t.end();
});

t.test('flags for authentication and authorization of the metrics address', (t) => {
  const secured = (...flags: readonly string[]): unknown =>
    loaded(['--master=https://api.example', '--metrics-tls', ...flags]).config.secured;
  t.match(secured(), {
    authentication: { clientCaFile: null, tokenTtl: null, anonymous: null, file: null },
    authorization: { mode: 'AlwaysAllow', authorizedTtl: 300_000, unauthorizedTtl: 30_000 },
  });
  t.match(secured('--client-ca-file=/ca', '--anonymous-auth=false', '--authentication-token-webhook'), {
    authentication: { clientCaFile: '/ca', tokenTtl: 120_000, anonymous: false },
  });
  const ttls = ['authorized', 'unauthorized'].map((kind) => `--authorization-webhook-cache-${kind}-ttl=1s`);
  t.match(secured('--authorization-mode=Webhook', ...ttls), {
    authorization: { mode: 'Webhook', authorizedTtl: 1000, unauthorizedTtl: 1000 },
  });
  const unused = ['--authentication-token-webhook-cache-ttl=1s', ...ttls];
  t.same(loaded(['--proxy-mode=nftables', '--metrics-tls', ...unused]).warnings, [
    '--authentication-token-webhook-cache-ttl: has no effect without --authentication-token-webhook',
    '--authorization-webhook-cache-authorized-ttl: has no effect without --authorization-mode=Webhook',
    '--authorization-webhook-cache-unauthorized-ttl: has no effect without --authorization-mode=Webhook',
  ]);
  t.end();
});

t.test('flags of the audit log are read', (t) => {
  const audit = (...flags: readonly string[]): unknown => loaded(['--metrics-tls', ...flags]).config.secured?.audit;
  const files = ['--audit-policy-file=/p', '--audit-log-path=/l'];
  t.equal(audit(), null);
  t.same(audit(...files), {
    policyFile: '/p',
    mode: 'batch',
    log: { path: '/l', maxBytes: 100 << 20, maxBackups: 0, maxAgeMs: 0 },
  });
  for (const mode of ['batch', 'blocking', 'blocking-strict'])
    t.match(audit(...files, `--audit-log-mode=${mode}`), { mode });
  const limits = ['--audit-log-maxsize=3000', '--audit-log-maxbackup=2', '--audit-log-maxage=30'];
  t.match(audit(...files, ...limits), {
    log: { maxBytes: 3000 * 2 ** 20, maxBackups: 2, maxAgeMs: 30 * 86_400_000 },
  });
  const warnings = (...flags: readonly string[]): readonly string[] =>
    loaded(['--proxy-mode=nftables', ...flags]).warnings;
  t.same(warnings('--metrics-tls', ...limits.slice(0, 1)), [
    '--audit-log-maxsize: has no effect without --audit-log-path',
  ]);
  t.same(warnings('--metrics-tls', '--audit-policy-file=/p', '--audit-log-path=-', '--audit-log-maxage=1'), [
    '--audit-log-maxage: has no effect on the standard output',
  ]);
  const mode = '--audit-log-mode=blocking';
  t.same(warnings('--metrics-tls', mode), ['--audit-log-mode: has no effect without --audit-log-path']);
  t.same(warnings(mode), ['--audit-log-mode: has no effect without --metrics-tls']);
  t.same(warnings('--audit-log-maxage=1'), ['--audit-log-maxage: has no effect without --metrics-tls']);
  t.end();
});

t.test('wrong flags of the metrics address are refused by name', (t) => {
  const cases: readonly (readonly [flags: readonly string[], problem: string])[] = [
    [['--authentication-config=/a'], '--authentication-config: Forbidden: needs --metrics-tls'],
    [['--metrics-tls', '--audit-policy-file=/p'], '--audit-log-path: Required value: beside --audit-policy-file'],
    [['--metrics-tls', '--audit-log-path=/l'], '--audit-policy-file: Required value: beside --audit-log-path'],
    [
      ['--metrics-tls', '--audit-log-mode=strict'],
      '--audit-log-mode: Invalid value: "strict": must be one of batch, blocking, blocking-strict',
    ],
    [['--metrics-tls', '--audit-log-format=legacy'], '--audit-log-format: Invalid value: "legacy": must be json'],
    [
      ['--metrics-tls', '--audit-log-maxage=-1'],
      '--audit-log-maxage: Invalid value: -1: must be greater than or equal to 0',
    ],
    [['--tls-cert-file=/c'], '--tls-private-key-file: Required value: beside --tls-cert-file'],
    [['--tls-private-key-file=/k'], '--tls-cert-file: Required value: beside --tls-private-key-file'],
    [
      [...PAIR, '--metrics-tls=false'],
      '--metrics-tls: Invalid value: false: a certificate is given, which is served over TLS',
    ],
    [['--client-ca-file=/ca'], '--client-ca-file: Forbidden: needs --metrics-tls'],
    [['--authorization-mode=Webhook'], '--authorization-mode: Forbidden: needs --metrics-tls'],
    [
      ['--metrics-tls', '--authentication-token-webhook'],
      '--authentication-token-webhook: Forbidden: there is no API server to ask, everything is read from --manifests',
    ],
    [
      ['--metrics-tls', '--authorization-mode=Webhook'],
      '--authorization-mode: Forbidden: there is no API server to ask, everything is read from --manifests',
    ],
    [
      ['--metrics-tls', '--authorization-mode=RBAC', '--master=https://api.example'],
      '--authorization-mode: Invalid value: "RBAC": must be one of AlwaysAllow, Webhook',
    ],
    [
      ['--metrics-tls', '--authorization-config=/a', '--authorization-mode=AlwaysAllow'],
      '--authorization-mode: Forbidden: beside --authorization-config',
    ],
    [['--authorization-config=/a'], '--authorization-config: Forbidden: needs --metrics-tls'],
    [
      ['--metrics-tls', '--anonymous-auth=false'],
      '--anonymous-auth: Invalid value: false: no client could authenticate without --client-ca-file, --authentication-token-webhook or --authentication-config',
    ],
    [
      ['--metrics-tls', '--authentication-token-webhook-cache-ttl=-1s'],
      '--authentication-token-webhook-cache-ttl: Invalid value: "-1s": must be greater than or equal to 0',
    ],
    [['--metrics-tls', '--cert-dir='], '--cert-dir: Required value: without --tls-cert-file'],
    [
      ['--metrics-tls', '--tls-cipher-suites=RC4'],
      '--tls-cipher-suites: Invalid value: "RC4": is no cipher suite that this program has',
    ],
    [
      ['--metrics-tls', '--tls-min-version=TLS1.2'],
      '--tls-min-version: Invalid value: "TLS1.2": must be one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13',
    ],
    ...['/c', '/c,', '/c,/k:', '/c,/k:a b', '/c,/k:*', '/c,/k,/d'].map(
      (value) =>
        [
          [`--tls-sni-cert-key=${value}`],
          `--tls-sni-cert-key: Invalid value: "${value}": must be 'certificate,key' or 'certificate,key:name,name'`,
        ] as const,
    ),
  ];
  for (const [flags, problem] of cases) t.same(failure(() => loaded(flags)).problems, [problem]);
  t.end();
});

t.test('client certificates by CertificateSigningRequest are configured by flags', (t) => {
  const flags = ['--kubeconfig=/k', '--bootstrap-kubeconfig=/b'];
  const of = (...more: readonly string[]): unknown => loaded([...more]).config.kubernetes?.clientCertificate;
  t.equal(of('--kubeconfig=/k'), null);
  t.same(of(...flags), {
    bootstrapKubeconfig: '/b',
    directory: '/var/lib/pointsman/pki',
    signerName: 'kubernetes.io/kube-apiserver-client',
    isRotated: false,
  });
  t.match(of('--kubeconfig=/k', '--rotate-certificates', '--cert-dir=/d', '--signer-name=example.org/nodes'), {
    bootstrapKubeconfig: null,
    directory: '/d',
    signerName: 'example.org/nodes',
    isRotated: true,
  });
  for (const [given, problem] of [
    [
      ['--master=https://a', '--bootstrap-kubeconfig=/b'],
      '--bootstrap-kubeconfig: Forbidden: needs --kubeconfig, or clientConnection.kubeconfig in --config',
    ],
    [
      ['--rotate-certificates'],
      '--rotate-certificates: Forbidden: needs --kubeconfig, or clientConnection.kubeconfig in --config',
    ],
    [[...flags, '--cert-dir='], '--cert-dir: Required value: with --bootstrap-kubeconfig'],
    [[...flags, '--signer-name=nobody'], '--signer-name: Invalid value: "nobody": must be \'domain/name\''],
  ] as const)
    t.same(failure(() => loaded(given)).problems, [problem], problem);
  t.match(loaded(['--proxy-mode=nftables', '--signer-name=a.b/c']).warnings, [
    '--signer-name: has no effect without --bootstrap-kubeconfig or --rotate-certificates',
  ]);
  t.end();
});
