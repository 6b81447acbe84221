// What a release says of itself: notes, SPDX beside CycloneDX, checksums, provenance. All of it is made from arguments alone.
import { sha256 } from './archive.mjs';

/** The section of a version in the changelog, without its heading. */
export function releaseNotes(changelog, version) {
  const section = changelog.split(/^## /m).find((each) => each.startsWith(`${version} `));
  if (section === undefined) throw new Error(`CHANGELOG.md: there is no section ${version}`);
  return `${section.slice(section.indexOf('\n') + 1).trim()}\n`;
}

/**
 * A krew manifest for `kubectl pointsman`: the npm package, which needs Node on the machine.
 *
 * @param url of the folder that the release is in.
 * @param homepage of the project; krew shows it.
 */
export function krewManifest({ version, description, archive, digest, url, homepage = url }) {
  return {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'pointsman' },
    spec: {
      version: `v${version}`,
      homepage,
      shortDescription: 'Ask the node service proxies of a cluster',
      description,
      caveats: 'Needs Node.js on the PATH. Of its commands nodes, explain --node and check --cluster ask a cluster.',
      platforms: [
        {
          selector: { matchExpressions: [{ key: 'os', operator: 'In', values: ['linux', 'darwin'] }] },
          uri: `${url}/${archive}`,
          sha256: digest,
          files: [{ from: 'package/dist/*', to: 'dist' }],
          bin: 'dist/main.js',
        },
      ],
    },
  };
}

const spdxId = (text) => text.replaceAll(/[^A-Za-z0-9.-]+/g, '-');

/** SPDX 2.3 of the same parts as a CycloneDX document. */
export function spdx(cyclonedx, created) {
  const { component } = cyclonedx.metadata;
  const [arch] = component.properties.map(({ value }) => value);
  const name = `${component.name}-${component.version}-${arch}`;
  const licensed = (part) => part.licenses?.[0]?.license.id ?? 'NOASSERTION';
  const packages = cyclonedx.components.map((part) => ({
    SPDXID: `SPDXRef-${spdxId(part.purl)}`,
    name: part.group === undefined ? part.name : `${part.group}/${part.name}`,
    versionInfo: part.version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: licensed(part),
    copyrightText: 'NOASSERTION',
    ...(part.hashes === undefined
      ? {}
      : { checksums: part.hashes.map(({ content }) => ({ algorithm: 'SHA512', checksumValue: content })) }),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: part.purl }],
  }));
  const image = {
    SPDXID: 'SPDXRef-image',
    name: component.name,
    versionInfo: component.version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: licensed(component),
    copyrightText: 'NOASSERTION',
    primaryPackagePurpose: 'CONTAINER',
  };
  const relation = (spdxElementId, relationshipType, relatedSpdxElement) => ({
    spdxElementId,
    relationshipType,
    relatedSpdxElement,
  });
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    // Unique, as the standard wants it, and the same for the same parts.
    documentNamespace: `https://spdx.org/spdxdocs/${name}-${sha256(JSON.stringify(cyclonedx))}`,
    creationInfo: { created, creators: ['Tool: pointsman-release'] },
    packages: [image, ...packages],
    relationships: [
      relation('SPDXRef-DOCUMENT', 'DESCRIBES', image.SPDXID),
      ...packages.map(({ SPDXID }) => relation(image.SPDXID, 'CONTAINS', SPDXID)),
    ],
  };
}

/** As sha256sum(1) prints and checks them. */
export function checksums(files) {
  return [...files].map(([name, content]) => `${sha256(content)}  ${name}\n`).join('');
}

/**
 * An in-toto statement with SLSA's provenance of build level v1. It has no times and no host's name: a second build is to give the same.
 *
 * @param files contents by their names in the release.
 */
export function provenance(files, { builder, commit, version, parameters, tools, dependencies }) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...files].map(([name, content]) => ({ name, digest: { sha256: sha256(content) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:pointsman:release:v1',
        externalParameters: { version, commit, ...parameters },
        internalParameters: { tools },
        resolvedDependencies: [{ uri: 'git+pointsman', digest: { gitCommit: commit } }, ...dependencies],
      },
      runDetails: { builder: { id: builder } },
    },
  };
}

/** Packages that go into the images, by their purls. */
export function pinnedDependencies({ node, debian }, architectures) {
  return architectures.flatMap((arch) => [
    { uri: `pkg:npm/${node[arch].name}@${node.version}`, digest: { sha512: node[arch].sha512 } },
    ...debian[arch].map(({ name, version, sha256: sum }) => ({
      uri: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}`,
      digest: { sha256: sum },
    })),
  ]);
}
