import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadManifests } from '../../src/sources/manifests/load.js';
import { printProblem } from '../../src/sources/manifests/problems.js';
import { locationsOf, scratchDirectory, serviceYaml, yaml } from '../support/manifests.js';

t.test('manifests from files, directories and URLs are read once, and the first location counts', async (t) => {
  const root = scratchDirectory(t);
  const server = createServer((_request, response) => response.end(yaml(serviceYaml('a', 3), serviceYaml('c', 3))));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => server.close());
  mkdirSync(join(root, 'd'));
  writeFileSync(join(root, 'd', 'x.yaml'), yaml(serviceYaml('a', 2), serviceYaml('b', 2), serviceYaml('bad', 0)));
  writeFileSync(join(root, 'f.yaml'), serviceYaml('a', 1));
  const { rows, problems, complete } = await loadManifests(
    locationsOf([join(root, 'f.yaml'), join(root, 'd'), `http://127.0.0.1:${(server.address() as AddressInfo).port}/`]),
  );
  t.equal(complete, true);
  t.same(
    rows.map((row) => `${row.name}:${row.kind === 'Service' ? (row.ports[0]?.port ?? 0) : 0}`),
    ['a:1', 'b:2', 'c:3'],
  );
  t.match(problems.map(printProblem), [
    /d\/x\.yaml: document 3: Service default\/bad: spec\.ports\[0\]\.port: 0: must be between 1 and 65535$/,
    /d: Service default\/a: is also in an earlier location, whose version counts$/,
    /^http:.*: Service default\/a: is also in an earlier location/,
  ]);
});

t.test('an unreadable location makes the load incomplete', async (t) => {
  const root = scratchDirectory(t);
  writeFileSync(join(root, 'f.yaml'), serviceYaml('a'));
  const { rows, problems, complete } = await loadManifests(locationsOf([join(root, 'none'), join(root, 'f.yaml')]));
  t.equal(complete, false);
  t.equal(rows.length, 1);
  t.match(problems.map(printProblem), [/none: cannot be read: does not exist$/]);
});

t.test('manifests give their rows in an order that does not depend on the file system', async (t) => {
  const root = scratchDirectory(t);
  for (const name of ['c', 'a', 'b'])
    writeFileSync(join(root, `${name}.yaml`), yaml(serviceYaml(`${name}2`), serviceYaml(`${name}1`)));
  const { rows } = await loadManifests(locationsOf([root]));
  t.same(
    rows.map((row) => row.name),
    ['a2', 'a1', 'b2', 'b1', 'c2', 'c1'],
  );
});
