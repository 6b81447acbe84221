import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from './lab/agent.js';

/** The program as it is shipped: an executable file. */
export const PROGRAM = projectFile('dist/main.js');

const SOURCES = projectFile('src');
const builtAt = statSync(projectFile('dist/pointsman.js'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
const newer = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).find(
  (file) => file.endsWith('.ts') && statSync(join(SOURCES, file)).mtimeMs > builtAt,
);
// A test of a program that was built before would say nothing of this one.
if (newer !== undefined) throw new Error(`dist/ is older than src/${newer}: run \`node bundle/bundle.mjs\``);
