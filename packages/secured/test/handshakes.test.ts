// Which new connections are accepted while an attacker with many addresses opens connections.
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { Handshakes, ADDRESS_HANDSHAKES_AT_ONCE, HANDSHAKES_AT_ONCE } from '../src/handshakes.js';
import { FakeClock } from '../../../test/support/fake-clock.js';
import { folder, open } from './scene.js';

function flood(handshakes: Handshakes, address: (index: number) => string): number {
  return Array.from({ length: 1000 }, (_, index) => handshakes.take(address(index))).filter((taken) => taken).length;
}

const IPV4 = (index: number): string => `198.18.${index >> 8}.${index & 255}`;

t.test('an attacker with many addresses takes no handshakes of loopback and of admitted clients', (t) => {
  const clock = new FakeClock();
  const handshakes = new Handshakes(clock);
  handshakes.admit('192.0.2.1');
  handshakes.admit('2001:db8::1');
  t.equal(flood(handshakes, IPV4), HANDSHAKES_AT_ONCE);
  t.equal(handshakes.take('192.0.2.9'), false, 'an unknown client');
  for (const address of ['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::2', '127.0.0.1', '::1'])
    t.equal(handshakes.take(address), true, address);
  for (let index = 0; index < 600; index++) handshakes.admit(IPV4(index));
  t.equal(handshakes.take('192.0.2.1'), false, 'forgotten after 512 others');
  t.end();
});

t.test('IPv6 addresses of one network of 64 bits share the handshakes of one client', (t) => {
  const handshakes = new Handshakes(new FakeClock());
  t.equal(
    flood(handshakes, (index) => `2001:db8::${(index + 1).toString(16)}`),
    ADDRESS_HANDSHAKES_AT_ONCE,
  );
  t.equal(handshakes.take('2001:db8:0:1::1'), true, 'another network');
  t.end();
});

t.test('a client is admitted by a request that was answered with success', async (t: Test) => {
  const opened = await open(['--metrics-tls', `--cert-dir=${folder(t)}`], {});
  if ('problem' in opened) throw new Error(opened.problem);
  t.teardown(() => opened.close());
  const server = opened.createServer({});
  const from = (remoteAddress: string): Socket =>
    Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
  const isRefused = (remoteAddress: string): boolean => {
    const socket = from(remoteAddress);
    t.teardown(() => socket.destroy());
    server.emit('connection', socket);
    return socket.destroyed;
  };
  for (const [address, status] of [
    ['192.0.2.1', 200],
    ['192.0.2.2', 404],
  ] as const) {
    const request = Object.assign(new IncomingMessage(from(address)), { method: 'GET', url: '/metrics' });
    const response = new ServerResponse(request);
    await new Promise<void>((answered) => {
      opened.admit(request, response, () => {
        response.statusCode = status;
        response.emit('finish');
        answered();
        return Promise.resolve();
      });
    });
  }
  const refused = Array.from({ length: 300 }, (_, index) => isRefused(IPV4(index))).filter((each) => each).length;
  t.equal(refused, 300 - HANDSHAKES_AT_ONCE);
  t.same([isRefused('192.0.2.1'), isRefused('192.0.2.2')], [false, true]);
});
