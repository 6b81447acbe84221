// Archives with the same bytes for the same files, wherever and whenever they are made: tar as POSIX has it (ustar, with pax records for long names), in the
// order of names, all root's, of one time.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const BLOCK = 512;
const KINDS = { file: '0', link: '2', folder: '5', pax: 'x' };

/** Lower-case hexadecimal. */
export function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}

/** By GNU gzip: the bytes of Node's zlib depend on the processor. */
export function gzip(content) {
  return execFileSync('gzip', ['-n', '-9'], { input: content, maxBuffer: 1 << 30 });
}

function header({ name, kind, mode, size, target = '' }, seconds) {
  const block = Buffer.alloc(BLOCK);
  const octal = (value, length) => value.toString(8).padStart(length - 1, '0') + '\0';
  const put = (text, offset) => block.write(text, offset, 'latin1');
  block.write(name, 0, 100, 'utf8');
  put(octal(mode, 8), 100);
  put(octal(0, 8), 108);
  put(octal(0, 8), 116);
  put(octal(size, 12), 124);
  put(octal(seconds, 12), 136);
  put('        ', 148);
  put(KINDS[kind], 156);
  block.write(target, 157, 100, 'utf8');
  put('ustar\0' + '00', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function padded(content) {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** A record says how long it is, its own length included. */
function paxRecord(key, value) {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

/**
 * @param entries each with `name`, `mode` and `content`, or `target` of a symbolic link, or neither for a folder.
 * @param seconds since 1970, of all of them.
 */
export function tar(entries, seconds) {
  const blocks = [];
  for (const { name, mode, content, target } of [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const kind = content !== undefined ? 'file' : target !== undefined ? 'link' : 'folder';
    const path = kind === 'folder' ? `${name}/` : name;
    const long = [
      ...(Buffer.byteLength(path) > 100 ? [paxRecord('path', path)] : []),
      ...(Buffer.byteLength(target ?? '') > 100 ? [paxRecord('linkpath', target)] : []),
    ].join('');
    if (long !== '') {
      const records = Buffer.from(long);
      blocks.push(header({ name: 'pax', kind: 'pax', mode: 0o644, size: records.length }, seconds), padded(records));
    }
    blocks.push(header({ name: path, kind, mode, size: content?.length ?? 0, target }, seconds));
    if (content !== undefined && content.length > 0) blocks.push(padded(content));
  }
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

/** What is in a folder, as entries. Who may write is the owner alone, whatever the umask was. */
export function entriesOf(folder, prefix = '') {
  return readdirSync(folder).flatMap((each) => {
    const path = join(folder, each);
    const name = `${prefix}${each}`;
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) return [{ name, mode: 0o777, target: readlinkSync(path) }];
    if (stat.isDirectory()) {
      const mode = (stat.mode & 0o1000) === 0 ? 0o755 : 0o1777;
      return [{ name, mode }, ...entriesOf(path, `${name}/`)];
    }
    return [{ name, mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755, content: readFileSync(path) }];
  });
}
