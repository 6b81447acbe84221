import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Apt } from '../support/apt.js';
import { cachedFolder, output } from '../support/cached-folder.js';
import { cpio, type CpioFile } from './cpio.js';
import { INIT } from './guest.js';

/** Grows with every change to what a cache folder holds. */
const FORMAT = '1';
/** Modules without which the guest reaches no file; those they need come with them. */
const BOOT_MODULES = ['virtio_pci', 'virtio_console', '9pnet_virtio', '9p', 'overlay'];

/** What a virtual machine starts from. */
export interface Provision {
  /** Program and its environment. */
  readonly qemu: { readonly program: string; readonly args: readonly string[]; readonly env: NodeJS.ProcessEnv };
  /** The kernel, not compressed: unpacking itself under emulation takes seconds. */
  readonly kernel: string;
  readonly initramfs: string;
  /** Its folder of modules. */
  readonly modules: string;
}

/** Debian's stock kernel and QEMU, fetched by apt into the folder unless they are there. */
export function provision(folder: string): Provision {
  const ready = cachedFolder(folder, FORMAT, build);
  const version = readFileSync(join(ready, 'version'), 'utf8');
  return {
    qemu: qemuOf(ready),
    kernel: join(ready, 'vmlinux'),
    initramfs: join(ready, 'initramfs'),
    modules: join(ready, 'kernel/lib/modules', version),
  };
}

function build(folder: string): void {
  const [kernel, qemu] = [join(folder, 'kernel'), join(folder, 'qemu')];
  const apt = new Apt(join(folder, 'apt'));
  const image = /Depends: (linux-image-\S+)/.exec(apt.depends('linux-image-amd64'))?.[1];
  if (image === undefined) throw new Error('apt knows no linux-image-amd64');
  apt.unpack([image, 'busybox-static'], kernel);
  // Of what QEMU needs only what this machine lacks.
  const needed = apt.needed(['qemu-system-x86']);
  if (needed.length > 0) apt.unpack(needed, qemu);
  apt.close();
  const [version = ''] = readdirSync(join(kernel, 'lib/modules'));
  output('depmod', ['-b', kernel, version]);
  writeFileSync(join(folder, 'version'), version);
  writeFileSync(join(folder, 'vmlinux'), unpackedKernel(join(kernel, 'boot', `vmlinuz-${version}`)));
  writeFileSync(join(folder, 'initramfs'), initramfs(kernel, version));
}

/** The ELF image within a bzImage, which packs it as xz. */
function unpackedKernel(path: string): Buffer {
  const image = readFileSync(path);
  const start = image.indexOf(Buffer.from('\xfd7zXZ\0', 'latin1'));
  if (start < 0) throw new Error(`${path} is not packed as xz`);
  // What follows the packed part makes xz complain when it has unpacked everything.
  const { stdout, error } = spawnSync('xz', ['-dc'], { input: image.subarray(start), maxBuffer: 1 << 30 });
  if (error !== undefined) throw error;
  if (stdout.subarray(1, 4).toString() !== 'ELF') throw new Error(`${path} holds no kernel`);
  return stdout;
}

function initramfs(root: string, version: string): Buffer {
  const folders = ['bin', 'modules', 'proc', 'sys', 'dev', 'host', 'memory', 'root'];
  const modules: CpioFile[] = [];
  for (const name of BOOT_MODULES) {
    const shown = output('modprobe', ['-d', root, '-S', version, '--show-depends', name]).toString();
    for (const [, path = ''] of shown.matchAll(/^insmod (\S+)/gm)) {
      const file = `modules/${path.slice(path.lastIndexOf('/') + 1)}`;
      if (!modules.some((module) => module.path === file)) modules.push({ path: file, content: readFileSync(path) });
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
