// Images as OCI image layouts. A layer is plain tar: what a registry or a node compresses is its own affair, and digests do not hang on a compressor.
import { readFileSync } from 'node:fs';
import { sha256 } from './archive.mjs';

const TYPES = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
};

/** What a container of the image is started with: ENV and ENTRYPOINT of the Dockerfile's last stage. */
export function startOf(dockerfile) {
  const last = readFileSync(dockerfile, 'utf8')
    .split(/^FROM /m)
    .at(-1);
  const [, entrypoint] = /^ENTRYPOINT (\[.+\])$/m.exec(last);
  return { Env: [...last.matchAll(/^ENV (\S+=\S+)$/gm)].map(([, each]) => each), Entrypoint: JSON.parse(entrypoint) };
}

/** Blobs by their digests, to be files of a layout. */
export class Layout {
  #blobs = new Map();

  /** Keeps content and describes it as manifests do. */
  add(mediaType, content, more = {}) {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
    const digest = `sha256:${sha256(bytes)}`;
    this.#blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length, ...more };
  }

  /** @param manifests descriptors of what the layout is for. */
  entries(manifests) {
    const file = (name, content) => ({ name, mode: 0o644, content: Buffer.from(content) });
    return [
      { name: 'blobs', mode: 0o755 },
      { name: 'blobs/sha256', mode: 0o755 },
      ...[...this.#blobs].map(([digest, content]) => file(`blobs/${digest.replace(':', '/')}`, content)),
      file('index.json', JSON.stringify({ schemaVersion: 2, mediaType: TYPES.index, manifests })),
      file('oci-layout', JSON.stringify({ imageLayoutVersion: '1.0.0' })),
    ];
  }
}

/**
 * A layout with an index of images, one for each architecture.
 *
 * @param images each with `arch` and `layer`, a tar.
 * @param about `created` (a date), `start`, `labels`, `reference` (the image's full name) and `tag`.
 * @returns the entries, and the digest of the index, by which nodes pull.
 */
export function imageLayout(images, { created, start, labels, reference, tag }) {
  const layout = new Layout();
  const manifests = images.map(({ arch, layer }) => {
    const platform = { architecture: arch, os: 'linux' };
    const rootfs = { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] };
    const history = [{ created, created_by: 'deploy/image-root.sh' }];
    const config = layout.add(TYPES.config, {
      created,
      ...platform,
      config: { ...start, Labels: labels },
      rootfs,
      history,
    });
    const layers = [layout.add(TYPES.layer, layer)];
    const manifest = { schemaVersion: 2, mediaType: TYPES.manifest, config, layers };
    return layout.add(TYPES.manifest, manifest, { platform });
  });
  const index = layout.add(TYPES.index, { schemaVersion: 2, mediaType: TYPES.index, manifests, annotations: labels });
  const names = { 'org.opencontainers.image.ref.name': tag, 'io.containerd.image.name': reference };
  return { entries: layout.entries([{ ...index, annotations: names }]), digest: index.digest };
}

/** A signature of an image as cosign stores it beside the image: an image of its own, tagged by the digest that it signs. */
export function signatureLayout(digest, payload, signature) {
  const layout = new Layout();
  const annotations = { 'dev.cosignproject.cosign/signature': signature };
  const layer = layout.add('application/vnd.dev.cosign.simplesigning.v1+json', payload, { annotations });
  const rootfs = { type: 'layers', diff_ids: [layer.digest] };
  const config = layout.add(TYPES.config, { architecture: '', os: '', config: {}, rootfs });
  const manifest = { schemaVersion: 2, mediaType: TYPES.manifest, config, layers: [layer] };
  const tag = { 'org.opencontainers.image.ref.name': `${digest.replace(':', '-')}.sig` };
  return layout.entries([layout.add(TYPES.manifest, manifest, { annotations: tag })]);
}
