import '../../support/namespace.js';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { render } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCommand } from '../../support/load-command.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';

const FOLDER = 'test/dataplane/iptables/rendered';

/** What `node dist/main.js` prints with these flags, which is how rules.txt is written anew. */
async function rendered(flavor: string): Promise<string> {
  const node = [
    '--hostname-override=me',
    '--cluster-cidr=10.0.0.0/16,fd00:10::/64',
    `--manifests=${FOLDER}/cluster.yaml`,
  ];
  const argv = ['render', '--proxy-mode=iptables', `--iptables-flavor=${flavor}`, ...node];
  const loaded = loadCommand(argv, systemFiles);
  if (loaded.command !== 'render') throw new Error('not for render');
  const { text, errors } = await render(loaded.config, { host: LINUX_HOST, addon: loadAddon() });
  if (errors.length > 0) throw new Error(errors.join('\n'));
  return text;
}

/** What a program says against a stream; empty when it would take it. */
function objection(program: string, input: string): string {
  const { status, stderr } = spawnSync(program, ['--test', '--noflush'], { input, encoding: 'utf8' });
  return status === 0 ? '' : `status ${String(status)}: ${stderr}`;
}

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`iptables rules are as they were reviewed, and iptables-${flavor}-restore would take them`, async (t) => {
    const text = await rendered(flavor);
    const [, ipv4 = '', ipv6 = ''] = text.split(/^# IPv[46]\n/m);
    const reviewed = readFileSync(`${FOLDER}/rules.txt`, 'utf8');
    t.same(text.split('\n'), reviewed.split('\n'));
    for (const [program, stream] of [
      [`iptables-${flavor}-restore`, ipv4],
      [`ip6tables-${flavor}-restore`, ipv6],
    ] as const) {
      t.equal(objection(program, stream), '', program);
      const broken = stream.replace(/^-A KUBE-SERVICES .*$/m, '$& --no-such-option');
      t.not(objection(program, broken), '', `${program} would say so`);
    }
  });
}
