import t from 'tap';
import { hcnFeatures, type HcnFeatures } from '../../src/native/contract.js';

t.test('each version of HNS has its features', (t) => {
  const has = (major: number, minor: number): readonly string[] =>
    Object.entries(hcnFeatures({ major, minor }) satisfies HcnFeatures).flatMap(([name, is]) => (is ? [name] : []));
  t.same(has(9, 1), []);
  t.same(has(9, 2), ['v2', 'remoteSubnet']);
  t.same(has(9, 9), ['v2', 'remoteSubnet', 'dsr'], 'some features came to an older major version first');
  t.same(has(10, 1), ['v2', 'remoteSubnet'], 'and are not in the next');
  t.same(has(10, 2), ['v2', 'remoteSubnet', 'dsr']);
  t.same(has(11, 10), ['v2', 'remoteSubnet', 'dsr', 'ipv6DualStack']);
  t.same(has(15, 3), ['v2', 'remoteSubnet', 'dsr', 'ipv6DualStack', 'sessionAffinity']);
  t.same(has(15, 4), has(15, 3), 'which takes a modification and changes nothing');
  t.same(has(15, 5), [...has(15, 3), 'modifyLoadBalancer']);
  t.same(has(16, 0), has(15, 5));
  t.end();
});
