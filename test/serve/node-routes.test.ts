import t from 'tap';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { parseAddress, type Family, type IPAddress } from '../../src/base/ip.js';
import type { FrontendPlan } from '../../src/plan/types.js';
import { routesToEndpoints } from '../../src/serve/node-routes.js';

function table(family: Family, services: Readonly<Record<string, readonly string[]>>) {
  const frontends = Object.entries(services).map(([servicePort, addresses]) => ({
    servicePort,
    endpoints: EndpointList.of(
      family,
      addresses.map((text) => ({ address: parseAddress(text) as IPAddress, port: 8080 })),
    ),
    localEndpoints: null,
  }));
  return { family, frontends: () => (frontends as unknown as readonly FrontendPlan[]).values() };
}

function host(lost: (address: string) => boolean) {
  const asked: string[] = [];
  const routeProblem = (address: IPAddress) => {
    asked.push(address);
    return Promise.resolve(lost(address) ? 'ENETUNREACH' : null);
  };
  return { asked, routeProblem };
}

t.test('routes are looked up once for each network of endpoints, and missing ones are one warning', async (t) => {
  const node = host((address) => /^10\.1\.[23]\.|^fd00:1:2:/.test(address));
  const tables = [
    table('IPv4', { 'shop/api': ['10.1.1.1', '10.1.1.2'], 'shop/web:http': ['10.1.1.3', '10.1.2.7', '10.1.3.8'] }),
    table('IPv6', { 'shop/web:http': ['fd00:1:2:3::7', 'fd00:1:2:3:ffff::8', 'fd00:1:3::1'] }),
  ];
  t.same(await routesToEndpoints(node, tables), [
    {
      kind: 'route',
      severity: 'warning',
      text: 'there is no route to 3 of 5 endpoint networks, as fd00:1:2:3::/64 of shop/web:http: ENETUNREACH',
      remedy: 'see that the network plugin has written the route (ip route get fd00:1:2:3::7)',
    },
  ]);
  t.same(node.asked, ['10.1.1.1', 'fd00:1:2:3::7', '10.1.2.7', 'fd00:1:3::1', '10.1.3.8']);
  t.same(
    await routesToEndpoints(
      host(() => false),
      tables,
    ),
    [],
  );
  t.same(await routesToEndpoints(node, [table('IPv4', {})]), []);
});

t.test('routes of at most 32 networks of endpoints are looked up', async (t) => {
  const node = host(() => true);
  const many = Array.from({ length: 200 }, (_, index) => `10.1.${index}.1`);
  const tables = [table('IPv4', { many }), table('IPv6', { few: ['fd00::1', 'fd00:0:0:1::1'] })];
  t.match(await routesToEndpoints(node, tables), [
    { text: /no route to 32 of the first 32 endpoint networks, as 10\.1\.0\.0\/24 of many: ENETUNREACH/ },
  ]);
  t.equal(node.asked.length, 32);
  t.equal(node.asked.filter((address) => address.includes(':')).length, 2, 'of each family in turn');
});
