import t from 'tap';
import { isEndpointName, parseHnsNetwork } from '../../src/config/hns-network.js';
import { fromFile, WINDOWS } from './load-from.js';

t.test('an HNS network is found by name, name prefix or type', (t) => {
  t.same(parseHnsNetwork('flannel.4096'), { by: 'name', text: 'flannel.4096' });
  t.same(parseHnsNetwork('vpcbr*'), { by: 'prefix', text: 'vpcbr' });
  t.same(parseHnsNetwork('Calico.*'), { by: 'prefix', text: 'Calico' }, "as Calico's scripts write KUBE_NETWORK");
  t.same(parseHnsNetwork('type=overlay'), { by: 'type', text: 'Overlay' }, 'in any case');
  for (const text of ['', '*', '.*', 'a*b', '*b', 'type=', 'type=Bogus']) t.equal(parseHnsNetwork(text), null, text);
  t.end();
});

t.test('an HNS endpoint name is not mistaken for an address', (t) => {
  for (const name of ['source_vip', 'Calico_ep', 'flannel.4096_ep']) t.ok(isEndpointName(name), name);
  for (const text of ['', '10.0.0.300', '10.0.0.1/24', 'fd00::12', 'a b']) t.notOk(isEndpointName(text), text);
  t.end();
});

t.test('HNS names that match no network or source are refused', (t) => {
  t.throws(
    () => fromFile('winkernel: {networkName: "*"}', [], WINDOWS),
    /winkernel\.networkName: Invalid value: "\*": must be the name of an HNS network, the beginning of one/,
  );
  t.match(fromFile('winkernel: {networkName: a, sourceVip: Calico_ep}', [], WINDOWS).config.kernelspace, {
    sourceVip: null,
    sourceVipEndpoint: 'Calico_ep',
  });
  t.end();
});
