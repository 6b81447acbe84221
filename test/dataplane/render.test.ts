import '../support/namespace.js';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { render } from '../../src/cli/commands.js';
import { systemFiles } from '../../src/config/files.js';
import { loadConfig } from '../../src/config/load.js';
import { loadAddon } from '../../src/native/load.js';

const FOLDER = 'test/dataplane/rendered';

/** What `node dist/main.js render` prints with these flags; how iptables.txt is written anew. */
async function rendered(...flags: readonly string[]): Promise<string> {
  const argv = [
    '--hostname-override=me',
    '--cluster-cidr=10.0.0.0/16,fd00:10::/64',
    `--manifests=${FOLDER}/cluster.yaml`,
  ];
  const loaded = loadConfig(['render', ...flags, ...argv], systemFiles);
  if (loaded.command !== 'render') throw new Error('not for render');
  const { text, errors } = await render(loaded.config, loadAddon());
  if (errors.length > 0) throw new Error(errors.join('\n'));
  return text;
}

/** What a program says against a text; empty when it would take it. */
function objection(program: string, argv: readonly string[], input: string): string {
  // nft opens /dev/stdin by name, which a pipe allows and the socket that spawn makes does not.
  const shell = ['-c', 'cat | "$@"', 'sh', program, ...argv];
  const { status, stderr } = spawnSync('sh', shell, { input, encoding: 'utf8' });
  return status === 0 ? '' : `status ${String(status)}: ${stderr}`;
}

for (const flavor of ['nft', 'legacy'] as const) {
  t.test(`iptables rules are as they were reviewed, and iptables-${flavor}-restore would take them`, async (t) => {
    const text = await rendered('--proxy-mode=iptables', `--iptables-flavor=${flavor}`);
    const [, ipv4 = '', ipv6 = ''] = text.split(/^# IPv[46]\n/m);
    const reviewed = readFileSync(`${FOLDER}/iptables.txt`, 'utf8');
    t.same(text.split('\n'), reviewed.split('\n'));
    for (const [program, stream] of [
      [`iptables-${flavor}-restore`, ipv4],
      [`ip6tables-${flavor}-restore`, ipv6],
    ] as const) {
      t.equal(objection(program, ['--test', '--noflush'], stream), '', program);
      const broken = stream.replace(/^-A KUBE-SERVICES .*$/m, '$& --no-such-option');
      t.not(objection(program, ['--test', '--noflush'], broken), '', `${program} would say so`);
    }
  });
}

t.test('nft would take the rendered tables', async (t) => {
  // nft 1.0.6 knows the flag "dynamic" as text only.
  const text = await rendered('--proxy-mode=nftables');
  const known = JSON.parse(text, (_, value: unknown) =>
    Array.isArray(value) ? value.filter((each) => each !== 'dynamic') : value,
  ) as unknown;
  const input = JSON.stringify(known);
  t.equal(objection('nft', ['-j', '-c', '-f', '-'], input), '');
  const broken = input.replace('"masquerade":', '"masquerades":');
  t.not(objection('nft', ['-j', '-c', '-f', '-'], broken), '', 'nft would say so');
});
