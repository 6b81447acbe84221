import { readFileSync } from 'node:fs';
import t from 'tap';
import { addressBytes, type IPAddress } from '../../../src/base/ip.js';
import { render } from '../../../src/cli/commands.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadCommand } from '../../support/load-command.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';
import { composeAddon } from '../../../src/native/subsystems.js';
import { address } from '../../support/rows.js';

const FOLDER = 'test/dataplane/ipvs/rendered';
const CLUSTER = 'test/dataplane/iptables/rendered/cluster.yaml';
const SETTINGS = ['--ipvs-scheduler=mh', '--ipvs-tcp-timeout=15m', '--ipvs-udp-timeout=90s'];

/** What `node dist/main.js` prints with these flags on a node of these addresses, which is how messages.txt is written anew. */
async function rendered(...flags: readonly string[]): Promise<string> {
  const own: readonly IPAddress[] = ['192.168.0.2', '2001:db8::1'].map(address);
  const node = ['--hostname-override=me', '--cluster-cidr=10.0.0.0/16,fd00:10::/64', `--manifests=${CLUSTER}`];
  const loaded = loadCommand(['render', '--proxy-mode=ipvs', ...SETTINGS, ...node, ...flags], systemFiles);
  if (loaded.command !== 'render') throw new Error('not for render');
  const addon = loadAddon();
  const [ipv4 = [], ipv6 = []] = [4, 16].map((length) =>
    own.map(addressBytes).flatMap((bytes) => (bytes.length === length ? [...bytes] : [])),
  );
  const links = [{ link: 'eth0', ipv4: Uint8Array.from(ipv4), ipv6: Uint8Array.from(ipv6) }];
  const route = { allAddresses: () => Promise.resolve(links) };
  const placed = composeAddon((name) => (name === 'route' ? { ...addon[name], ...route } : addon[name]));
  const { text, errors } = await render(loaded.config, { host: LINUX_HOST, addon: placed });
  if (errors.length > 0) throw new Error(errors.join('\n'));
  return text;
}

t.test('messages and rules of ipvs mode match the reviewed file', async (t) => {
  const text = await rendered();
  t.same(text.split('\n'), readFileSync(`${FOLDER}/messages.txt`, 'utf8').split('\n'));
});

t.test('rules that count refusals exist on demand only', async (t) => {
  const plain = (await rendered()).split('\n');
  const counting = (await rendered('--service-telemetry')).split('\n');
  const lines = [
    ...plain.filter((line) => !counting.includes(line)).map((line) => `- ${line}`),
    ...counting.filter((line) => !plain.includes(line)).map((line) => `+ ${line}`),
  ];
  t.same([...lines, ''], readFileSync(`${FOLDER}/counting.txt`, 'utf8').split('\n'));
});
