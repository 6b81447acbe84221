/** A file of an initramfs. */
export interface CpioFile {
  /** Without a leading slash. */
  readonly path: string;
  /** Null: a folder. */
  readonly content: Uint8Array | null;
}

const FOLDER_MODE = 0o40755;
const FILE_MODE = 0o100755;

/** An archive in the `newc` format, which the kernel unpacks (Documentation/driver-api/early-userspace/buffer-format.rst). Folders come before what is in them. */
export function cpio(files: readonly CpioFile[]): Buffer {
  const entries = files.map(({ path, content }, index) =>
    entry(index + 1, path, content === null ? FOLDER_MODE : FILE_MODE, content ?? new Uint8Array()),
  );
  return Buffer.concat([...entries, entry(0, 'TRAILER!!!', 0, new Uint8Array())]);
}

function entry(inode: number, path: string, mode: number, content: Uint8Array): Buffer {
  const name = Buffer.from(`${path}\0`);
  // inode, mode, uid, gid, links, mtime, size, two device numbers twice, length of the name, checksum
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return Buffer.concat([padded(Buffer.concat([Buffer.from(header), name])), padded(Buffer.from(content))]);
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}
