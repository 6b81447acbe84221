// Builds the addon for Windows on Linux, by mingw-w64, from what binding.gyp names for that platform: to build-windows/pointsman.node. There node-gyp and
// MSVC build it from the same list; node-gyp cannot link for another platform.
//
//     node native/build-windows.mjs
//
// MINGW: the folder that has the cross compiler's programs, unless PATH has them.
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const require = createRequire(import.meta.url);
const project = join(import.meta.dirname, '..');
const output = join(project, 'build-windows');
const bin = process.env.MINGW ?? '';
/** The package of Debian. */
const PACKAGE = 'g++-mingw-w64-x86-64-posix';
const tool = (name) => (bin === '' ? name : join(bin, name));
const compiler = tool('x86_64-w64-mingw32-g++-posix');

const [target] = JSON.parse(readFileSync(join(project, 'binding.gyp'), 'utf8')).targets;
const [, windows] = target.conditions.find(([condition]) => condition === "OS=='win'");
const headers = require('node-api-headers');
const flags = [
  ...target.cflags_cc,
  // Warnings of MSVC at level 4, which are errors here.
  '-Wshadow',
  '-Wunused-parameter',
  // Statically linked, it needs nothing beside it but Windows' own DLLs.
  '-static',
  '-DBUILDING_NODE_EXTENSION',
  `-DNODE_GYP_MODULE_NAME=${target.target_name}`,
  ...[...target.defines, ...windows.defines].map((define) => `-D${define}`),
  ...[join(project, 'native')].map((folder) => `-I${folder}`),
  ...[headers.include_dir, require('node-addon-api').include_dir.replaceAll('"', '')].map(
    (folder) => `-isystem${folder}`,
  ),
];

mkdirSync(output, { recursive: true });
const objects = windows.sources.map((source) => join(output, `${source.replaceAll('/', '-')}.o`));
const waiting = windows.sources.map((source, at) => ['-c', join(project, source), '-o', objects[at]]);
const compile = async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
    await promisify(execFile)(compiler, [...flags, ...next]);
};
try {
  execFileSync(compiler, ['--version'], { stdio: 'ignore' });
} catch (error) {
  if (error.code !== 'ENOENT') throw error;
  process.stderr.write(
    `${compiler}: there is no such program. On Debian it is in the package ${PACKAGE}: apt-get install ${PACKAGE}\n`,
  );
  process.exit(1);
}
await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, compile));

// What node.exe exports.
const imports = join(output, 'node.lib');
execFileSync(tool('x86_64-w64-mingw32-dlltool'), [
  '-D',
  'node.exe',
  '-d',
  headers.def_paths.node_api_def,
  '-l',
  imports,
]);
const addon = join(output, `${target.target_name}.node`);
const linked = ['-shared', '-s', '-Wl,--no-insert-timestamp', '-o', addon, ...objects, imports, ...windows.libraries];
execFileSync(compiler, [...flags, ...linked], { stdio: 'inherit' });
process.stdout.write(`${basename(addon)}: ${addon}\n`);
