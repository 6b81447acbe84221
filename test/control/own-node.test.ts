import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import type { Config } from '../../src/config/config.js';
import { systemFiles } from '../../src/config/files.js';
import { loadConfig } from '../../src/config/load.js';
import { checkNode } from '../../src/control/node-checks.js';
import { OwnNode } from '../../src/control/own-node.js';
import { Store } from '../../src/state/store.js';
import { fromFile, WINDOWS } from '../config/load-from.js';
import { RecordingLog } from '../support/recording-log.js';
import { node } from '../support/rows.js';

const BOTH: readonly Family[] = ['IPv4', 'IPv6'];
const PRIMARY = '--nodeport-addresses=primary';

function config(...flags: readonly string[]): Config {
  const argv = ['--proxy-mode=nftables', '--hostname-override=me', ...flags];
  const loaded = loadConfig(argv, systemFiles);
  if (loaded.command !== 'run') throw new Error(loaded.command);
  return loaded.config;
}

t.test('a setting without effect in mode kernelspace is no error, and does not end the start', (t) => {
  const four = node('me', ['192.168.0.2']);
  for (const body of [
    'clusterCIDR: fd00::/64',
    'clusterCIDR: 10.0.0.0/8,fd00::/64\nnodePortAddresses: [10.0.0.0/8]',
    'nodePortAddresses: [fd00::/64]',
    'nodePortAddresses: [primary]',
    'detectLocalMode: NodeCIDR',
  ]) {
    const loaded = fromFile(`${body}\nhostnameOverride: me`, [], WINDOWS).config;
    for (const row of [four, undefined])
      t.same(checkNode(loaded, ['IPv4'], row), { warnings: [], errors: [] }, body.replace('\n', ', '));
  }
  t.end();
});

t.test('ST-31 to ST-33: contradictions between Node and configuration are errors or warnings', (t) => {
  const four = node('me', ['192.168.0.2', '2001:db8::2']);
  const six = node('me', ['2001:db8::2', '192.168.0.2']);
  const rows: readonly [string, string[], readonly Family[], typeof four | undefined, RegExp | null, RegExp | null][] =
    [
      ['all is well', [PRIMARY], BOTH, four, null, null],
      ['a Node without addresses', [PRIMARY], BOTH, node('me'), /addresses are not known/, null],
      ['no Node', [PRIMARY], BOTH, undefined, /addresses are not known/, null],
      ['words and prefixes', [`${PRIMARY},localhost,10.0.0.0/8`], BOTH, four, null, null],
      ['the same, no Node', [`${PRIMARY},localhost`], BOTH, undefined, /not known: its other entries count/, null],
      ['the primary family lacks', ['--nodeport-addresses=10.0.0.0/8'], BOTH, six, /nothing of IPv6: node ports/, null],
      ['one family only', ['--nodeport-addresses=10.0.0.0/8'], BOTH, four, null, null],
      [
        'one of two families',
        ['--nodeport-addresses=10.0.0.0/8', '--cluster-cidr=10.0.0.0/8,fd00::/64'],
        BOTH,
        four,
        /nothing of IPv6: node ports/,
        null,
      ],
      [
        'clusterCIDR of the other family',
        [PRIMARY, '--cluster-cidr=fd00::/64'],
        BOTH,
        four,
        /clusterCIDR .*IPv4/,
        null,
      ],
      ['the same, one family', [PRIMARY, '--cluster-cidr=fd00::/64'], ['IPv4'], four, null, /clusterCIDR .*IPv4-only/],
      [
        'by bindAddress',
        [PRIMARY, '--cluster-cidr=10.0.0.0/8', '--bind-address=2001:db8::5'],
        BOTH,
        four,
        /IPv6-primary/,
        null,
      ],
      [
        'podCIDRs of the other family',
        [PRIMARY, '--detect-local-mode=NodeCIDR'],
        BOTH,
        node('me', ['192.168.0.2'], { podCIDRs: ['fd00::/64'] }),
        null,
        /podCIDRs .*IPv4/,
      ],
      ['a family the machine lacks', [PRIMARY], ['IPv4'], six, null, /no IPv6/],
      [
        'listening addresses of the other family',
        [PRIMARY, '--healthz-bind-address=[::1]:10256', '--metrics-bind-address=[::]:10249'],
        ['IPv4'],
        four,
        /healthzBindAddress is IPv6/,
        null,
      ],
    ];
  for (const [title, flags, families, own, warning, error] of rows) {
    const { warnings, errors } = checkNode(config(...flags), families, own);
    t.match(warnings, warning === null ? [] : [warning], title);
    t.equal(warnings.length, warning === null ? 0 : 1, warnings.join());
    t.match(errors, error === null ? [] : [error], title);
    t.equal(errors.length, error === null ? 0 : 1, errors.join());
  }
  const { warnings } = checkNode({ ...config(), nodePortAddresses: [] }, BOTH, four);
  t.match(warnings, [/nodePortAddresses is not set/]);
  t.end();
});

