import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Apt } from '../support/apt.js';
import { cachedFolder, output } from '../support/cached-folder.js';
import { cpio, type CpioFile } from './cpio.js';
import { INIT } from './guest.js';

/** Grows with every change to what a cache folder holds. */
const FORMAT = '2';
/** Modules without which the guest reaches no file; those they need come with them. */
const BOOT_MODULES = ['virtio_pci', 'virtio_console', '9pnet_virtio', '9p', 'overlay'];

/** What a virtual machine starts from. */
export interface Provision {
  /** Program and its environment. */
  readonly qemu: { readonly program: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv };
  /** The kernel, not compressed where it can be unpacked here: unpacking itself under emulation takes seconds. */
  readonly kernel: string;
  readonly initramfs: string;
  /** Its folder of modules. */
  readonly modules: string;
}

/**
 * Debian's stock kernel and QEMU, fetched by apt into the folder unless they are there.
 *
 * @param release whose kernel it is, such as `trixie`; null: that of this machine.
 */
export function provision(folder: string, release: string | null): Provision {
  const format = release === null ? FORMAT : `${FORMAT}-${release}`;
  const ready = cachedFolder(folder, format, (made) => {
    build(made, release);
  });
  const version = readFileSync(join(ready, 'version'), 'utf8');
  return {
    qemu: qemuOf(ready),
    kernel: join(ready, 'vmlinux'),
    initramfs: join(ready, 'initramfs'),
    modules: join(ready, 'kernel/lib/modules', version),
  };
}

function build(folder: string, release: string | null): void {
  const [kernel, qemu] = [join(folder, 'kernel'), join(folder, 'qemu')];
  const kernels = new Apt(join(folder, 'apt-kernel'), release);
  const image = /Depends: (linux-image-\S+)/.exec(kernels.depends('linux-image-amd64'))?.[1];
  if (image === undefined) throw new Error('apt knows no linux-image-amd64');
  // Newer kernels are divided among several packages.
  const parts = [...kernels.depends(image).matchAll(/Depends: (linux-(?:base|binary|modules)-\S+)/g)].map(
    (found) => found[1] ?? '',
  );
  kernels.unpack([image, ...parts, 'busybox-static'], kernel);
  kernels.close();
  // Newer packages have their files in /usr alone.
  if (!existsSync(join(kernel, 'lib/modules'))) symlinkSync('usr/lib', join(kernel, 'lib'));
  const apt = new Apt(join(folder, 'apt'));
  // Of what QEMU needs only what this machine lacks.
  const needed = apt.needed(['qemu-system-x86']);
  if (needed.length > 0) apt.unpack(needed, qemu);
  apt.close();
  const [version = ''] = readdirSync(join(kernel, 'lib/modules'));
  output('depmod', ['-b', kernel, version]);
  writeFileSync(join(folder, 'version'), version);
  const images = [join(kernel, 'boot', `vmlinuz-${version}`), join(kernel, 'lib/modules', version, 'vmlinuz')];
  writeFileSync(join(folder, 'vmlinux'), unpackedKernel(images.find((path) => existsSync(path)) ?? images[0] ?? ''));
  writeFileSync(join(folder, 'initramfs'), initramfs(kernel, version));
}

/** The ELF image within a bzImage that packs it as xz; any other as it is. */
function unpackedKernel(path: string): Buffer {
  const image = readFileSync(path);
  const start = image.indexOf(Buffer.from('\xfd7zXZ\0', 'latin1'));
  if (start < 0) return image;
  // What follows the packed part makes xz complain when it has unpacked everything, or end before it has read it.
  const { stdout } = spawnSync('xz', ['-dc'], { input: image.subarray(start), maxBuffer: 1 << 30 });
  if (stdout.subarray(1, 4).toString() !== 'ELF') throw new Error(`${path} holds no kernel`);
  return stdout;
}

function initramfs(root: string, version: string): Buffer {
  const folders = ['bin', 'modules', 'proc', 'sys', 'dev', 'host', 'memory', 'root'];
  const modules: CpioFile[] = [];
  for (const name of BOOT_MODULES) {
    const shown = output('modprobe', ['-d', root, '-S', version, '--show-depends', name]).toString();
    for (const [, path = ''] of shown.matchAll(/^insmod (\S+)/gm)) {
      const packed = path.endsWith('.xz');
      const file = `modules/${path.slice(path.lastIndexOf('/') + 1).replace(/\.xz$/, '')}`;
      if (modules.some((module) => module.path === file)) continue;
      modules.push({ path: file, content: packed ? output('xz', ['-dc', path]) : readFileSync(path) });
    }
  }
  const busybox = ['bin/busybox', 'usr/bin/busybox'].map((path) => join(root, path)).find((path) => existsSync(path));
  if (busybox === undefined) throw new Error('there is no busybox in busybox-static');
  return cpio([
    ...folders.map((path) => ({ path, content: null })),
    { path: 'bin/busybox', content: readFileSync(busybox) },
    { path: 'init', content: Buffer.from(INIT) },
    ...modules,
    { path: 'modules/order', content: Buffer.from(modules.map(({ path }) => `/${path}`).join('\n')) },
  ]);
}

/** This machine's, or else the fetched one with its libraries. */
function qemuOf(folder: string): Provision['qemu'] {
  const name = 'qemu-system-x86_64';
  const fetched = join(folder, 'qemu/usr/bin', name);
  if (!existsSync(fetched)) return { program: name, args: [], env: process.env };
  const libraries = join(folder, 'qemu/usr/lib/x86_64-linux-gnu');
  const paths = [libraries, join(folder, 'qemu/lib/x86_64-linux-gnu')].join(':');
  const shared = join(dirname(dirname(fetched)), 'share');
  return {
    program: fetched,
    args: ['-L', join(shared, 'qemu'), '-L', join(shared, 'seabios')],
    env: { ...process.env, LD_LIBRARY_PATH: paths, QEMU_MODULE_DIR: join(libraries, 'qemu') },
  };
}
