// Makes dist/ui/, the page in the browser, from page/: one script, one stylesheet and one icon, whose names change with what is in them, and the HTML that names them.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { build } from 'esbuild';

/**
 * @param project the folder of the project, with a slash at its end.
 * @param folder where the page goes; its source map goes beside it.
 */
export async function buildPage(project, folder) {
  const { metafile } = await build({
    entryPoints: ['page/src/main.tsx'],
    outdir: folder,
    entryNames: '[name]-[hash]',
    bundle: true,
    platform: 'browser',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    format: 'esm',
    tsconfig: `${project}page/tsconfig.json`,
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
    if (name.endsWith('.js.map')) renameSync(`${folder}/${name}`, `${folder}/../page.js.map`);
    else rmSync(`${folder}/${name}`);
  const icon = readFileSync(`${project}page/icon.svg`);
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`;
  writeFileSync(`${folder}/${iconName}`, icon);
  const html = [...names, iconName].reduce(
    (text, name) => text.replace(`"./${name.replace(/-[^-]*\./, '.')}"`, `"./${name}"`),
    readFileSync(`${project}page/index.html`, 'utf8'),
  );
  writeFileSync(`${folder}/index.html`, html);
}
