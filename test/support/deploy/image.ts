import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
    const [from = '', , name = null] = text.replace('--platform=$BUILDPLATFORM ', '').split(/ (AS) /);
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

const SCRIPT = 'deploy/image-root.sh';

/**
 * Fills a folder with the root of the image, by the script that the Dockerfile runs, from this machine's Node and iptables programs and from the program as
 * it is built here. There is a folder more, /.host, where a test may mount the machine's root.
 */
export function layOutImage(root: string): void {
  const project = mkdtempSync(join(tmpdir(), 'image-project-'));
  try {
    for (const path of ['package.json', 'package-lock.json', 'dist', 'build/Release/pointsman.node']) {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      symlinkSync(projectFile(path), join(project, path));
    }
    const PATH = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
    execFileSync('sh', [projectFile(SCRIPT), project, root], { env: { PATH } });
  } finally {
    rmSync(project, { recursive: true });
  }
  mkdirSync(join(root, '.host'));
}

/** The ways of a shell into a root, or out of what runs in it: programs that take commands. */
export function shellsIn(root: string): string[] {
  const names = /^(?:(?:ba|da|a|k|z|c)?sh|busybox|perl\d*|python[\d.]*|apt.*|dpkg.*|npm|npx)$/;
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && names.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
