import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from './lab/agent.js';

/** The program as it is shipped: an executable file. */
export const PROGRAM = projectFile('dist/main.js');

const builtAt = statSync(projectFile('dist/pointsman.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
const sources = ['src', 'packages'].flatMap((folder) =>
  readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
);
const newer = sources.find(
  (file) => /\.tsx?$/.test(file) && !file.includes('/test/') && statSync(projectFile(file)).mtimeMs > builtAt,
);
// A test of a program that was built before would say nothing of this one.
if (newer !== undefined) throw new Error(`dist/ is older than ${newer}: run \`node bundle/bundle.mjs\``);
