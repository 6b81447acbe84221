// main.mjs make FOLDER [options], sign FOLDER --key FILE --confirmed FILE, pins: the commands of release.sh that make a release. docs/develop/release.md says what is in one.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { dump } from 'js-yaml';
import { debianPins, PINS_FILE, readPins } from '../system.mjs';
import { entriesOf, gzip, sha256, tar } from './archive.mjs';
import { Build } from './build.mjs';
import { checksums, krewManifest, pinnedDependencies, provenance, releaseNotes, spdx } from './documents.mjs';
import { imageLayout, startOf } from './oci.mjs';
import { signRelease } from './sign.mjs';

const OPTIONS = {
  arch: { type: 'string', default: 'amd64,arm64' },
  repository: { type: 'string', default: 'pointsman' },
  builder: { type: 'string', default: 'urn:pointsman:release.sh' },
  commit: { type: 'string' },
  url: { type: 'string' },
  homepage: { type: 'string' },
  'v8-cache': { type: 'string' },
};

const git = (...words) => execFileSync('git', words, { encoding: 'utf8' }).trim();
const json = (value) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

/** Everything in a release but checksums and provenance, by names, and the image's digest. */
async function contents(build, { architectures, seconds, repository, commit, compiled, url, homepage }) {
  const read = (path) => readFileSync(join(build.project, path));
  const { name, version, description, license } = JSON.parse(read('package.json'));
  const created = new Date(seconds * 1000).toISOString().replace('.000', '');
  build.compile(architectures);
  if (compiled !== undefined) build.useCompiled(compiled);
  const files = new Map();
  const archive = (path, entries) => files.set(path, gzip(tar(entries, seconds)));

  const images = [];
  for (const arch of architectures) {
    const { folder, bom } = build.root(arch);
    images.push({ arch, layer: tar(entriesOf(folder), seconds) });
    files.set(`sbom/${name}-${version}-${arch}.cdx.json`, bom);
    files.set(`sbom/${name}-${version}-${arch}.spdx.json`, json(spdx(JSON.parse(bom), created)));
  }
  const reference = `${repository}:${version}`;
  const labels = {
    'org.opencontainers.image.title': name,
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commit,
    'org.opencontainers.image.created': created,
  };
  const about = { created, start: startOf(join(build.project, 'Dockerfile')), labels, reference, tag: version };
  const image = imageLayout(images, about);
  files.set(`${name}-${version}-image.tar`, tar(image.entries, seconds));
  files.set('image.json', json({ repository, tag: version, digest: image.digest }));

  archive('v8-cache.tar.gz', build.compiled());
  const archived = `npm/${name}-${version}.tgz`;
  files.set(archived, gzip(build.npmPackage()));
  if (url !== undefined) {
    const digest = sha256(files.get(archived));
    const plugin = { version, description, archive: archived, digest, url, homepage };
    files.set('krew/pointsman.yaml', Buffer.from(dump(krewManifest(plugin), { lineWidth: -1 })));
  }
  const chart = join(build.project, 'deploy/chart');
  if (existsSync(chart)) archive(`chart/${name}-${version}.tgz`, entriesOf(chart, `${name}/`));
  for (const [path, objects] of await build.manifests()) {
    const texts = objects.map((object) => dump(object, { lineWidth: -1, noRefs: true }));
    const named = texts.join('---\n').replaceAll(/(image: )pointsman:\S+/g, `$1${reference}@${image.digest}`);
    files.set(`manifests/${path}.yaml`, Buffer.from(named));
  }
  files.set('NOTES.md', Buffer.from(releaseNotes(read('CHANGELOG.md').toString(), version)));
  return { files: new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1))), version };
}

/** Makes a release of a commit in a folder that is not there yet. */
async function make(folder, values) {
  if (existsSync(folder)) throw new Error(`${folder} is there already`);
  if (values.commit === undefined && git('status', '--porcelain', '--untracked-files=no') !== '')
    throw new Error('the checkout has changes: commit them, or name the --commit to release');
  const { release } = readPins().debian;
  if (!readFileSync('/etc/os-release', 'utf8').includes(`VERSION_CODENAME=${release}\n`))
    throw new Error(`a release is made on Debian ${release}, whose libc the addon is linked with`);
  process.env.POINTSMAN_RELEASE_CACHE ??= join(homedir(), '.cache/pointsman-release');
  const commit = git('rev-parse', `${values.commit ?? 'HEAD'}^{commit}`);
  const seconds = Number(git('log', '-1', '--format=%ct', commit));
  const architectures = values.arch.split(',');
  await Build.within(commit, seconds, async (build) => {
    const { repository, builder, url, homepage } = values;
    const options = { architectures, seconds, repository, commit, compiled: values['v8-cache'], url, homepage };
    const { files, version } = await contents(build, options);
    const statement = provenance(files, {
      builder,
      commit,
      version,
      tools: build.tools(architectures),
      parameters: { repository, architectures },
      dependencies: pinnedDependencies(readPins(), architectures),
    });
    files.set('provenance.json', json(statement));
    files.set('SHA256SUMS', Buffer.from(checksums(files)));
    for (const [name, content] of files) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), content);
    }
  });
}

/** Has the next images made from Debian's packages of today. Node's version and digests are changed by hand, with the Dockerfile's. */
function renewPins() {
  const pins = readPins();
  for (const arch of ['amd64', 'arm64']) pins.debian[arch] = debianPins(arch);
  pins.debian.snapshot = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  writeFileSync(PINS_FILE, `${JSON.stringify(pins, null, 2)}\n`);
}

const COMMANDS = {
  make,
  sign: (folder, { key, confirmed }) => {
    signRelease(folder, key, confirmed);
  },
  pins: renewPins,
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { ...OPTIONS, key: { type: 'string' }, confirmed: { type: 'string' } };
  const { positionals, values } = parseArgs({ options, allowPositionals: true });
  const [command, ...words] = positionals;
  const wanted = command === 'pins' ? 0 : 1;
  if (
    !Object.hasOwn(COMMANDS, command ?? '') ||
    words.length !== wanted ||
    ['key', 'confirmed'].some((name) => (command === 'sign') !== name in values)
  )
    throw new Error('wants "make FOLDER", "sign FOLDER --key FILE --confirmed FILE" or "pins"');
  await COMMANDS[command](...words, values);
}
