// Runs the test files of its arguments one after the other in this process: most of what a small file costs is loading tap and the sources.
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

const files = process.argv.slice(2);
// Before tap is loaded, which names the folders of tests by the arguments: by one file a group is told from others, and by all the name becomes too long.
process.argv.splice(3);
const { default: t } = await import('tap');

for (const file of files) {
  t.comment(file);
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    t.fail(file, { found: error });
  }
  if (!t.idle) await once(t, 'idle');
}
