/** A file of an archive. */
export interface ArchivedFile {
  readonly name: string;
  readonly content: Uint8Array;
}

const BLOCK = 512;

/** What comes after the last file. */
export const TAR_END: Uint8Array = new Uint8Array(2 * BLOCK);

/** Files as an archive of POSIX (ustar) has them, which ends with {@link TAR_END}; names are at most 100 bytes long. */
export function tarBlocks(files: readonly ArchivedFile[], modified: Date): Uint8Array {
  const seconds = Math.floor(modified.getTime() / 1000);
  const blocks = files.flatMap(({ name, content }) => [
    header(name, content.length, seconds),
    content,
    new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat(blocks);
}

function header(name: string, size: number, seconds: number): Uint8Array {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void => {
    block.write(value.toString(8).padStart(length - 1, '0'), offset, 'latin1');
  };
  if (block.write(name, 0, 101, 'utf8') > 100) throw new RangeError(`too long for an archive: ${name}`);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(seconds, 136, 12);
  block.write('0', 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  // Over the header with blanks in its own place.
  block.fill(' ', 148, 156);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1');
  return block;
}
