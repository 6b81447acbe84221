// What a release is made from: the commit's files in a folder of their own, built with the pinned Node, and the roots of the images.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as bundle } from 'esbuild';
import { pinnedNode } from '../system.mjs';
import { sha256 } from './archive.mjs';

const OWN = { x64: 'amd64', arm64: 'arm64' }[process.arch];
/** Node's word for an architecture of Debian's. */
const NODE_ARCH = { amd64: 'x64', arm64: 'arm64' };
/** Folders of deploy/ that operators apply. */
const KUSTOMIZATIONS = ['base', 'nodes', 'overlays/*'];

/** A commit as it is built. */
export class Build {
  #environment;

  /** @param folder is made, and removed by `close`. */
  constructor(commit, seconds, folder) {
    this.folder = folder;
    this.project = join(folder, 'project');
    mkdirSync(this.project);
    const files = execFileSync('git', ['archive', commit], { maxBuffer: 1 << 30 });
    execFileSync('tar', ['-x', '-C', this.project], { input: files });
    const node = pinnedNode(OWN, folder).path;
    this.#environment = {
      ...process.env,
      LC_ALL: 'C',
      TZ: 'UTC',
      POINTSMAN_COMMIT: commit,
      SOURCE_DATE_EPOCH: String(seconds),
      PATH: `${join(node, '..')}:${process.env.PATH}`,
    };
  }

  static async within(commit, seconds, use) {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-release-'));
    try {
      return await use(new Build(commit, seconds, folder));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  run(program, ...words) {
    const stdio = ['ignore', 'pipe', 'inherit'];
    const options = { cwd: this.project, env: this.#environment, stdio, encoding: 'utf8', maxBuffer: 1 << 28 };
    return execFileSync(program, words, options);
  }

  /** The addons, without what only a debugger wants, and dist/. */
  compile(architectures) {
    this.run('npm', 'ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--silent');
    this.run('sh', 'native/build.sh');
    this.run('strip', 'build/Release/pointsman.node');
    const others = architectures.filter((arch) => arch !== OWN);
    for (const arch of others) this.run('sh', 'native/build.sh', NODE_ARCH[arch]);
    this.run('npm', 'run', '--silent', 'build:ts');
    const prebuilt = `prebuilds/linux-${NODE_ARCH[OWN]}`;
    this.run('install', '-D', 'build/Release/pointsman.node', `${prebuilt}/pointsman.node`);
  }

  /**
   * What V8 compiled of the bundle. A rehearsal decides which functions that is (bundle/rehearse.mjs), and a busy machine runs others, as a profile does: it is
   * an input of a release and published with it, so that a second one has the same.
   *
   * @returns entries of an archive, with the digests of the scripts that they are of.
   */
  compiled() {
    const dist = join(this.project, 'dist');
    const files = readdirSync(dist).filter((name) => name.endsWith('.cache'));
    const scripts = files.map((name) => [name, this.#scriptDigest(name)]);
    return [
      ...files.map((name) => ({ name, mode: 0o644, content: readFileSync(join(dist, name)) })),
      { name: 'scripts.json', mode: 0o644, content: Buffer.from(`${JSON.stringify(Object.fromEntries(scripts))}\n`) },
    ];
  }

  /** Puts what another release published in place of what this machine compiled. */
  useCompiled(archive) {
    const folder = join(this.folder, 'v8-cache');
    mkdirSync(folder);
    execFileSync('tar', ['-xzf', archive, '-C', folder]);
    for (const [name, digest] of Object.entries(JSON.parse(readFileSync(join(folder, 'scripts.json'), 'utf8')))) {
      if (this.#scriptDigest(name) !== digest) throw new Error(`${archive}: ${name} is of another script`);
      writeFileSync(join(this.project, 'dist', name), readFileSync(join(folder, name)));
    }
  }

  #scriptDigest(name) {
    return sha256(readFileSync(join(this.project, 'dist', name.replace(/\.\w+\.cache$/, '.js'))));
  }

  /** @returns the folder of an image's root, and what it is made of as CycloneDX. */
  root(arch) {
    const folder = join(this.folder, `root-${arch}`);
    this.run('sh', 'deploy/image-root.sh', '.', folder, arch);
    rmSync(`${folder}.system`, { recursive: true });
    return { folder, bom: readFileSync(`${folder}.cdx.json`) };
  }

  /** The npm package, as tar: npm's own compression depends on the processor. */
  npmPackage() {
    const [{ filename }] = JSON.parse(this.run('npm', 'pack', '--ignore-scripts', '--json'));
    return execFileSync('gzip', ['-dc', join(this.project, filename)], { maxBuffer: 1 << 30 });
  }

  /** Versions of what is not pinned, but decides over bytes. */
  tools(architectures) {
    const programs = ['g++', 'ld', 'npm', 'gzip', ...(architectures.length > 1 ? ['aarch64-linux-gnu-g++'] : [])];
    return Object.fromEntries(programs.map((name) => [name, this.run(name, '--version').split('\n')[0]]));
  }

  /** Objects of each kustomization, by a name for its file. */
  async manifests() {
    const script = join(this.folder, 'kustomize.mjs');
    const entryPoints = [join(this.project, 'test/support/deploy/kustomize.ts')];
    await bundle({ entryPoints, outfile: script, bundle: true, platform: 'node', format: 'esm', logLevel: 'warning' });
    const { build } = await import(pathToFileURL(script).href);
    const deploy = join(this.project, 'deploy');
    const folders = KUSTOMIZATIONS.flatMap((each) =>
      each.endsWith('/*')
        ? readdirSync(join(deploy, each.slice(0, -2))).map((name) => each.replace('*', name))
        : [each],
    ).filter((each) => existsSync(join(deploy, each, 'kustomization.yaml')));
    return folders.map((each) => [each.replace('overlays/', ''), build(join(deploy, each))]);
  }
}