function world(): { readonly own: OwnNode; readonly log: RecordingLog; readonly fatal: string[] } {
  const log = new RecordingLog();
  const fatal: string[] = [];
  const own = new OwnNode({ families: BOTH, log, onFatal: ({ message }) => fatal.push(message) });
  return { own, log, fatal };
}

t.test('NodeCIDR: nothing is programmed before the pod CIDRs are known, and known ones are kept', (t) => {
  const { own, log, fatal } = world();
  const settings = config(PRIMARY, '--detect-local-mode=NodeCIDR');
  const view = (): unknown => own.view(new Store().snapshot, 'me').node('me');
  t.equal(own.update(settings, undefined), false);
  t.equal(own.update(settings, undefined), false);
  t.equal(own.update(settings, node('me', ['192.168.0.2'])), false);
  t.match(
    log.lines.filter((line) => line.includes('nothing is programmed')),
    [/there is no Node me/, /has no podCIDRs/],
  );
  const complete = node('me', ['192.168.0.2'], { podCIDRs: ['10.244.1.0/24'], zone: 'a' });
  t.equal(own.update(settings, complete), true);
  t.equal(log.lines.at(-1), 'info 0 pod CIDRs are known');
  t.match(view(), complete);
  for (const later of [node('me'), undefined]) {
    t.equal(own.update(settings, later), true, 'later it goes on');
    t.match(view(), { addresses: ['192.168.0.2'], podCIDRs: ['10.244.1.0/24'], zone: null });
  }
  const moved = node('me', ['192.168.0.3'], { podCIDRs: ['10.244.9.0/24'] });
  own.update(settings, moved);
  t.match(view(), moved, 'what is newer counts');
  t.same(fatal, []);
  t.equal(own.update(settings, node('me', ['192.168.0.3'], { podCIDRs: ['fd00::/64'] })), true);
  t.same(fatal, [], 'a process at work is not ended');
  t.match(log.lines.at(-1), /^warn the Node's podCIDRs have nothing of IPv4/);
  t.end();
});

t.test('a change to NodeCIDR waits for the pod CIDRs too', (t) => {
  const { own, fatal } = world();
  const plain = node('me', ['192.168.0.2']);
  t.equal(own.update(config(PRIMARY), plain), true);
  const settings = config(PRIMARY, '--detect-local-mode=NodeCIDR');
  t.equal(own.waitsFor, null);
  t.equal(own.update(settings, plain), false);
  t.match(own.waitsFor, /^Node me has no podCIDRs/);
  t.equal(own.update(config(PRIMARY), plain), true, 'and back');
  t.equal(own.waitsFor, null);
  t.equal(own.update(settings, plain), false);
  t.equal(own.update(settings, node('me', ['192.168.0.2'], { podCIDRs: ['10.244.1.0/24'] })), true);
  t.same(fatal, []);
  t.end();
});

t.test('ST-33: an impossible configuration ends the process before anything is programmed', (t) => {
  const { own, fatal } = world();
  const wrong = node('me', ['192.168.0.2'], { podCIDRs: ['fd00::/64'] });
  t.equal(own.update(config(PRIMARY, '--detect-local-mode=NodeCIDR'), wrong), false);
  t.match(fatal, [/podCIDRs have nothing of IPv4/]);
  t.end();
});
