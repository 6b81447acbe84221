import t from 'tap';
import { EndpointList, endpointSize, packedKey, printEndpoint } from '../../src/base/endpoint-list.js';
import { addressFromBytes, FAMILIES } from '../../src/base/ip.js';
import { SeededRandom } from '../support/random.js';
import { address } from '../support/rows.js';

t.test('packed endpoint lists read back as they were', (t) => {
  const random = new SeededRandom(1);
  for (const family of FAMILIES) {
    for (let round = 0; round < 200; round++) {
      const length = endpointSize(family) - 2;
      const endpoints = Array.from({ length: random.below(20) }, () => ({
        address: addressFromBytes(Uint8Array.from({ length }, () => random.below(256))),
        port: random.below(65_536),
      }));
      const list = EndpointList.of(family, endpoints);
      t.equal(list.count, endpoints.length);
      t.same(
        endpoints.map((_, index) => ({ address: list.address(index), port: list.port(index) })),
        endpoints,
      );
      t.same(
        list.toStrings(),
        endpoints.map((endpoint) => printEndpoint(endpoint.address, endpoint.port)),
      );
      const again = new EndpointList(family, Uint8Array.from(list.packed));
      t.ok(list.equals(again));
      const keys = endpoints.map((_, index) => list.key(index));
      t.same(Buffer.from(keys.join(''), 'latin1'), Buffer.from(list.packed), 'keys are the bytes');
    }
  }
  t.end();
});

t.test('a packed endpoint is its address, then its port, in network order', (t) => {
  const list = EndpointList.of('IPv4', [{ address: address('10.0.0.1'), port: 0x1f90 }]);
  t.same(list.packed, Uint8Array.of(10, 0, 0, 1, 0x1f, 0x90));
  const six = EndpointList.of('IPv6', [{ address: address('fd00::1'), port: 443 }]);
  t.same(six.packed, Uint8Array.from([0xfd, ...new Array<number>(14).fill(0), 1, 1, 187]));
  t.same(six.toStrings(), ['[fd00::1]:443']);
  t.end();
});

t.test('endpoint lists are equal by family, order and bytes', (t) => {
  const one = { address: address('10.0.0.1'), port: 80 };
  const two = { address: address('10.0.0.2'), port: 80 };
  const list = EndpointList.of('IPv4', [one, two]);
  t.ok(list.equals(EndpointList.of('IPv4', [one, two])));
  t.notOk(list.equals(EndpointList.of('IPv4', [two, one])));
  t.notOk(list.equals(EndpointList.of('IPv4', [one])));
  t.notOk(list.equals(EndpointList.of('IPv4', [one, { ...two, port: 81 }])));
  t.notOk(EndpointList.of('IPv4', []).equals(EndpointList.of('IPv6', [])));
  t.notOk(new EndpointList('IPv4', new Uint8Array(18)).equals(new EndpointList('IPv6', new Uint8Array(18))));
  t.end();
});

t.test('an endpoint list can be read inside a larger buffer', (t) => {
  const buffer = Uint8Array.of(99, 10, 0, 0, 1, 0, 80, 10, 0, 0, 2, 0, 81, 99);
  const list = new EndpointList('IPv4', buffer.subarray(1, 13));
  t.same(list.toStrings(), ['10.0.0.1:80', '10.0.0.2:81']);
  t.equal(list.key(1), packedKey(buffer, 7, 6));
  t.end();
});

t.test('bytes that are no whole number of endpoints are refused', (t) => {
  t.throws(() => new EndpointList('IPv4', new Uint8Array(7)), RangeError);
  t.throws(() => new EndpointList('IPv6', new Uint8Array(6)), RangeError);
  t.equal(new EndpointList('IPv6', new Uint8Array(0)).count, 0);
  t.end();
});
