// Options of V8 that a process sets are those of this Node: what V8 does not know it reports on standard error, in the midst of the log.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { isKnownNode, optionsOfLoad, v8Options } from '../../src/base/heap-options.js';
import { COLLECTION_OPTIONS } from '../../src/cli/memory.js';

const KNOWN = new Set(
  [...execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).matchAll(/^ {2}--([a-z0-9-]+)/gm)].map(
    ([, name]) => name,
  ),
);

t.test('V8 knows every option that is set with this version of Node', (t) => {
  t.ok(isKnownNode(), process.version);
  const options = [...optionsOfLoad(0), ...v8Options('changes'), ...COLLECTION_OPTIONS];
  t.ok(options.length > 4, options.join(' '));
  for (const option of options) t.ok(KNOWN.has(option.replace(/^--(?:no-)?|=.*$/g, '')), option);
  t.end();
});

t.test('the limit of collections in an idle process is set in its first seconds alone', (t) => {
  const isToldAt = (ageMs: number): boolean => optionsOfLoad(ageMs).some((option) => option.includes('memory-reducer'));
  const isKnown = v8Options('start').length > 0;
  t.same([isToldAt(100), isToldAt(3999), isToldAt(4000), isToldAt(60_000)], [isKnown, isKnown, false, false]);
  t.notMatch(v8Options('changes').join(), 'memory-reducer', 'V8 would end the process');
  t.end();
});
