import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { usually } from './support/extent.js';
import { parseStory } from './support/scenario-file.js';
import { SCENARIO_MODES } from './support/scenario-modes.js';
import { variants } from './support/scenario-run.js';

const folder = resolve('test/scenarios');
const usual = readFileSync(join(folder, 'usual-cluster'), 'utf8');
const files = readdirSync(folder).filter((name) => name.endsWith('.txt'));

t.test('scenario files are found', (t) => {
  t.ok(files.length > 20);
  t.end();
});

/** In `npm test` two modes tell a scenario, in turn. */
const MODES_OF_ONE = usually(2, SCENARIO_MODES.length);

for (const [place, mode] of SCENARIO_MODES.entries()) {
  for (const [index, file] of files.entries()) {
    if ((index + place) % SCENARIO_MODES.length >= MODES_OF_ONE) continue;
    t.test(`${mode.definition.name}: scenario ${file}`, async (t) => {
      const texts = { text: readFileSync(join(folder, file), 'utf8'), usual };
      const story = await parseStory(file, texts, mode, SCENARIO_MODES);
      const [asWritten, ...others] = variants(story);
      // Another way for every fourth one, not the same in all modes, so that every way is gone by some.
      const turn = index + place;
      const chosen = turn % 4 === 0 ? [asWritten, others[(turn / 4) % others.length]] : [asWritten];
      for (const variant of usually(chosen, [asWritten, ...others])) {
        if (variant === undefined) continue;
        const findings = await variant.run(story, mode);
        // Summaries show no more than the name.
        t.same(findings, [], [variant.name, ...findings.slice(0, 3)].join('; '));
      }
    });
  }
}
