import '../support/namespace.js';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const UDP_TIMEOUT = '/proc/sys/net/netfilter/nf_conntrack_udp_timeout';

/** Runs with the flags, with nothing to be set but the UDP timeout. */
function init(udpTimeout: string): { readonly status: number | null; readonly stderr: string } {
  const others = ['max-per-core', 'tcp-timeout-established', 'tcp-timeout-close-wait'];
  const argv = [
    '--init-only',
    '--proxy-mode=nftables',
    ...others.map((name) => `--conntrack-${name}=0`),
    `--conntrack-udp-timeout=${udpTimeout}`,
  ];
  return spawnSync(process.execPath, [MAIN, ...argv], { encoding: 'utf8' });
}

t.test('CL-62: kernel settings are made, without any source, and the process ends', (t) => {
  t.match(init('77s'), { status: 0, stderr: '' });
  t.equal(readFileSync(UDP_TIMEOUT, 'utf8').trim(), '77');
  t.end();
});

t.test('a setting that cannot be made ends with an error', (t) => {
  const { status, stderr } = init('2000000h');
  t.equal(status, 1);
  t.match(stderr, /could not set kernel parameters: \S*nf_conntrack_udp_timeout should be 7200000000/);
  t.end();
});
