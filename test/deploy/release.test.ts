// needs: openssl
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';

interface Entry {
  readonly name: string;
  readonly mode: number;
  readonly content?: Buffer;
  readonly target?: string;
}
type Json = Readonly<Record<string, unknown>>;
/** What krew reads of a plugin's manifest, of its API v1alpha2. */
interface KrewManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly homepage: string;
    readonly shortDescription: string;
    readonly platforms: readonly {
      readonly selector: { readonly matchExpressions: readonly { key: string; operator: string; values: string[] }[] };
      readonly uri: string;
      readonly sha256: string;
      readonly files: readonly { readonly from: string; readonly to: string }[];
      readonly bin: string;
    }[];
  };
}
interface Release {
  readonly tar: (entries: readonly Entry[], seconds: number) => Buffer;
  readonly entriesOf: (folder: string) => Entry[];
  readonly startOf: (dockerfile: string) => Json;
  readonly imageLayout: (
    images: readonly Json[],
    about: Json,
  ) => { readonly entries: Entry[]; readonly digest: string };
  readonly krewManifest: (plugin: Readonly<Record<string, string>>) => KrewManifest;
  readonly releaseNotes: (changelog: string, version: string) => string;
  readonly spdx: (bom: Json, created: string) => Json;
  readonly checksums: (files: ReadonlyMap<string, Buffer>) => string;
  readonly provenance: (files: ReadonlyMap<string, Buffer>, about: Json) => Json;
  readonly signRelease: (folder: string, key: string, confirmed: string) => void;
  readonly preAuthentication: (type: string, payload: Buffer) => Buffer;
}

const modules = await Promise.all(
  ['archive', 'oci', 'documents', 'sign'].map(
    async (name) => (await import(pathToFileURL(projectFile(`deploy/release/${name}.mjs`)).href)) as Partial<Release>,
  ),
);
const release = Object.assign({}, ...modules) as Release;
const SECONDS = 1_700_000_000;
const digest = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex');

t.test('release archives are readable by tar, and identical for the same files', (t) => {
  const folder = t.testdir({ from: { [`${'long-'.repeat(30)}name`]: 'text', program: '#!', empty: '' } });
  const from = join(folder, 'from');
  mkdirSync(join(from, 'tmp'), { mode: 0o700 });
  symlinkSync('program', join(from, 'link'));
  symlinkSync(`/${'far/'.repeat(40)}away`, join(from, 'far'));
  execFileSync('chmod', ['777', join(from, 'program')]);
  const made = release.tar(release.entriesOf(from), SECONDS);
  execFileSync('chmod', ['700', join(from, 'program')]);
  execFileSync('touch', [join(from, 'program')]);
  t.ok(made.equals(release.tar(release.entriesOf(from).reverse(), SECONDS)), 'neither order, time nor umask count');
  const listed = execFileSync('tar', ['-tv', '--numeric-owner'], {
    input: made,
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC' },
  });
  t.match(listed, /^-rwxr-xr-x 0\/0 +2 2023-11-14 22:13 program$/m);
  t.match(listed, /^drwxr-xr-x 0\/0 +0 2023-11-14 22:13 tmp\/$/m);
  const to = join(folder, 'to');
  mkdirSync(to);
  execFileSync('tar', ['-x', '-C', to], { input: made });
  t.equal(spawnSync('diff', ['-r', '--no-dereference', from, to]).status, 0, 'the files come out as they were');
  t.end();
});

