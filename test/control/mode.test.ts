import t from 'tap';
import { FAMILIES } from '../../src/base/ip.js';
import { modeProblems, prepareMode } from '../../src/control/mode.js';
import { ModeError } from '../../src/dataplane/mode.js';
import { modeDefinition } from '../../src/dataplane/modes.js';
import type { NativeAddon } from '../../src/native/contract.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { fromFile } from '../config/load-from.js';
import { NO_PROGRAMS } from '../support/fake-iptables/no-programs.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';
import { RecordingLog } from '../support/recording-log.js';

/** A host whose iptables programs, of the nft flavour, work for some families only. */
function host(served: readonly string[]): NativeAddon {
  return new FakeKernel(
    loadCompiler(),
    {},
    {
      ...NO_PROGRAMS,
      iptablesFlavors: (family) =>
        Promise.resolve(served.includes(family) ? [{ flavor: 'nft', version: '1.8.9' }] : []),
    },
  );
}

t.test('ST-30: missing programs are one clear error, those of one family a warning', async (t) => {
  const log = new RecordingLog();
  const prepare = (served: readonly string[], flags: readonly string[] = []): ReturnType<typeof prepareMode> =>
    prepareMode(fromFile('', flags).config, { host: LINUX_HOST, addon: host(served) }, FAMILIES, log);
  await t.rejects(
    prepare([]),
    new ModeError(
      'iptables is not available on this host: found no iptables-nft-restore or iptables-legacy-restore that works (mode nftables needs no programs)',
    ),
  );
  await t.rejects(prepare([], ['--iptables-flavor=nft']), { message: /found no iptables-nft-restore that works/ });
  const { families, own } = await prepare(['IPv4']);
  t.same(families, ['IPv4']);
  t.equal(own.flavor, 'nft');
  t.equal(own.footprint, modeDefinition('iptables').footprint);
  t.ok(log.lines.includes('warn no iptables-nft programs that work for IPv6, it is not served'));
});

t.test('a mode of another platform is refused', async (t) => {
  const elsewhere = { host: { ...LINUX_HOST, platform: 'win32' }, addon: host(['IPv4']) } as const;
  const refused = new ModeError('mode: nftables is for linux, and this host is win32');
  const { config } = fromFile('mode: nftables\n');
  await t.rejects(prepareMode(config, elsewhere, FAMILIES, new RecordingLog()), refused);
  await t.rejects(modeProblems(config, elsewhere, FAMILIES, new RecordingLog()), refused);
});
