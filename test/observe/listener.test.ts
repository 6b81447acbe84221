import t from 'tap';
import { parseAddress } from '../../src/net/ip.js';
import { openBindAddress, type ListenSocket } from '../../src/observe/listener.js';

/** Opens as a host without IPv6 would, and writes down what it was asked. */
function attempts(code: string): { asked: string[]; open: (socket: ListenSocket) => Promise<string> } {
  const asked: string[] = [];
  const open = ({ address, port, dualStack }: ListenSocket): Promise<string> => {
    asked.push(`${address} ${port}${dualStack ? ' dual' : ''}`);
    if (address.includes(':')) return Promise.reject(Object.assign(new Error(`listen ${code}`), { code }));
    return Promise.resolve(address);
  };
  return { asked, open };
}

t.test('without IPv6 the wildcards fall back to IPv4', async (t) => {
  for (const code of ['EAFNOSUPPORT', 'EADDRNOTAVAIL']) {
    for (const wildcard of ['::', '0.0.0.0']) {
      const { asked, open } = attempts(code);
      t.equal(await openBindAddress(parseAddress(wildcard)!, 10256, open), '0.0.0.0');
      t.same(asked, [':: 10256 dual', '0.0.0.0 10256']);
    }
  }
});

t.test('a port in use is no reason to fall back', async (t) => {
  const { asked, open } = attempts('EADDRINUSE');
  await t.rejects(openBindAddress(parseAddress('0.0.0.0')!, 1, open), { code: 'EADDRINUSE' });
  t.same(asked, [':: 1 dual']);
});

t.test('a single address is opened as it is', async (t) => {
  const { asked, open } = attempts('EAFNOSUPPORT');
  await t.rejects(openBindAddress(parseAddress('2001:db8::1')!, 1, open), { code: 'EAFNOSUPPORT' });
  t.equal(await openBindAddress(parseAddress('192.0.2.1')!, 2, open), '192.0.2.1');
  t.same(asked, ['2001:db8::1 1', '192.0.2.1 2']);
});