t.test('image layout: each blob has its digest, each image its start command, the index both architectures', (t) => {
  const images = ['amd64', 'arm64'].map((arch) => ({ arch, layer: release.tar([], SECONDS + arch.length) }));
  const start = release.startOf(projectFile('Dockerfile'));
  t.same(start, { Env: ['PATH=/usr/local/bin:/usr/sbin:/usr/bin'], Entrypoint: ['pointsman'] });
  const about = { created: '2023-11-14T22:13:20Z', start, labels: { a: 'b' }, reference: 'r.example/p:1', tag: '1' };
  const { entries, digest: index } = release.imageLayout(images, about);
  const files = new Map(entries.map(({ name, content }) => [name, content ?? Buffer.alloc(0)]));
  for (const [name, content] of files) {
    const [, sum] = /^blobs\/sha256\/(.+)$/.exec(name) ?? [];
    if (sum !== undefined) t.equal(digest(content), sum);
  }
  interface Descriptor {
    readonly digest: string;
    readonly size: number;
    readonly platform?: Json;
    readonly annotations?: Json;
  }
  interface Manifest {
    readonly manifests: readonly Descriptor[];
    readonly config: Descriptor;
    readonly layers: readonly Descriptor[];
  }
  const parse = (name: string): unknown => JSON.parse(files.get(name)?.toString() ?? 'null');
  const blob = ({ digest, size }: Pick<Descriptor, 'digest' | 'size'>): unknown => {
    const name = `blobs/${digest.replace(':', '/')}`;
    t.equal(files.get(name)?.length, size);
    return parse(name);
  };
  t.match(parse('oci-layout'), { imageLayoutVersion: '1.0.0' });
  const [top, ...more] = (parse('index.json') as Manifest).manifests;
  t.same(more, []);
  t.match(top, { digest: index, annotations: { 'org.opencontainers.image.ref.name': '1' } });
  const inner = blob(top ?? { digest: '', size: 0 }) as Manifest;
  t.same(
    inner.manifests.map(({ platform }) => platform),
    ['amd64', 'arm64'].map((architecture) => ({ architecture, os: 'linux' })),
  );
  for (const [i, each] of inner.manifests.entries()) {
    const { config, layers } = blob(each) as Manifest;
    const layer = `sha256:${digest(images[i]?.layer ?? '')}`;
    t.equal(layers[0]?.digest, layer);
    t.match(blob(config), { config: { ...start, Labels: { a: 'b' } }, rootfs: { diff_ids: [layer] } });
  }
  t.end();
});

t.test('release notes are the section of the version in the changelog', (t) => {
  const changelog = '# Changelog\n\n## 1.1.0 - unreleased\n\n### Added\n\n- new\n\n## 1.0.0 - 2026-01-01\n\n- old\n';
  t.equal(release.releaseNotes(changelog, '1.1.0'), '### Added\n\n- new\n');
  t.equal(release.releaseNotes(changelog, '1.0.0'), '- old\n');
  t.throws(() => release.releaseNotes(changelog, '1.1'), /no section 1\.1/);
  t.ok(release.releaseNotes(readFileSync(projectFile('CHANGELOG.md'), 'utf8'), '0.1.0').length > 1000);
  t.end();
});

t.test('the krew manifest has the fields that krew checks, and installs the command from the npm package', (t) => {
  const sum = 'a'.repeat(64);
  const plugin = {
    version: '1.1.0',
    description: 'd',
    archive: 'npm/a.tgz',
    digest: sum,
    url: 'https://example.org/1',
  };
  const { apiVersion, kind, metadata, spec } = release.krewManifest(plugin);
  t.equal(spec.homepage, plugin.url, 'by default that of the release');
  const homepage = 'https://example.org/';
  t.equal(release.krewManifest({ ...plugin, homepage }).spec.homepage, homepage);
  t.same([apiVersion, kind, metadata.name], ['krew.googlecontainertools.github.com/v1alpha2', 'Plugin', 'pointsman']);
  t.match(spec.version, /^v\d+\.\d+\.\d+$/);
  t.match(spec.shortDescription, /^[^\r\n]{1,50}$/);
  const fields = ['caveats', 'description', 'homepage', 'platforms', 'shortDescription', 'version'];
  t.same(
    Object.keys(spec).filter((field) => !fields.includes(field)),
    [],
  );
  const args = ['pack', '--dry-run', '--ignore-scripts', '--json'];
  const [packed] = JSON.parse(execFileSync('npm', args, { cwd: projectFile('.'), encoding: 'utf8' })) as [
    { readonly files: readonly { readonly path: string; readonly mode: number }[] },
  ];
  t.equal(spec.platforms.length, 1);
  for (const { selector, uri, sha256, files, bin, ...others } of spec.platforms) {
    t.same(others, {});
    t.same([uri, sha256], ['https://example.org/1/npm/a.tgz', sum]);
    for (const { key, operator, values } of selector.matchExpressions) {
      t.ok(['os', 'arch'].includes(key), key);
      t.equal(operator, 'In');
      t.same(values, ['linux', 'darwin']);
    }
    // Of what a wildcard fits, each file and folder is moved into the folder `to`. npm packs all below `package`.
    const placed = files.flatMap(({ from, to }) => {
      const folder = from.replace(/\*$/, '');
      return packed.files
        .filter(({ path }) => `package/${path}`.startsWith(folder))
        .map(({ path, mode }) => ({ path: `${to}/${`package/${path}`.slice(folder.length)}`, mode }));
    });
    const command = placed.find(({ path }) => path === bin);
    t.ok(command && (command.mode & 0o111) === 0o111, `${bin} is there and may be run`);
    // It is the only command of the installed folder that runs: no package.json stands above it, and no addon.
    const folder = t.testdir();
    for (const { path } of placed) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      copyFileSync(projectFile(path), join(folder, path));
    }
    symlinkSync(bin, join(folder, 'kubectl-pointsman'));
    const { stdout, stderr, status } = spawnSync(join(folder, 'kubectl-pointsman'), ['help', 'nodes'], {
      encoding: 'utf8',
    });
    t.same([stderr, status], ['', 0]);
    t.match(stdout, /^Usage: pointsman nodes /);
  }
  t.end();
});

