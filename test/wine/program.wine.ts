import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { serviceObject, sliceObject } from '../support/api-objects.js';
import { WindowsNode } from './node.js';
import { runNode, windowsPath } from './windows.js';

const PROGRAM = windowsPath(projectFile('dist/main.js'));

t.test('commands that need no kernel run under Windows', async (t) => {
  const version = await runNode([PROGRAM, '--version']);
  t.match(version, {
    status: 0,
    stdout: /^Kubernetes v1\.\d+\.\d+ \(pointsman \d+\.\d+\.\d+[^)]*\)\r?\n$/,
    stderr: '',
  });
  const help = await runNode([PROGRAM, '--help']);
  t.match(help, { status: 0, stdout: /--config/, stderr: '' });
});

t.test('a second proxy on a Windows node names the first, and exits', async (t) => {
  const node = await WindowsNode.make(t);
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1']));
  const first = node.start(...node.fromManifests);
  await node.healthy();
  const other = await WindowsNode.make(t);
  const second = other.start(...other.fromManifests);
  t.equal(await second.status, 1);
  t.match(second.stderr(), /another proxy serves this node.*pointsman \S+, process \d+, mode kernelspace/);
  t.same(other.server.changes(), [], 'nothing is changed in HNS');
  t.equal(first.child.exitCode, null, 'the first one goes on');
  await node.kill();
  node.start(...node.fromManifests);
  await node.healthy();
});
