import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { DEFAULT_TIMING } from '../../../src/sources/kubernetes/timing.js';
import { POD } from '../../../src/state/rows.js';
import { resourceOfKind } from '../../support/api-server/resources.js';
import { clusterObjects, clusterSlice } from '../../support/api-server/cluster.js';
import { nodeObject, serviceObject } from '../../support/api-objects.js';
import { Authority } from '../../support/certificates.js';
import { connect } from './connect.js';
import { LiveWorld, until } from './live-world.js';

t.test('the sources work over TLS with a client certificate', async (t) => {
  const authority = new Authority();
  t.teardown(() => {
    authority.remove();
  });
  const { key, certificate } = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
  const client = authority.issue({ commonName: 'system:kube-proxy' });
  const world = new LiveWorld({
    tls: { key, cert: certificate, clientCa: authority.own.certificate },
    tokens: ['nobody has it'],
  });
  for (const object of clusterObjects({ services: 30, endpoints: 120, nodes: 5 })) world.server.put(object);
  world.server.put(nodeObject('node-1', { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } }));
  await world.server.start();
  const cluster = { server: world.server.url, 'certificate-authority': authority.own.certificateFile };
  const user = { 'client-certificate': client.certificateFile, 'client-key': client.keyFile };
  const connection = await connect(t, { cluster, user });
  await world.start({}, {}, connection);
  await world.ready();
  t.equal(world.services().length, 30);
  const counts = world.store.snapshot.slicesOf('team-0/service-0').map(({ count }) => count);
  t.same(new Set(counts), new Set([100, 20]));
  t.match(world.store.snapshot.node('node-1'), { addresses: ['192.0.2.1'] });
  await world.inStep();
  t.ok(world.server.peakConnections <= 3, `${world.server.peakConnections} connections`);

  world.server.store.delete(resourceOfKind('Service'), { namespace: 'team-1', name: 'service-1' });
  await until(() => world.services().length === 29, 'followed');
  for (const watch of [...world.server.watches]) watch.reset();
  world.server.put(...clusterObjects({ services: 2, endpoints: 0, nodes: 1 }));
  await until(() => world.services().length === 30, 'followed after a reset');
  await world.stop();
});

t.test('the sources recover from an outage with compaction, at production timing', async (t) => {
  const world = new LiveWorld();
  world.server.put(serviceObject('a'));
  await world.server.start();
  const { port } = world.server;
  const connection = await connect(t, { cluster: { server: world.server.url } });
  await world.start({}, DEFAULT_TIMING, connection);
  await world.ready();
  await world.inStep();
  await world.server.stop();
  await delay(4000);
  world.server.put(serviceObject('b'));
  world.server.store.delete(resourceOfKind('Service'), { namespace: 'default', name: 'a' });
  world.server.store.compact();
  const asked = (): number => world.server.requests.filter(({ resource }) => resource === 'services').length;
  const before = asked();
  await world.server.start(port);
  await until(() => asked() > before, 'asked again');
  const timers = world.timers.length;
  await until(() => world.services().join() === 'b', 'followed');
  t.equal(world.status('services').failures.expired, 1);
  const { backoffInitialMs, backoffMaxMs } = DEFAULT_TIMING;
  const isPause = (ms: number): boolean => ms > backoffInitialMs / 4 && ms <= backoffMaxMs;
  t.ok(world.timers.slice(0, timers).some(isPause), 'a server that is away is asked with pauses');
  t.same(world.timers.slice(timers).filter(isPause), [], 'and once it is asked, it is followed at once');
  await world.stop();
});

t.test('the sources detect a server process that is stopped', async (t) => {
  const script = fileURLToPath(new URL('../../support/api-server/main.js', import.meta.url));
  const server = spawn(process.execPath, [script, '--cluster', '3,2,1'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => server.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
  const { url, control } = JSON.parse(line) as { readonly url: string; readonly control: string };
  const world = new LiveWorld();
  const connection = await connect(t, { cluster: { server: url } });
  await world.start({}, { silenceMs: 500 }, connection);
  await world.ready();
  await world.inStep();
  t.equal(world.services().length, 3);
  server.kill('SIGSTOP');
  await until(() => world.status('services').failures.silent > 0, 'broken off');
  t.equal(world.services().length, 3, 'what is known stays');
  server.kill('SIGCONT');
  const { ok } = await fetch(`${control}/put`, { method: 'POST', body: JSON.stringify([serviceObject('new')]) });
  t.ok(ok);
  await until(() => world.services().includes('new'), 'followed');
  await world.stop();
});

t.test('500 events a second are processed', async (t) => {
  const world = new LiveWorld();
  const services = 100;
  for (const object of clusterObjects({ services, endpoints: 10, nodes: 50 })) world.server.put(object);
  await world.start({ contentType: 'application/vnd.kubernetes.protobuf' });
  await world.ready();
  await world.inStep();
  let commits = 0;
  world.store.onChange(() => commits++);
  const requests = world.server.requests.length;
  const cpu = process.cpuUsage();
  // Two seconds: in the second one, what comes within 8 ms is taken together.
  const changes = 1000;
  const startedAt = performance.now();
  for (let change = 0; change < changes; change++) {
    world.server.put(clusterSlice(change % services, 0, 10, 50, 1 + Math.floor(change / services)));
    if (change % 5 === 4) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await until(() => world.status('endpointslices').events.MODIFIED === changes, 'all seen');
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - startedAt) / 1000;
  t.comment(
    `${Math.round((user + system) / changes)} µs of CPU per event, server included, over ${seconds.toFixed(1)} s`,
  );
  t.ok(commits <= changes, `${commits} commits`);
  t.equal(world.server.requests.length, requests, 'no further request');
  t.equal(world.status('endpointslices').objects, services);
  await until(
    () =>
      [...world.store.snapshot.services()].every(({ namespace, name }) =>
        world.store.snapshot
          .slicesOf(`${namespace}/${name}`)
          .every(({ conditions }) => !conditions.some((flags) => (flags & ~POD) !== 0)),
      ),
    'every endpoint not ready, as the last changes say',
  );
  await world.stop();
});
