// sbom.mjs PROJECT ROOT ARCH NODE: prints what the image in the folder ROOT is made of, as CycloneDX 1.6. That is the libraries in the bundle and in the addon,
// by PROJECT's package-lock.json, Node of the version NODE, and Debian's packages. The same image gives the same bytes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [, , project, root, arch, node] = process.argv;
const json = (path) => JSON.parse(readFileSync(join(project, path), 'utf8'));

/** Names of the packages that the program was bundled from, by its source maps, and of what the addon includes. */
function librariesOf(dist) {
  const names = new Set(['node-addon-api']);
  for (const file of readdirSync(dist).filter((name) => name.endsWith('.map'))) {
    for (const source of JSON.parse(readFileSync(join(dist, file), 'utf8')).sources) {
      // No package's name begins with a dot; a map that names what it was made from may.
      const [, name] =
        /(?:^|\/)(node_modules\/(?:@[^/]+\/)?[^/.@][^/]*(?:\/node_modules\/(?:@[^/]+\/)?[^/.@][^/]*)*)\//.exec(
          source,
        ) ?? [];
      if (name !== undefined) names.add(name.slice('node_modules/'.length));
    }
  }
  return [...names];
}

function npmComponent(path, { packages }) {
  const { version, license, integrity } = packages[`node_modules/${path}`];
  const name = path.replace(/^.*\/node_modules\//, '');
  const [group, short] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const [, sum] = /^sha512-(.+)$/.exec(integrity);
  return {
    type: 'library',
    'bom-ref': `pkg:npm/${name.replace('@', '%40')}@${version}`,
    group,
    name: short,
    version,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(sum, 'base64').toString('hex') }],
    licenses: [{ license: { id: license } }],
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  };
}

function debianComponent(text) {
  const field = (name) => new RegExp(`^${name}: (.+)$`, 'm').exec(text)[1];
  const [name, version] = [field('Package'), field('Version')];
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${field('Architecture')}`;
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

const { name, version, license } = json('package.json');
const lock = json('package-lock.json');
const debian = join(root, 'var/lib/dpkg/status.d');
const purl = `pkg:generic/node@${node}`;
const components = [
  { type: 'platform', 'bom-ref': purl, name: 'node', version: node, purl },
  ...librariesOf(join(project, 'dist')).map((path) => npmComponent(path, lock)),
  ...readdirSync(debian).map((file) => debianComponent(readFileSync(join(debian, file), 'utf8'))),
].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
const image = `${name}@${version}`;
const bom = {
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    component: {
      type: 'container',
      'bom-ref': image,
      name,
      version,
      licenses: [{ license: { id: license } }],
      properties: [{ name: 'architecture', value: arch }],
    },
  },
  components,
  dependencies: [{ ref: image, dependsOn: components.map((each) => each['bom-ref']) }],
};
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
