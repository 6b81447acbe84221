import t, { type Test } from 'tap';
import { AuthServer } from '../../support/auth-server.js';
import { Authority } from '../../support/certificates.js';
import { startHttpProxy, startSocksProxy, type ForwardProxy } from '../../support/forward-proxies.js';
import { connect, fetchText } from './connect.js';

const authority = new Authority();
const names = { commonName: 'server', alternativeNames: ['IP:127.0.0.1', 'DNS:api.test'] };
const pair = authority.issue(names);
const client = authority.issue({ commonName: 'node-proxy' });
const server = await AuthServer.start({
  cert: pair.certificate,
  key: pair.key,
  ca: authority.own.certificate,
  requestCert: true,
  rejectUnauthorized: false,
});
const plain = await AuthServer.start(null);
const certificates = { 'certificate-authority': authority.own.certificateFile };
const user = { token: 'secret', 'client-certificate': client.certificateFile, 'client-key': client.keyFile };

t.teardown(async () => {
  await Promise.all([server.stop(), plain.stop()]);
  authority.remove();
});

/** Status and text of a GET through the proxy; the server's name is known to the proxy alone. */
async function through(t: Test, proxyUrl: string, target = server.url('api.test'), added = {}): Promise<string> {
  const cluster = { server: target, 'proxy-url': proxyUrl, ...certificates, ...added };
  return fetchText(await connect(t, { cluster, user }));
}

function stopWith(t: Test, proxy: ForwardProxy): ForwardProxy {
  t.teardown(() => proxy.stop());
  return proxy;
}

t.test('requests go through an HTTP proxy', async (t) => {
  const proxy = stopWith(t, await startHttpProxy(null));
  t.equal(await through(t, `http://127.0.0.1:${proxy.port}`), '200 ok');
  t.same([server.last.client, server.last.headers.authorization], ['node-proxy', 'Bearer secret']);
  t.notOk('proxy-authorization' in server.last.headers);
  t.equal(await through(t, `http://us%40er:pa%3Ass@127.0.0.1:${proxy.port}`), '200 ok');
  t.same(proxy.asked, [`CONNECT api.test:${server.port}`, `CONNECT api.test:${server.port} us@er:pa:ss`]);
});

t.test('requests to a server without TLS go through an HTTP proxy', async (t) => {
  const proxy = stopWith(t, await startHttpProxy(null));
  t.equal(await through(t, `http://a:b@127.0.0.1:${proxy.port}`, plain.url('api.test')), '200 ok');
  t.same(proxy.asked, [`GET http://api.test:${plain.port}/version a:b`]);
  t.equal(plain.last.headers.host, `api.test:${plain.port}`);
});

t.test('an HTTPS proxy shows its certificate and gets none', async (t) => {
  const proxy = stopWith(t, await startHttpProxy(pair));
  t.equal(await through(t, `https://a:b@127.0.0.1:${proxy.port}`), '200 ok');
  t.same(proxy.asked, [`CONNECT api.test:${server.port} a:b`]);
  t.equal(server.last.client, 'node-proxy');
  const stranger = new Authority('another');
  t.teardown(() => {
    stranger.remove();
  });
  const wrong = stopWith(t, await startHttpProxy(stranger.issue(names)));
  await t.rejects(through(t, `https://127.0.0.1:${wrong.port}`), {
    code: 'tls',
    message: /proxy https:\/\/127\.0\.0\.1:\d+: TLS/,
  });
  const unnamed = stopWith(t, await startHttpProxy(authority.issue({ commonName: 'localhost', use: 'server' })));
  await t.rejects(through(t, `https://localhost:${unnamed.port}`), {
    code: 'tls',
    message: /proxy https:\/\/localhost:\d+: TLS: .* a common name does not count/,
  });
});

t.test('requests go through a SOCKS5 proxy', async (t) => {
  const open = stopWith(t, await startSocksProxy(null));
  t.equal(await through(t, `socks5://127.0.0.1:${open.port}`), '200 ok');
  t.equal(await through(t, `socks5://127.0.0.1:${open.port}`, server.url()), '200 ok');
  t.equal(await through(t, `socks5://127.0.0.1:${open.port}`, plain.url('api.test')), '200 ok', 'without TLS');
  t.same(open.asked, [
    `type 3 api.test:${server.port}`,
    `type 1 127.0.0.1:${server.port}`,
    `type 3 api.test:${plain.port}`,
  ]);
  const guarded = stopWith(t, await startSocksProxy('me:päss'));
  t.equal(await through(t, `socks5://me:p%C3%A4ss@127.0.0.1:${guarded.port}`), '200 ok');
  t.same(guarded.asked, [`type 3 api.test:${server.port} me:päss`]);
  const url = `127.0.0.1:${guarded.port}`;
  await t.rejects(through(t, `socks5://me:wrong@${url}`), { code: 'connect', message: /refused/ });
  await t.rejects(through(t, `socks5://${url}`), { code: 'connect', message: /wants a user name and password/ });
});

t.test('proxies that fail are reported', async (t) => {
  const refusing = stopWith(t, await startHttpProxy(null, { refuse: '407 Proxy Authentication Required' }));
  await t.rejects(through(t, `http://127.0.0.1:${refusing.port}`), {
    code: 'connect',
    message:
      /cannot connect to api\.test:\d+: proxy http:\/\/127\.0\.0\.1:\d+: answered 407 Proxy Authentication Required/,
  });
  const unable = stopWith(t, await startSocksProxy(null, 4));
  await t.rejects(through(t, `socks5://127.0.0.1:${unable.port}`), { code: 'connect', message: /host unreachable/ });
  const gone = await startHttpProxy(null);
  await gone.stop();
  await t.rejects(through(t, `http://127.0.0.1:${gone.port}`), { code: 'connect', message: /ECONNREFUSED/ });
  await t.rejects(through(t, `socks5://127.0.0.1:${plain.port}`), { code: 'connect' }, 'no SOCKS server');
});

t.test('the proxy of the environment is used unless the kubeconfig has one', async (t) => {
  const proxy = stopWith(t, await startHttpProxy(null));
  const cluster = { server: server.url('api.test'), ...certificates };
  const dependencies = { env: { HTTPS_PROXY: `127.0.0.1:${proxy.port}` } };
  t.equal(await fetchText(await connect(t, { cluster }, { dependencies })), '200 ok');
  t.equal(proxy.asked.length, 1);
});
