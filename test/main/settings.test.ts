import t from 'tap';
import { ROUTE_LOCALNET } from '../../src/dataplane/sysctl.js';
import { kernelValues } from '../../src/main/settings.js';
import { fromFile } from '../config/load-from.js';

t.test('ST-44: loopback is routed where node ports answer there', (t) => {
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
    const values = kernelValues(fromFile(body).config);
    t.equal(values.includes(ROUTE_LOCALNET), expected, body);
  }
  t.end();
});