t.test('the SPDX document has the components of the CycloneDX document', (t) => {
  const part = { name: 'libc6', version: '2.36', purl: 'pkg:deb/debian/libc6@2.36?arch=amd64' };
  const library = {
    group: '@a',
    name: 'b',
    version: '1',
    purl: 'pkg:npm/%40a/b@1',
    licenses: [{ license: { id: 'MIT' } }],
  };
  const component = { name: 'pointsman', version: '1.0.0', properties: [{ name: 'architecture', value: 'amd64' }] };
  const made = release.spdx({ metadata: { component }, components: [part, library] }, '2026-01-31T12:00:00Z');
  t.match(made, {
    spdxVersion: 'SPDX-2.3',
    name: 'pointsman-1.0.0-amd64',
    packages: [
      { name: 'pointsman' },
      { name: 'libc6', versionInfo: '2.36', externalRefs: [{ referenceLocator: part.purl }] },
      { name: '@a/b', licenseDeclared: 'MIT' },
    ],
  });
  const ids = (made['packages'] as readonly { readonly SPDXID: string }[]).map(({ SPDXID }) => SPDXID);
  t.equal(new Set(ids).size, 3);
  for (const id of ids) t.match(id, /^SPDXRef-[A-Za-z0-9.-]+$/);
  t.end();
});

