import t from 'tap';
import { DEFAULT_TIMING } from '../../src/sources/manifests/timing.js';
import { failure, load, loaded } from './load-from.js';

t.test('secrets in --manifests and --master are never printed', (t) => {
  const secret = 'https://user:s3cret@h:1/x?token=s3cret#s3cret';
  const { config, flags } = load([
    '--mode=nftables',
    ...['https://h:1/x', secret, secret, 'HTTPS://other@H:443', 'dir/a@b:c'].flatMap((value) => ['--manifests', value]),
    '--master=user:s3cret@h',
  ]) as ReturnType<typeof loaded>;
  const names = ['https://h:1/x', 'https://h:1/x?…', 'https://h:1/x?… (2)', 'https://h/', 'dir/a@b:c'];
  t.same(
    config.manifests.map(({ name }) => name),
    names,
  );
  t.match(config.manifests[1], { type: 'url', url: secret });
  t.same(failure(() => load(['--manifests='])).problems, ['--manifests: Required value: must not be empty']);
  const shown = (name: string): string | undefined => flags.find((flag) => flag.name === name)?.value;
  t.equal(shown('manifests'), `[${names.join().replace(' (2)', '')}]`);
  t.equal(shown('master'), '[REDACTED]');
  t.notMatch(JSON.stringify(flags), 's3cret');

  const bad = [
    'http://u:s3cret@[bad',
    ' http://u:s3cret@h/',
    'ftp://u:s3cret@h/',
    'https:/u:s3cret@h/',
    'https://s3cret%ff@h/',
    'u:s3cret@h/x',
    '//u:s3cret@h/x',
  ];
  for (const value of bad) {
    const { message } = failure(() => load(['--manifests', value]));
    t.match(
      message,
      /^failed validate: --manifests: Invalid value: (must be a path or a URL|must be a URL with its scheme|user name or password)/,
    );
    t.notMatch(message, 's3cret');
  }
  const usage = [
    ['--manifest=https://u:s3cret@h/'],
    ['--manifests', 'a', 'https://u:s3cret@h/'],
    ['--manifests=https://h/', '--manifests-header', 'Authorization:', 'Bearer', 's3cret'],
  ];
  for (const argv of usage) t.notMatch(failure(() => load(argv)).message, 's3cret', argv.join(' '));
  t.match(failure(() => load(usage[1] ?? [])).message, '["https://h/"]');
  t.end();
});

t.test('--manifests-header applies to its own origin', (t) => {
  const headers = (...flags: string[]): unknown =>
    loaded(flags).config.manifests.flatMap((source) =>
      source.type === 'url' ? [source.headers.map(({ name, value }) => `${name}=${value}`)] : [],
    );
  t.same(
    headers(
      '--manifests=https://h/x',
      '--manifests=https://h:443/y',
      '--manifests-header=Authorization: Bearer a:b ',
      '--manifests-header',
      'X-Empty:',
      '--manifests-header=a:b,c:d, Accept: x, y;q=0.5,Date: Fri, 31 Jan 2025 12:00:00 GMT,Link: <a>,http://h',
    ),
    Array<unknown>(2).fill([
      'Authorization=Bearer a:b',
      'X-Empty=',
      'a=b',
      'c=d',
      'Accept=x, y;q=0.5',
      'Date=Fri, 31 Jan 2025 12:00:00 GMT',
      'Link=<a>,http://h',
    ]),
  );
  t.same(
    headers(
      '--manifests=https://h/x',
      '--manifests=https://h:8443/y',
      '--manifests-header=HTTPS://H:443/ A: b,c:d,https://h:8443 e:f,g:h',
      '--manifests-header=https://h:8443 A: 2',
    ),
    [
      ['A=b', 'c=d'],
      ['e=f', 'g=h', 'A=2'],
    ],
  );
  const malformed = ["--manifests-header: Invalid value: must be 'Name: value' or 'https://host:port Name: value'"];
  const bad = ['s3cret', ': s3cret', 'a b: s3cret', 'A: s3cret\r\nB: c', 'A: s3cret\n', ''];
  for (const header of [...bad, 'http://u:s3cret@h A: b', 'http://h/s3cret A: b']) {
    t.same(
      failure(() => loaded(['--manifests=http://h/', '--manifests-header', header])).problems,
      malformed,
      JSON.stringify(header),
    );
  }
  t.same(failure(() => loaded(['--manifests-header=A: b'])).problems, [
    '--manifests-header: Forbidden: only with a URL in --manifests',
  ]);
  t.end();
});

