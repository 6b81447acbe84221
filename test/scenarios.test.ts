import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { loadCompiler } from './support/fake-kernel/compiler.js';
import { parseStory } from './support/scenario-file.js';
import { variants } from './support/scenario-run.js';

t.setTimeout(120_000);
const compiler = loadCompiler();
const folder = resolve('test/scenarios');
const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));

t.test('there are stories', (t) => {
  t.ok(files.length > 20);
  t.end();
});

for (const file of files) {
  t.test(file, async (t) => {
    const story = await parseStory(file, readFileSync(join(folder, file), 'utf8'));
    for (const { name, run } of variants(story)) t.same(await run(story, compiler), [], name);
  });
}
