import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { serviceObject, sliceObject } from '../support/api-objects.js';
import { PROGRAM, until, WindowsNode } from './node.js';
import { ADDON, runProgram, startNode, windowsPath, type WindowsResult } from './windows.js';

const NAME = 'pointsman-test';

/** The service manager's own program. */
const sc = (...argv: readonly string[]): Promise<WindowsResult> => runProgram(['sc', ...argv]);

/** A service of the node's, which is started; what is gone with the test. */
async function started(t: Test, node: WindowsNode): Promise<void> {
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
  await sc('create', NAME, 'binPath=', [...command, ...flags].join(' '), 'start=', 'demand');
  t.teardown(async () => {
    await sc('stop', NAME);
    await sc('delete', NAME);
    other.child.kill('SIGKILL');
    await other.status;
  });
  t.match(await sc('start', NAME), { status: 0 });
}

/** Empty as long as there is none. */
function logOf({ folder }: WindowsNode): string {
  const path = join(folder, 'pointsman/pointsman.log');
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

t.test('the service manager starts and stops the Windows service', async (t) => {
  const node = await WindowsNode.make(t);
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1']));
  node.configure({ windowsRunAsService: true });
  await started(t, node);
  await until('health', () =>
    node.get('healthz', '/healthz').then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  t.match((await sc('query', NAME)).stdout, /STATE +: 4 /);
  const held = node.held();
  t.equal(held.length, 2);
  await sc('stop', NAME);
  let state = '';
  await until('the end', async () => {
    state = (await sc('query', NAME)).stdout;
    return /STATE +: 1 /.test(state);
  });
  t.match(state, /WIN32_EXIT_CODE +: 0 /);
  t.same(node.held(), held, 'the rules stay');
  t.match(logOf(node), /"starting".*\n(?:.*\n)*.*"stopping, rules stay in place" signal="SIGTERM"/);
});

t.test('a Windows service that is stopped while HNS is slow ends after the current batch', async (t) => {
  const node = await WindowsNode.make(t);
  for (let index = 0; index < 100; index++) {
    const name = `s${index}`;
    node.put(
      name,
      serviceObject(name, { clusterIP: `10.96.1.${index}` }),
      sliceObject(name, name, [`10.1.1.${index}`]),
    );
  }
  node.configure({ windowsRunAsService: true });
  let release = (): void => undefined;
  let changes = 0;
  node.hns.beforeOperation = () => {
    if (++changes === 50) node.hns.slow = new Promise<void>((resolve) => (release = resolve));
  };
  await started(t, node);
  await until('a first batch', () => changes >= 50);
  await sc('stop', NAME);
  let state = '';
  await until('that it is stopping', async () => {
    state = (await sc('query', NAME)).stdout;
    return /STATE +: 3 /.test(state);
  });
  const before = changes;
  release();
  node.hns.slow = null;
  await until('the end', async () => {
    state = (await sc('query', NAME)).stdout;
    return /STATE +: 1 /.test(state);
  });
  t.match(state, /WIN32_EXIT_CODE +: 0 /);
  t.ok(changes - before <= 32, `${changes - before} operations after the stop, of 200`);
  t.match(logOf(node), /"ending before everything is in the kernel"/);
});

t.test('a failing Windows service ends without a report to the service manager, and logs why', async (t) => {
  const node = await WindowsNode.make(t);
  node.configure({ windowsRunAsService: true, winkernel: {} });
  await started(t, node);
  await until('the last words', () => /winkernel\.networkName: Required value/.test(logOf(node)));
  await until('the end', () => !isRunning(node));
  // Wine's does not see that the process is gone. Windows' then does what the failure actions say, unless it was told of a stop.
  t.notMatch((await sc('query', NAME)).stdout, /STATE +: 1 /);
});

/** Whether a process has the service's launcher. */
function isRunning({ folder }: WindowsNode): boolean {
  return readdirSync('/proc').some((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(basename(folder));
    } catch {
      // It is no process, or ended just now.
      return false;
    }
  });
}
