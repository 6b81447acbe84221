import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectFile } from '../lab/agent.js';

export interface Instruction {
  readonly word: string;
  readonly text: string;
}

export interface Stage {
  readonly from: string;
  readonly name: string | null;
  readonly instructions: readonly Instruction[];
}

/** The stages of the Dockerfile. */
export function dockerStages(): Stage[] {
  const lines = readFileSync(projectFile('Dockerfile'), 'utf8').split('\n');
  const stages: (Stage & { readonly instructions: Instruction[] })[] = [];
  for (const line of lines.filter((text) => text !== '' && !text.startsWith('#'))) {
    const [, word = '', text = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (word === '') throw new Error(`Dockerfile: what is ${line}?`);
    const [from = '', , name = null] = text.split(/ (AS) /);
    if (word === 'FROM') stages.push({ from, name, instructions: [] });
    else stages.at(-1)?.instructions.push({ word, text });
  }
  return stages;
}

export interface Copy {
  /** Stage, or null for the build context. */
  readonly from: string | null;
  readonly sources: readonly string[];
  readonly target: string;
}

export function copies(stage: Stage): Copy[] {
  return stage.instructions.flatMap(({ word, text }) => {
    if (word !== 'COPY') return [];
    const [, from = null, rest = ''] = /^(?:--from=(\S+) )?(.+)$/.exec(text) ?? [];
    const paths = rest.split(' ');
    return [{ from, sources: paths.slice(0, -1), target: paths.at(-1) ?? '' }];
  });
}

/** Folders of packages, as package-lock.json has them, that `npm prune --omit=dev` leaves. */
export function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(projectFile('package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>;
  };
  return Object.entries(lock.packages).flatMap(([path, { dev = false }]) => (path === '' || dev ? [] : [path]));
}

/**
 * Fills a folder with the root of the image that the last stage of the Dockerfile describes. Node and the distribution's programs are links to
 * this machine's, below /.host, where a container has to mount the machine's root.
 */
export function layOutImage(root: string): void {
  const final = dockerStages().at(-1);
  if (final === undefined) throw new Error('the Dockerfile has no stages');
  for (const folder of ['.host', 'proc', 'sys', 'dev', 'tmp', 'run', 'var', 'usr/local/bin', 'usr/lib']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  symlinkSync('/run', join(root, 'var/run'));
  symlinkSync('/.host/etc', join(root, 'etc'));
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    if (lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink() !== true) continue;
    symlinkSync(readlinkSync(`/${name}`), join(root, name));
  }
  linkEntries('usr', root, ['local', 'lib']);
  linkEntries('usr/lib', root, ['modules']);
  for (const { sources, target } of copies(final)) copyInto(root, sources, target);
  for (const [, from = '', to = ''] of linkCommands(final)) symlinkSync(from, join(root, to));
}

/** Links all but some entries of a folder of the machine. */
function linkEntries(folder: string, root: string, except: readonly string[]): void {
  for (const name of readdirSync(`/${folder}`)) {
    if (!except.includes(name)) symlinkSync(`/.host/${folder}/${name}`, join(root, folder, name));
  }
}

function copyInto(root: string, sources: readonly string[], target: string): void {
  for (const source of sources) {
    const to = join(root, '/pointsman', target, target.endsWith('/') ? (source.split('/').at(-1) ?? '') : '');
    if (source === '/usr/local/bin/node') symlinkSync(`/.host${process.execPath}`, join(root, source));
    else if (source === '/pointsman/node_modules') {
      for (const path of productionPackages()) cpSync(projectFile(path), join(dirname(to), path), { recursive: true });
    } else cpSync(projectFile(source.replace(/^\/pointsman\//, '')), to, { recursive: true });
  }
}

function linkCommands(stage: Stage): RegExpExecArray[] {
  return stage.instructions.flatMap(({ word, text }) =>
    word === 'RUN' ? [...text.matchAll(/ln -s (\S+) (\S+)/g)] : [],
  );
}
