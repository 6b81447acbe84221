// needs: nft
import '../support/namespace.js';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { node } from '../support/lab/objects.js';
import { PROGRAM } from '../support/program.js';

const UDP_TIMEOUT = '/proc/sys/net/netfilter/nf_conntrack_udp_timeout';

const folder = mkdtempSync(join(tmpdir(), 'init-'));
t.teardown(() => {
  rmSync(folder, { recursive: true });
});
const manifest = join(folder, 'node.json');
writeFileSync(manifest, JSON.stringify(node('me', { addresses: ['192.0.2.1', '2001:db8::1'] })));

interface Ended {
  readonly status: number | null;
  readonly stderr: string;
}

/** Runs with the flags, with nothing to be set but the UDP timeout. */
function init(udpTimeout: string, flags: readonly string[] = [], launcher: readonly string[] = []): Ended {
  const others = ['max-per-core', 'tcp-timeout-established', 'tcp-timeout-close-wait'];
  const argv = [
    PROGRAM,
    '--init-only',
    '--proxy-mode=nftables',
    '--hostname-override=me',
    '--masquerade-all',
    `--manifests=${manifest}`,
    ...others.map((name) => `--conntrack-${name}=0`),
    `--conntrack-udp-timeout=${udpTimeout}`,
    ...flags,
  ];
  const [command = '', ...rest] = [...launcher, ...argv];
  return spawnSync(command, rest, { encoding: 'utf8' });
}

function ruleset(): string {
  return spawnSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }).stdout;
}

t.test('CL-62: --init-only sets kernel parameters, tries the kernel interface and exits', (t) => {
  spawnSync('nft', ['add', 'table', 'ip', 'kube-proxy']);
  const before = ruleset();
  t.match(init('77s'), { status: 0, stderr: '' });
  t.equal(readFileSync(UDP_TIMEOUT, 'utf8').trim(), '77');
  t.equal(ruleset(), before, 'nothing is left behind, nothing is touched');
  t.end();
});

t.test('--init-only exits with an error if a kernel parameter cannot be set', (t) => {
  const { status, stderr } = init('2000000h');
  t.equal(status, 1);
  t.match(stderr, /could not set kernel parameters: \S*nf_conntrack_udp_timeout should be 7200000000/);
  t.end();
});

t.test('--init-only reports an unusable kernel interface and a Node without podCIDRs, and nothing else', (t) => {
  const { status, stderr } = init('77s', ['--detect-local-mode=NodeCIDR'], ['setpriv', '--bounding-set=-net_admin']);
  t.equal(status, 1);
  t.match(stderr, /not enough for mode nftables: .*EPERM/);
  t.match(stderr, /Node me has no podCIDRs, and detectLocalMode is NodeCIDR/);
  t.notMatch(stderr, /kernel parameters/, 'they are right already');
  t.end();
});

t.test('--init-only reports an unusable kubeconfig at once', (t) => {
  const { status, stderr } = init('77s', [`--kubeconfig=${join(folder, 'none')}`]);
  t.equal(status, 1);
  t.match(stderr, /none/);
  t.end();
});
