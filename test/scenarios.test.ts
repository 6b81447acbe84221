import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { usually } from './support/extent.js';
import { loadCompiler } from './support/fake-kernel/compiler.js';
import { parseStory } from './support/scenario-file.js';
import { variants } from './support/scenario-run.js';

const compiler = loadCompiler();
const folder = resolve('test/scenarios');
const usual = readFileSync(join(folder, 'usual-cluster'), 'utf8');
const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));

t.test('there are stories', (t) => {
  t.ok(files.length > 20);
  t.end();
});

for (const [index, file] of files.entries()) {
  t.test(file, async (t) => {
    const story = await parseStory(file, readFileSync(join(folder, file), 'utf8'), usual);
    const [asTold, ...others] = variants(story);
    // One other way for each, so that every way is gone by some stories.
    const chosen = [asTold, others[index % others.length]];
    for (const variant of usually(chosen, [asTold, ...others]))
      if (variant !== undefined) t.same(await variant.run(story, compiler), [], variant.name);
  });
}
