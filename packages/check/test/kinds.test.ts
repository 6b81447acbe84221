// Every rule of every kind once: documents that are right, and documents that are wrong with all that is said of them.
import t from 'tap';
import { check } from '../src/command.js';
import { RELEASE, SECRET } from './golden/golden.js';
import { KINDS } from './golden/kinds.js';

async function findings(
  text: string,
  release: number,
): Promise<{ readonly lines: readonly string[]; readonly status: number }> {
  const { stdout, stderr, status } = await check([`--kubernetes-version=1.${release}`, 'f.yaml'], () => text);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return {
    lines: [...lines, ...(stderr === '' ? [] : [stderr])].map((line) => line.replace(/^f\.yaml:\d+: document 1: /, '')),
    status,
  };
}

for (const { apiVersion, kind, release = RELEASE, right, wrong } of KINDS) {
  t.test(`check of ${apiVersion} ${kind}, Kubernetes 1.${release}`, async (t) => {
    const header = `apiVersion: ${apiVersion}\nkind: ${kind}\n`;
    for (const body of right) t.same(await findings(header + body, release), { lines: [], status: 0 }, body);
    for (const [body, ...expected] of wrong) {
      const { lines, status } = await findings(header + body, release);
      t.same([...lines].sort(), [...expected].sort(), body);
      t.equal(status, expected.some((line) => line.startsWith('error')) ? 1 : 0, body);
      t.notOk(
        lines.some((line) => line.includes(SECRET)),
        body,
      );
    }
  });
}