t.test('checksums, provenance and signatures verify the released files, and no others', (t) => {
  const folder = t.testdir({});
  const files = new Map([['a/file', Buffer.from('content')]]);
  const about = { builder: 'urn:b', commit: 'c', version: '1', tools: {}, parameters: {}, dependencies: [] };
  const statement = release.provenance(files, about);
  t.match(statement, {
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    subject: [{ name: 'a/file', digest: { sha256: digest('content') } }],
    predicate: { buildDefinition: { externalParameters: { commit: 'c' } }, runDetails: { builder: { id: 'urn:b' } } },
  });
  files.set('provenance.json', Buffer.from(JSON.stringify(statement)));
  files.set(
    'image.json',
    Buffer.from(JSON.stringify({ repository: 'r.example/p', digest: `sha256:${'1'.repeat(64)}` })),
  );
  files.set('SHA256SUMS', Buffer.from(release.checksums(files)));
  mkdirSync(join(folder, 'a'));
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  t.equal(spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder }).status, 0);

  const openssl = (...words: readonly string[]): number | null => spawnSync('openssl', words, { cwd: folder }).status;
  t.equal(openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', 'key.pem'), 0);
  const keys = mkdtempSync(join(tmpdir(), 'keys-'));
  t.teardown(() => {
    rmSync(keys, { recursive: true });
  });
  renameSync(join(folder, 'key.pem'), join(keys, 'key.pem'));
  const confirmed = join(keys, 'SHA256SUMS');
  copyFileSync(join(folder, 'SHA256SUMS'), confirmed);
  const sign = (key = 'key.pem'): void => {
    release.signRelease(folder, join(keys, key), confirmed);
  };
  for (const [file, content, problem] of [
    [join(folder, 'a/file'), 'changed', /^a\/file: has another checksum$/],
    [join(folder, 'a/more'), 'x', /^a\/more: is not in SHA256SUMS$/],
    [confirmed, 'x', /the other build has other checksums$/],
  ] as const) {
    const before = existsSync(file) ? readFileSync(file) : null;
    writeFileSync(file, content);
    t.throws(sign, problem);
    t.notOk(existsSync(join(folder, 'SHA256SUMS.sig')), 'nothing is signed');
    if (before === null) rmSync(file);
    else writeFileSync(file, before);
  }
  sign();
  const verified = (content: Buffer | string, signature: string): boolean => {
    const [signed, given] = [join(keys, 'content'), join(keys, 'signature')];
    writeFileSync(signed, content);
    writeFileSync(given, Buffer.from(signature, 'base64'));
    return openssl('dgst', '-sha256', '-verify', 'signer.pem', '-signature', given, signed) === 0;
  };
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  t.ok(verified(read('SHA256SUMS'), read('SHA256SUMS.sig')));
  t.notOk(verified(`${read('SHA256SUMS')} `, read('SHA256SUMS.sig')), 'other bytes have another signature');
  const envelope = JSON.parse(read('provenance.dsse.json')) as {
    readonly payload: string;
    readonly payloadType: string;
    readonly signatures: readonly { readonly sig: string }[];
  };
  const payload = Buffer.from(envelope.payload, 'base64');
  t.equal(payload.toString(), read('provenance.json'));
  t.equal(release.preAuthentication('t', Buffer.from('ab')).toString(), 'DSSEv1 1 t 2 ab');
  t.ok(verified(release.preAuthentication(envelope.payloadType, payload), envelope.signatures[0]?.sig ?? ''));

  const unpacked = join(keys, 'signature-layout');
  mkdirSync(unpacked);
  execFileSync('tar', ['-xf', join(folder, 'image-signature.tar'), '-C', unpacked]);
  const layout = (name: string): string => readFileSync(join(unpacked, name), 'utf8');
  const [{ digest: manifest, annotations }] = (
    JSON.parse(layout('index.json')) as { manifests: [{ digest: string; annotations: Json }] }
  ).manifests;
  t.equal(annotations['org.opencontainers.image.ref.name'], `sha256-${'1'.repeat(64)}.sig`);
  const blob = (name: string): string => layout(`blobs/${name.replace(':', '/')}`);
  const [layer] = (JSON.parse(blob(manifest)) as { layers: [{ digest: string; annotations: Record<string, string> }] })
    .layers;
  t.ok(verified(blob(layer.digest), layer.annotations['dev.cosignproject.cosign/signature'] ?? ''));
  t.match(JSON.parse(blob(layer.digest)), {
    critical: {
      identity: { 'docker-reference': 'r.example/p' },
      image: { 'docker-manifest-digest': `sha256:${'1'.repeat(64)}` },
    },
  });

  t.equal(openssl('genrsa', '-out', join(keys, 'rsa.pem'), '2048'), 0);
  t.throws(() => {
    sign('rsa.pem');
  }, /not an ECDSA key on P-256/);
  t.end();
});

t.test('the workflow of a release takes the V8 code of the releaser, and no container without a digest', (t) => {
  const workflow = readFileSync(projectFile('.github/workflows/release.yml'), 'utf8');
  const makes = [...workflow.matchAll(/release\.sh make .*/g)];
  t.equal(makes.length, 2);
  for (const [make] of makes) t.match(make, / --v8-cache v8-cache\.tar\.gz$/);
  const [, check = ''] = /^ +- run: (grep .*)$/m.exec(workflow) ?? [];
  const folder = t.testdir({ '.github': { workflows: {} } });
  const isTaken = (container: string): boolean => {
    writeFileSync(join(folder, '.github/workflows/release.yml'), `    container: ${container}\n`);
    return spawnSync('sh', ['-c', check], { cwd: folder }).status === 0;
  };
  t.same([isTaken('node:24'), isTaken(`node:24@sha256:${'1'.repeat(64)}`)], [false, true]);
  const [, container = ''] = /^ {4}container: (.*)$/m.exec(workflow) ?? [];
  t.ok(isTaken(container), container);
  t.end();
});

t.test('GitHub workflows pin actions by full commits', (t) => {
  const folder = projectFile('.github/workflows');
  for (const name of readdirSync(folder)) {
    const uses = [...readFileSync(join(folder, name), 'utf8').matchAll(/\buses: *(\S+)/g)].map(([, each = '']) => each);
    t.ok(uses.length > 0, name);
    for (const each of uses) t.match(each, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
  }
  t.end();
});
