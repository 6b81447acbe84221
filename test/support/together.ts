// Runs the test files of its arguments one after the other in this process: most of what a small file costs is loading tap and the sources.
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import t from 'tap';

for (const file of process.argv.slice(2)) {
  t.comment(file);
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    t.fail(file, { found: error });
  }
  if (!t.idle) await once(t, 'idle');
}
