import '../support/namespace.js';

import { existsSync } from 'node:fs';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';
import { endpoints, service } from '../support/virtual-services.js';

const { ipvs } = loadAddon();
const WEB = service('10.96.0.1', 80);

t.test('without ip_vs there are no virtual services, and the module is not loaded', async (t) => {
  const before = existsSync('/proc/net/ip_vs');
  t.same(await ipvs.ipvsServices('IPv4'), []);
  const [none] = await ipvs.ipvsDestinations([WEB]);
  t.same([none?.endpoints.length, none?.weights.length, none?.connections.length, none?.methods.length], [0, 0, 0, 0]);
  t.same([...(await ipvs.ipvsDestinationsDigests([WEB]))], [0]);
  t.equal(await ipvs.ipvsServicesDigest('IPv4'), await ipvs.ipvsServicesDigest('IPv6'));
  if (!before) t.equal(await ipvs.ipvsTimeouts(), null);
  t.same((await ipvs.ipvsApply([])).refused, []);
  t.equal(existsSync('/proc/net/ip_vs'), before);
});

t.test('ipvs: wrong arguments are named with their paths', (t) => {
  const state = { scheduler: 'rr', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  const set = { type: 'service', verb: 'set', service: WEB, state } as const;
  const some = {
    type: 'destinations',
    verb: 'new',
    service: WEB,
    endpoints: endpoints(['10.0.0.1', 80]),
    weight: 1,
  } as const;
  const cases: readonly (readonly [RegExp, Parameters<typeof ipvs.ipvsApply>[0][number]])[] = [
    [
      /operations\[1\]\.state\.scheduler: expected a string of 1 to 15 bytes/,
      { ...set, state: { ...state, scheduler: 'x'.repeat(16) } },
    ],
    [
      /operations\[1\]\.state\.flags: expected an integer from 0 to 61, found 64/,
      { ...set, state: { ...state, flags: 64 } },
    ],
    [
      /operations\[1\]\.state\.prefixLength: expected an integer from 0 to 32/,
      { ...set, state: { ...state, prefixLength: 64 } },
    ],
    [
      /operations\[1\]\.service\.address: expected Uint8Array of 4 bytes/,
      { ...set, service: { ...WEB, address: new Uint8Array(16) } },
    ],
    [/operations\[1\]\.service\.mark: expected an integer from 1 /, { ...set, service: { ...WEB, address: null } }],
    [/operations\[1\]\.endpoints: expected whole endpoints of 6 bytes/, { ...some, endpoints: new Uint8Array(7) }],
    [/operations\[1\]\.weight: expected an integer from 0 to 2147483647, found -1/, { ...some, weight: -1 }],
  ];
  for (const [message, operation] of cases)
    t.throws(() => ipvs.ipvsApply([set, operation]), { name: 'TypeError', message });
  t.throws(() => ipvs.ipvsSetTimeouts({ tcp: 1, tcpFin: 1, udp: 2 ** 31 }), TypeError);
  t.end();
});
