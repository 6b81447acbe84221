import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { serviceObject, sliceObject } from '../support/api-objects.js';
import { ADDON, startNode, windowsPath } from './windows.js';
import { PROGRAM, until, WindowsNode } from './node.js';

const NAME = 'pointsman-test';

/** The service manager's own program. It answers through a file: what it starts would keep a pipe open. */
function sc(...argv: readonly string[]): string {
  const { WINELOADER: wine = '' } = process.env;
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-sc-'));
  const path = join(folder, 'stdout');
  const file = openSync(path, 'w');
  spawnSync(wine, ['sc', ...argv], { stdio: ['ignore', file, 'ignore'], timeout: 60_000 });
  closeSync(file);
  const text = readFileSync(path, 'utf8');
  rmSync(folder, { recursive: true });
  return text;
}

t.test('started and stopped by the service manager', async (t) => {
  const node = await WindowsNode.make(t);
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1']));
  node.configure({ windowsRunAsService: true });
  // Wine gives services no variables of ours.
  const variables = { ...node.environment, POINTSMAN_ADDON: windowsPath(ADDON), ProgramData: windowsPath(node.folder) };
  const launcher = join(node.folder, 'service.cjs');
  writeFileSync(
    launcher,
    `Object.assign(process.env, ${JSON.stringify(variables)});\nrequire(${JSON.stringify(PROGRAM)});\n`,
  );
  // A machine on which nothing but services runs is switched off.
  const other = startNode(['-e', 'setInterval(() => {}, 1000)']);
  const command = [windowsPath(process.env['POINTSMAN_WINE_NODE'] ?? ''), windowsPath(launcher)];
  const flags = [...node.arguments(...node.fromManifests).slice(1)];
  sc('create', NAME, 'binPath=', [...command, ...flags].join(' '), 'start=', 'demand');
  t.teardown(async () => {
    sc('stop', NAME);
    sc('delete', NAME);
    other.child.kill('SIGKILL');
    await other.status;
  });
  sc('start', NAME);
  await until('health', () =>
    node.get('healthz', '/healthz').then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  t.match(sc('query', NAME), /STATE +: 4 /);
  const held = node.held();
  t.equal(held.length, 2);
  sc('stop', NAME);
  await until('the end', () => /STATE +: 1 /.test(sc('query', NAME)));
  t.match(sc('query', NAME), /WIN32_EXIT_CODE +: 0 /);
  t.same(node.held(), held, 'the rules stay');
  const log = readFileSync(join(node.folder, 'pointsman/pointsman.log'), 'utf8');
  t.match(log, /"starting".*\n(?:.*\n)*.*"stopping, rules stay in place" signal="SIGTERM"/);
});
