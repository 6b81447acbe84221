import t from 'tap';
import { kernelSettings, planSettings } from '../../src/control/settings.js';
import { fromFile } from '../config/load-from.js';

t.test('ST-44: loopback is routed where node ports answer there, once that is guarded', (t) => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['', true],
    ['mode: nftables', false],
    ['iptables: {localhostNodePorts: false}', false],
    ['nodePortAddresses: ["10.0.0.0/8"]', false],
    ['nodePortAddresses: ["2001:db8::/64"]', true],
    ['nodePortAddresses: ["10.0.0.0/8", "127.0.0.0/8"]', true],
    ['nodePortAddresses: ["127.0.0.1/32"]', true],
    ['nodePortAddresses: ["0.0.0.0/0"]', true],
    ['nodePortAddresses: [primary]', false],
  ];
  for (const [body, expected] of rows) {
    const { config } = fromFile(body);
    t.equal(kernelSettings(config, planSettings(config)).opensLoopback, expected, body);
    t.notOk(kernelSettings(config, null).opensLoopback, 'not before the rules are there');
    const before = planSettings(fromFile('nodePortAddresses: [primary]').config);
    t.notOk(kernelSettings(config, before).opensLoopback, 'nor before those of this configuration are');
  }
  t.end();
});
