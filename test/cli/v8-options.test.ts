// Options of V8 that a process sets are those of this Node: what V8 does not know it reports on standard error, in the midst of the log.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { isKnownNode, v8Options } from '../../src/base/heap-options.js';
import { COLLECTION_OPTIONS } from '../../src/cli/memory.js';

const KNOWN = new Set(
  [...execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).matchAll(/^ {2}--([a-z0-9-]+)/gm)].map(
    ([, name]) => name,
  ),
);

t.test('V8 knows every option that is set with this version of Node', (t) => {
  t.ok(isKnownNode(), process.version);
  const options = [...v8Options('load'), ...v8Options('changes'), ...COLLECTION_OPTIONS];
  t.ok(options.length > 4, options.join(' '));
  for (const option of options) t.ok(KNOWN.has(option.replace(/^--(?:no-)?|=.*$/g, '')), option);
  t.end();
});