t.test('--manifests options for TLS belong to an origin', (t) => {
  const [one, other] = ['--manifests=https://h/x', '--manifests=http://127.0.0.1:80/'] as const;
  const file = { '/h': '# A: s3cret\n\nhttps://h A: s3cret\n' };
  const problems = (flags: readonly string[], files = file): readonly string[] =>
    failure(() => loaded([one, other, ...flags], files)).problems;
  const several = 'must begin with the origin it is for, as --manifests has several: https://h, http://127.0.0.1';
  const rows: [flags: string[], problem: string, files?: typeof file][] = [
    [['--manifests-header=A: s3cret'], `--manifests-header: Forbidden: ${several}`],
    [['--manifests-ca-file=/ca'], `--manifests-ca-file: Forbidden: ${several}`],
    [
      ['--manifests-header=https://h:1 A: s3cret'],
      '--manifests-header: Forbidden: no URL in --manifests has the origin https://h:1',
    ],
    [
      ['--manifests-ca-file=http://127.0.0.1 /ca'],
      '--manifests-ca-file: Forbidden: http://127.0.0.1 is not asked over TLS',
    ],
    [
      ['--manifests-cert-file=https://h /c'],
      '--manifests-cert-file, --manifests-key-file: Required value: https://h needs both or none',
    ],
    [
      ['--manifests-ca-file=https://h /c', '--manifests-ca-file=https://h /d'],
      '--manifests-ca-file: Forbidden: is given twice for the same origin',
    ],
    [['--manifests-ca-file='], "--manifests-ca-file: Invalid value: must be a path or 'https://host:port path'"],
    [
      ['--manifests-header-file=/none'],
      "--manifests-header-file: /none: cannot be read: ENOENT: no such file or directory, open '/none'",
    ],
    [
      ['--manifests-header-file=/h'],
      `--manifests-header-file: /h: line 2: Forbidden: ${several}`,
      { '/h': 'https://h A: s3cret\nA: s3cret' },
    ],
    [
      ['--manifests-header-file=/h'],
      "--manifests-header-file: /h: line 1: Invalid value: must be 'Name: value' or 'https://host:port Name: value'",
      { '/h': 's3cret' },
    ],
  ];
  for (const [flags, problem, files] of rows) t.same(problems(flags, files), [problem], flags.join(' '));
  const tls = ['ca', 'cert', 'key'].map((name) => `--manifests-${name}-file=/${name}`);
  const { config, flags } = loaded([one, '--manifests-header-file=/h', ...tls], file);
  t.match(config.manifests[1], {
    headers: [],
    headerFiles: ['/h'],
    isOnlyOrigin: true,
    authorityFile: '/ca',
    certificateFile: '/cert',
    keyFile: '/key',
  });
  t.notMatch(JSON.stringify(flags), 's3cret');
  t.end();
});

t.test('a credential sent without encryption is warned of', (t) => {
  const file = { '/h': 'X: s3cret' };
  const warned = (url: string, ...flags: string[]): boolean => {
    const { warnings } = loaded([`--manifests=${url}`, ...flags], file);
    t.notMatch(warnings.join(), 's3cret');
    return warnings.some((warning) => /^--manifests: \S+ is requested without encryption/.test(warning));
  };
  const header = '--manifests-header=A: s3cret';
  t.equal(warned('http://u:s3cret@h/'), true);
  t.equal(warned('http://192.0.2.1/', header), true);
  t.equal(warned('http://192.0.2.1/', '--manifests-header-file=/h'), true);
  t.equal(warned('http://192.0.2.1/'), false);
  t.equal(warned('https://u:s3cret@h/', header), false);
  for (const host of ['localhost', '127.9.9.9', '[::1]'])
    t.equal(warned(`http://u:s3cret@${host}/`, header), false, host);
  t.end();
});

t.test('--file-check-frequency and --http-check-frequency set how often manifests are read', (t) => {
  const { config } = loaded([]);
  t.equal(config.fileCheckFrequency, DEFAULT_TIMING.filePollMs);
  t.equal(config.httpCheckFrequency, DEFAULT_TIMING.urlPollMs);
  t.match(loaded(['--file-check-frequency=20s', '--http-check-frequency=1m']).config, {
    fileCheckFrequency: 20_000,
    httpCheckFrequency: 60_000,
  });
  for (const flag of ['--file-check-frequency', '--http-check-frequency'])
    for (const value of ['0s', '-1s'])
      t.same(failure(() => loaded([`${flag}=${value}`])).problems, [
        `${flag}: Invalid value: "${value}": must be greater than zero`,
      ]);
  t.end();
});
