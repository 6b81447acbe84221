import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { runNode, windowsPath } from './windows.js';

const PROGRAM = windowsPath(projectFile('dist/main.js'));

t.test('what needs no kernel', async (t) => {
  const version = await runNode([PROGRAM, '--version']);
  t.match(version, {
    status: 0,
    stdout: /^Kubernetes v1\.\d+\.\d+ \(pointsman \d+\.\d+\.\d+[^)]*\)\r?\n$/,
    stderr: '',
  });
  const help = await runNode([PROGRAM, '--help']);
  t.match(help, { status: 0, stdout: /--config/, stderr: '' });
});
