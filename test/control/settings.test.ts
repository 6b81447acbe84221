import t from 'tap';
import { kernelValues, planSettings } from '../../src/control/settings.js';
import { ROUTE_LOCALNET } from '../../src/host/linux/sysctl.js';
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
    t.equal(kernelValues(config, planSettings(config)).includes(ROUTE_LOCALNET), expected, body);
    t.notOk(kernelValues(config, null).includes(ROUTE_LOCALNET), 'not before the rules are there');
    const before = planSettings(fromFile('nodePortAddresses: [primary]').config);
    t.notOk(kernelValues(config, before).includes(ROUTE_LOCALNET), 'nor before those of this configuration are');
  }
  t.end();
});
