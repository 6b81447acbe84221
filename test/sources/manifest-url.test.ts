import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import t from 'tap';
import { PollTimer } from '../../src/sources/manifests/poll-timer.js';
import { loadManifests } from '../../src/sources/manifests/load.js';
import { Authority } from '../support/certificates.js';
import { ManifestRig, eventually, locationsOf, scratchDirectory, serviceYaml, yaml } from '../support/manifests.js';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server whose answers a test sets and whose requests it counts. */
class Origin {
  readonly requests: IncomingMessage[] = [];
  handler: Handler = send('');
  url = '';

  static async start(t: { teardown(work: () => unknown): unknown }): Promise<Origin> {
    const origin = new Origin();
    const server = createServer((request, response) => {
      origin.requests.push(request);
      origin.handler(request, response);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    origin.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/manifests`;
    return origin;
  }

  async served(more: number): Promise<void> {
    const target = this.requests.length + more;
    await eventually(() => this.requests.length >= target, `${more} more requests`);
  }
}

function send(text: string, status = 200, headers: Record<string, string> = {}): Handler {
  return (_request, response) => {
    response.writeHead(status, headers).end(text);
  };
}

/** No answer that comes takes that long, even where every core is busy with something else. */
const FAST = { urlPollMs: 20, urlTimeoutMs: 60_000 };
/** For answers that never come. */
const IMPATIENT = { ...FAST, urlTimeoutMs: 300 };

t.test('a manifest URL is polled with its headers', async (t) => {
  const origin = await Origin.start(t);
  origin.handler = send(serviceYaml('a'));
  const rig = new ManifestRig(t, [origin.url], FAST, [
    '--manifests-header=X-Token: secret,X-Other:one',
    '--manifests-header=x-other: two',
  ]);
  await rig.ready();
  t.equal(rig.services(), 'a:80');
  t.equal(origin.requests[0]?.headers['x-token'], 'secret');
  t.equal(origin.requests[0]?.headers['x-other'], 'one, two');
  t.equal(origin.requests[0]?.headers['accept-encoding'], undefined);
  origin.handler = send(yaml(serviceYaml('a', 81), serviceYaml('b')));
  await rig.shows('a:81 b:80');
  origin.handler = send(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [] }));
  await rig.shows('');
  t.same(rig.errors(), []);
});

t.test('ETag and Last-Modified are sent back as conditions, and 304 changes nothing', async (t) => {
  const origin = await Origin.start(t);
  origin.handler = (request, response) => {
    if (request.headers['if-none-match'] === '"v1"') response.writeHead(304).end();
    else
      response.writeHead(200, { ETag: '"v1"', 'Last-Modified': 'Fri, 31 Jan 2025 12:00:00 GMT' }).end(serviceYaml('a'));
  };
  const rig = new ManifestRig(t, [origin.url], FAST);
  await rig.ready();
  t.equal(origin.requests[0]?.headers['if-none-match'], undefined);
  await origin.served(3);
  t.equal(origin.requests.at(-1)?.headers['if-none-match'], '"v1"');
  t.equal(origin.requests.at(-1)?.headers['if-modified-since'], 'Fri, 31 Jan 2025 12:00:00 GMT');
  t.equal(rig.writer.commits.length, 1);
  t.same(rig.errors(), []);
});

t.test('failing answers of a manifest URL keep the last state, and are logged once, as is the recovery', async (t) => {
  const huge = Buffer.alloc(1 << 20, 0x20);
  const table: [string, Handler, RegExp][] = [
    ['500', send('oops', 500), /answered 500/],
    ['404', send('', 404), /answered 404/],
    ['a long reason', (_request, response) => response.writeHead(500, 'x'.repeat(10_000)).end(), /answered 500 x+…$/],
    ['204', send('', 204), /answered 204/],
    ['a redirect', send('', 302, { Location: 'http://127.0.0.1:1/' }), /answered 302.*redirects are not followed/],
    ['empty', send(''), /empty body/],
    ['a page', send('<html><body>Log in</body></html>'), /document 1|must be a mapping/],
    ['half of it', send('{"apiVersion": "v1", "kind": "List", "items": ['), /is no YAML/],
    [
      'another protocol',
      (_request, response) => {
        response.writeHead(101, { Connection: 'Upgrade', Upgrade: 'other' }).end();
      },
      /answered 101/,
    ],
    ['a coding', send('x', 200, { 'Content-Encoding': 'gzip' }), /content coding gzip/],
    [
      'truncated',
      (_request, response) => {
        response.writeHead(200, { 'Content-Length': '100000' });
        response.write(serviceYaml('b'), () => response.destroy());
      },
      /aborted|ECONNRESET|hang up/,
    ],
    [
      'truncated chunks',
      (_request, response) => {
        response.write(serviceYaml('b'), () => response.destroy());
      },
      /aborted|ECONNRESET|hang up/,
    ],
    ['closed at once', (_request, response) => response.destroy(), /ECONNRESET|hang up/],
    ['never', () => undefined, /did not answer within 300 ms/],
    [
      'slow',
      (_request, response) => {
        response.write('apiVersion: v1\n');
      },
      /did not answer within 300 ms/,
    ],
    [
      'huge',
      (_request, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write(huge));
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      },
      /more than 67108864 bytes/,
    ],
  ];
  const hangs = (name: string): boolean => name === 'never' || name === 'slow';
  for (const [name, handler, expected] of table) {
    const origin = await Origin.start(t);
    origin.handler = send(serviceYaml('a'));
    const rig = new ManifestRig(t, [origin.url], hangs(name) ? IMPATIENT : FAST);
    await rig.ready();
    origin.handler = handler;
    const recoveries = (): number => rig.log.lines.filter((line) => line.includes('valid again')).length;
    // Who has little patience may have lost it before.
    await eventually(() => rig.errors().length > recoveries(), `an error: ${name}`);
    if (name !== 'huge') await origin.served(2);
    t.equal(rig.errors().length, recoveries() + 1, `${name}: reported once`);
    t.match(rig.errors().at(-1), expected, name);
    t.equal(rig.services(), 'a:80', `${name}: nothing unloaded`);
    origin.handler = send(serviceYaml('a', 81));
    await rig.shows('a:81');
    await eventually(() => recoveries() === rig.errors().length, `${name}: recovery is logged`);
    await rig.running.stop();
  }
});

t.test('an invalid object from a URL keeps its last valid version, and others change', async (t) => {
  const origin = await Origin.start(t);
  origin.handler = send(yaml(serviceYaml('a'), serviceYaml('b')));
  const rig = new ManifestRig(t, [origin.url], FAST);
  await rig.ready();
  origin.handler = send(yaml(serviceYaml('a', 81), serviceYaml('b', 70_000)));
  await rig.shows('a:81 b:80');
  await origin.served(2);
  t.equal(rig.errors().length, 1);
});

t.test('a manifest URL is ready after its first valid answer', async (t) => {
  const origin = await Origin.start(t);
  origin.handler = send('', 503);
  const rig = new ManifestRig(t, [origin.url], FAST);
  await origin.served(2);
  origin.handler = send('<html>');
  await origin.served(3);
  t.equal(rig.writer.completed, 0);
  origin.handler = send(yaml(serviceYaml('a'), serviceYaml('b', 70_000)));
  await rig.ready();
  t.equal(rig.services(), 'a:80');
});

t.test('stop() ends a request to a manifest URL', async (t) => {
  const origin = await Origin.start(t);
  origin.handler = () => undefined;
  const rig = new ManifestRig(t, [origin.url], { urlPollMs: 20, urlTimeoutMs: 60_000 });
  await origin.served(1);
  await rig.running.stop();
  const count = origin.requests.length;
  await delay(100);
  t.equal(origin.requests.length, count);
  t.same(rig.errors(), []);
});

t.test('a manifest URL that cannot be requested is an error', async (t) => {
  for (const url of ['http://127.0.0.1:1/x', 'https://127.0.0.1:1/']) {
    const rig = new ManifestRig(t, [url], FAST);
    await eventually(() => rig.errors().length > 0, url);
    await delay(100);
    t.equal(rig.errors().length, 1, url);
    await rig.running.stop();
  }
});

t.test('a header is sent to its origin only, and header files are read again', async (t) => {
  const [one, other, elsewhere] = [await Origin.start(t), await Origin.start(t), await Origin.start(t)];
  const file = join(scratchDirectory(t), 'headers');
  const originOf = ({ url }: Origin): string => new URL(url).origin;
  writeFileSync(file, `# comment\n\n${originOf(other)} X-File: v1\r\n`);
  one.handler = send('', 302, { Location: elsewhere.url });
  other.handler = send(serviceYaml('a'));
  const flags = [`--manifests-header=${originOf(one)} X-One: s3cret`, `--manifests-header-file=${file}`];
  const rig = new ManifestRig(t, [one.url, other.url], FAST, flags);
  await rig.shows('a:80');
  await one.served(1);
  t.match(one.requests[0]?.headers, { 'x-one': 's3cret', 'x-file': undefined });
  t.match(other.requests[0]?.headers, { 'x-one': undefined, 'x-file': 'v1' });
  writeFileSync(file, `${originOf(other)} X-File: v2\n${originOf(one)} X-One: too`);
  await eventually(() => other.requests.at(-1)?.headers['x-file'] === 'v2', 'the new value');
  await eventually(() => one.requests.at(-1)?.headers['x-one'] === 's3cret, too', 'the new header');
  writeFileSync(file, `X-File: v3\ns3cret without a name`);
  const reported = (text: string): boolean => rig.errors().some((line) => line.includes(text));
  await eventually(() => reported('headers: line 1: must begin with the origin it is for'), 'no origin');
  writeFileSync(file, `${originOf(other)} X-File: v4\ns3cret without a name`);
  await eventually(() => reported('headers: line 2: must be'), 'no header');
  t.notMatch(rig.errors().join(), 's3cret');
  t.equal(rig.services(), 'a:80');
  t.same(elsewhere.requests, [], 'redirects carry nothing anywhere');
});

t.test('TLS of manifest URLs: authority and client certificate', async (t) => {
  const [authority, stranger] = [new Authority(), new Authority('stranger')];
  t.teardown(() => {
    authority.remove();
    stranger.remove();
  });
  const server = authority.issue({ commonName: 'localhost', alternativeNames: ['IP:127.0.0.1'] });
  const client = authority.issue({ commonName: 'node-1' });
  const asked: string[] = [];
  const identity = { cert: server.certificate, key: server.key, ca: authority.own.certificate };
  const options = { ...identity, requestCert: true, rejectUnauthorized: true };
  const tlsServer = createTlsServer(options, (request, response) => {
    const { socket } = request;
    asked.push(socket instanceof TLSSocket ? String(socket.getPeerCertificate().subject.CN) : 'nobody');
    response.end(serviceYaml('a'));
  });
  await new Promise<void>((resolve) => {
    tlsServer.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => tlsServer.close());
  const origin = `https://127.0.0.1:${(tlsServer.address() as AddressInfo).port}`;
  const url = `${origin}/x`;
  const trust = `--manifests-ca-file=${origin} ${authority.own.certificateFile}`;
  const certificate = `--manifests-cert-file=${client.certificateFile}`;
  const own = [certificate, `--manifests-key-file=${client.keyFile}`];
  const good = await loadManifests(locationsOf([url], [trust, ...own]));
  t.same(
    good.rows.map(({ name }) => name),
    ['a'],
  );
  t.same(asked, ['node-1']);
  const untrusted = /unable to verify|self.signed|local issuer|signature/;
  const bad: [flags: string[], message: RegExp][] = [
    [own, untrusted],
    [[`--manifests-ca-file=${stranger.own.certificateFile}`, ...own], untrusted],
    [[trust], /certificate required|handshake|ECONNRESET|EPROTO|hang up/],
    [[`--manifests-ca-file=${client.keyFile}`, ...own], /: holds no certificate$/],
    [[trust, certificate, `--manifests-key-file=${server.keyFile}`], /\.crt, .*\.key: cannot be used: /],
    [[trust, certificate, '--manifests-key-file=/nowhere'], /\/nowhere: cannot be read: ENOENT/],
  ];
  for (const [flags, message] of bad) {
    const { problems } = await loadManifests(locationsOf([url], flags));
    t.match(problems, [{ message }], String(message));
  }
  const wrongName = [
    `--manifests-ca-file=${authority.own.certificateFile}`,
    '--manifests-header=Host: 127.0.0.1',
    ...own,
  ];
  const { problems } = await loadManifests(locationsOf([url.replace('127.0.0.1', 'localhost')], wrongName));
  t.match(problems, [{ message: /so it is not for localhost; a common name does not count/ }], 'nor does a header');
  t.equal(asked.length, 1);
});

t.test('the secret part of a URL is never printed, and URLs that differ only in it are two sources', async (t) => {
  const origin = await Origin.start(t);
  const logins: unknown[] = [];
  origin.handler = (request, response) => {
    logins.push(`${request.url ?? ''} ${request.headers.authorization ?? ''}`);
    if (request.url?.includes('first') === true) send(serviceYaml('a'))(request, response);
    else response.destroy();
  };
  const hidden = (login: string, query: string): string =>
    `${origin.url.replace('//', `//${login}@`)}?token=${query}#s3cret`;
  const rig = new ManifestRig(
    t,
    [hidden('u:s3cret-first', 's3cret-first'), hidden('u:s3cret-other', 's3cret-other')],
    FAST,
  );
  await eventually(() => rig.running.status()[0]?.synced === true, 'the first is read');
  await eventually(() => rig.errors().length > 0, 'the other is refused');
  const name = `${origin.url}?…`;
  t.same(rig.running.status(), [
    { source: name, synced: true },
    { source: `${name} (2)`, synced: false },
  ]);
  t.same(rig.writer.store.waitingFor(), [`${name} (2)`]);
  t.equal(rig.writer.store.snapshot.ready, false);
  t.match(logins, [`/manifests?token=s3cret-first Basic ${btoa('u:s3cret-first')}`]);
  t.notMatch(rig.log.lines.join('\n'), 's3cret');
});

t.test('a poll interval longer than any timer is long, not zero', async (t) => {
  const timer = new PollTimer();
  let isAwake = false;
  const sleeping = timer.sleep(2 ** 32).then(() => {
    isAwake = true;
  });
  // A timer that fires at once has fired before one that was set later for longer.
  await delay(20);
  t.notOk(isAwake);
  timer.ring(0);
  await sleeping;
});
