// Makes dist/ui/, the page in the browser, and dist/nodes-ui/, the one about all nodes, from packages/page/browser/: one script, one stylesheet and one icon, whose names change with what is in them, and the HTML that names them.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { build } from 'esbuild';

/** Where the list of libraries finds what a script was made of. */
const MAPS = { main: 'page.js.map', nodes: 'nodes-page.js.map' };

/**
 * @param project the folder of the project, with a slash at its end.
 * @param entry what the script, the style sheet and the HTML are named after.
 * @param folder where the page goes; its source map goes beside it.
 */
export async function buildPage(project, entry, folder) {
  const { metafile } = await build({
    entryPoints: [`packages/page/browser/src/${entry}.tsx`],
    outdir: folder,
    entryNames: '[name]-[hash]',
    bundle: true,
    platform: 'browser',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    format: 'esm',
    tsconfig: `${project}packages/page/browser/tsconfig.json`,
    minify: true,
    sourcemap: 'external',
    sourcesContent: false,
    legalComments: 'eof',
    metafile: true,
    absWorkingDir: project,
    logLevel: 'warning',
  });
  const made = Object.keys(metafile.outputs).map((path) => basename(path));
  const names = made.filter((name) => !name.endsWith('.map'));
  // They are not served; the list of libraries is made of the script's.
  for (const name of made.filter((each) => each.endsWith('.map')))
    if (name.endsWith('.js.map')) renameSync(`${folder}/${name}`, `${folder}/../${MAPS[entry]}`);
    else rmSync(`${folder}/${name}`);
  const icon = readFileSync(`${project}packages/page/browser/icon.svg`);
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`;
  writeFileSync(`${folder}/${iconName}`, icon);
  const html = [...names, iconName].reduce(
    (text, name) => text.replace(`"./${name.replace(/-[^-]*\./, '.')}"`, `"./${name}"`),
    readFileSync(`${project}packages/page/browser/${entry === 'main' ? 'index' : entry}.html`, 'utf8'),
  );
  writeFileSync(`${folder}/index.html`, html);
}
