import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { HcnOperation } from '../../src/native/contract.js';
import { projectFile } from '../support/lab/agent.js';
import { HnsServer, refusal } from './hns-server.js';
import { HcnStore } from './objects.js';
import { runNode, runProgram, windowsPath } from './windows.js';

const NETWORK = '11111111-2222-3333-4444-555555555555';
const OWN = '706f696e-7473-6d61-6e00-0a6000010050';
const INSIDE = windowsPath(projectFile('.build/test/wine/inside/addon.js'));

const endpoint: HcnOperation = {
  type: 'create',
  kind: 'endpoint',
  network: NETWORK,
  id: null,
  settings: { Name: 'ü-名-😀', Flags: 1, IpConfigurations: [{ IpAddress: '10.1.2.3' }] },
};
const loadBalancer: HcnOperation = {
  type: 'create',
  kind: 'loadBalancer',
  id: OWN,
  settings: { FrontendVIPs: ['10.96.0.10'], PortMappings: [{ Protocol: 17, InternalPort: 53, ExternalPort: 53 }] },
};
const remove: HcnOperation = { type: 'delete', kind: 'loadBalancer', id: OWN };

/** Runs steps in one process; what each answered. */
async function answers(server: HnsServer, steps: readonly unknown[]): Promise<readonly unknown[]> {
  const { status, stdout, stderr } = await runNode([INSIDE, JSON.stringify(steps)], await server.start());
  server.stop();
  if (status !== 0) throw new Error(`exit status ${String(status)}: ${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

t.test('HNS objects are listed, created, modified and deleted', async (t) => {
  const store = new HcnStore();
  const server = new HnsServer(store);
  const modify: HcnOperation = {
    type: 'modify',
    kind: 'loadBalancer',
    id: OWN,
    settings: { FrontendVIPs: ['10.96.0.11'] },
  };
  const [version, networks, networkIds, made, listed, some, one, changed, gone, none, many] = await answers(server, [
    ['version'],
    ['list', 'network', null],
    ['ids', 'network'],
    ['apply', [endpoint, loadBalancer]],
    ['list', 'endpoint', null],
    ['list', 'loadBalancer', [NETWORK, OWN]],
    ['apply', [modify]],
    ['list', 'loadBalancer', null],
    ['apply', [remove]],
    ['list', 'loadBalancer', null],
    ['many', 50, endpoint],
  ]);
  t.strictSame(version, { major: 15, minor: 4 });
  t.match(networks, [{ id: NETWORK, properties: { Name: 'cbr0-ü-名', ID: NETWORK.toUpperCase() } }]);
  t.same(networkIds, [NETWORK]);
  const ids = made as readonly string[];
  t.match(ids, [/^[0-9a-f-]{36}$/, OWN], 'an id that HNS chose, and one that was asked for');
  t.match(listed, [{ id: ids[0], properties: endpoint.settings }]);
  t.match(some, [{ id: OWN, properties: loadBalancer.settings }], 'what is not there is left out');
  t.strictSame(one, [OWN]);
  t.match(changed, [{ properties: modify.settings }]);
  t.strictSame([gone, none], [[OWN], []]);
  t.equal(many, 50, 'calls at the same time');
});

const numbered = (at: number): HcnOperation => ({ ...endpoint, id: `${OWN.slice(0, -1)}${at}` });

t.test('one more endpoint is four calls of HNS, whatever it holds, and no network stays open', async (t) => {
  const server = new HnsServer(new HcnStore());
  const modify: HcnOperation = { type: 'modify', kind: 'loadBalancer', id: OWN, settings: {} };
  const [, more, aside] = await answers(server, [
    ['apply', [numbered(1), loadBalancer]],
    ['apply', [numbered(2), modify]],
    ['aside'],
  ]);
  t.same(more, [`${OWN.slice(0, -1)}2`, OWN]);
  t.same(aside, [false, true], 'JavaScript does not wait for HNS');
  t.same(
    server.calls.map(({ name }) => name),
    [
      // HNS is seen to take the ids that it is given.
      ...['open.network', 'create.endpoint', 'query.endpoint', 'create.loadBalancer'],
      ...['open.network', 'create.endpoint', 'open.loadBalancer', 'modify.loadBalancer'],
      'GET',
    ],
  );
});

t.test('a network that vanishes between two endpoints is opened again', async (t) => {
  const server = new HnsServer(new HcnStore());
  let isTornDown = false;
  server.intercept = ({ name }) => {
    if (name === 'create.endpoint' && isTornDown) return refusal('E_FAIL', 'The network was torn down.');
    // So that it is after the first endpoint, and not once it has been opened anew.
    if (name === 'query.endpoint') isTornDown = true;
    if (name === 'open.network') isTornDown = false;
    return null;
  };
  const [made] = await answers(server, [['apply', [numbered(1), numbered(2)]]]);
  t.same(made, [numbered(1).id, numbered(2).id]);
  t.same(
    server.calls.map(({ name }) => name),
    ['open.network', 'create.endpoint', 'query.endpoint', 'create.endpoint', 'open.network', 'create.endpoint'],
  );
});

t.test('ids that HNS chooses are used, whatever was requested', async (t) => {
  const store = new HcnStore();
  store.objects.loadBalancer.set(NETWORK, {});
  const server = new HnsServer(store);
  server.intercept = ({ name }) => (name === 'create.loadBalancer' ? { result: 0, text: NETWORK, record: '' } : null);
  t.same(await answers(server, [['apply', [loadBalancer, loadBalancer]]]), [[NETWORK, NETWORK]]);
});

t.test('the DLLs are loaded from Windows only, whatever lies beside the program', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-dlls-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  for (const name of ['computenetwork', 'vmcompute']) writeFileSync(join(folder, `${name}.dll`), 'none');
  const program = join(folder, 'node.exe');
  symlinkSync(process.env['POINTSMAN_WINE_NODE'] ?? '', program);
  const server = new HnsServer(new HcnStore());
  const steps = JSON.stringify([['version'], ['list', 'network', null]]);
  const { stdout } = await runProgram([program, INSIDE, steps], await server.start());
  server.stop();
  t.match(stdout, /"major":15[^]*cbr0/);
});

t.test('a refusal of HNS is reported, and the other operations run', async (t) => {
  const store = new HcnStore();
  store.objects.loadBalancer.set(OWN, {});
  const server = new HnsServer(store);
  server.intercept = ({ name }) => {
    if (name === 'create.loadBalancer') return refusal('ERROR_ALREADY_EXISTS', 'The frontend "is taken".');
    // HNS may complain of what it calls a success.
    if (name === 'delete.loadBalancer') return { ...refusal('HCN_E_ENTITY_HAS_REFERENCES', 'It is used.'), result: 0 };
    if (name === 'query.endpoint') return { result: 0, text: '{"ID":', record: '' };
    if (name === 'enumerate.network') return { result: 0, text: '{}', record: '' };
    return name === 'modify.loadBalancer' ? { result: 0x80041234, text: '', record: 'no JSON' } : null;
  };
  const far: HcnOperation = { ...endpoint, network: OWN };
  const modify: HcnOperation = { type: 'modify', kind: 'loadBalancer', id: OWN, settings: {} };
  const [outcomes, unreadable, ids] = await answers(server, [
    ['apply', [loadBalancer, remove, far, endpoint, modify]],
    ['list', 'endpoint', null],
    ['list', 'network', null],
  ]);
  const common = { code: 'ERR_HCN', operation: 'hcn apply', element: null };
  t.match(outcomes, [
    {
      ...common,
      errno: 'ERROR_ALREADY_EXISTS',
      kernelMessage: 'The frontend "is taken".',
      object: `create load balancer ${OWN}`,
      index: 0,
      message: `hcn apply: create load balancer ${OWN}: HcnCreateLoadBalancer: ERROR_ALREADY_EXISTS (it exists already): The frontend "is taken".`,
    },
    { ...common, errno: 'HCN_E_ENTITY_HAS_REFERENCES', index: 1 },
    { ...common, errno: 'ERROR_NOT_FOUND', object: 'create endpoint', index: 2 },
    { ...common, errno: null, message: /no id/, index: 3 },
    { ...common, errno: '0x80041234', kernelMessage: 'no JSON', index: 4 },
  ]);
  t.same(unreadable, [], 'what is no JSON hides nothing else');
  t.match(ids, { code: 'ERR_HCN', message: 'hcn list: HcnEnumerateNetworks: no list of ids: {}' });
});

t.test('an object that HNS cannot show does not hide others, and an unreachable HNS is an error', async (t) => {
  const store = new HcnStore();
  for (const { id } of [numbered(1), numbered(2)]) store.objects.endpoint.set(id ?? '', { Name: id ?? '' });
  const server = new HnsServer(store);
  let result = 'E_FAIL';
  let hidden = [numbered(2).id?.toUpperCase() ?? ''];
  server.intercept = ({ name, id }) => {
    if (name === 'enumerate.loadBalancer') {
      hidden = [...hidden, numbered(1).id?.toUpperCase() ?? ''];
      return null;
    }
    if (name === 'enumerate.network') result = 'RPC_S_SERVER_UNAVAILABLE';
    return name === 'query.endpoint' && hidden.includes(id.toUpperCase()) ? refusal(result, 'no') : null;
  };
  const [some, , none, , gone] = await answers(server, [
    ['list', 'endpoint', null],
    ['ids', 'loadBalancer'],
    ['list', 'endpoint', null],
    ['ids', 'network'],
    ['list', 'endpoint', null],
  ]);
  t.match(some, [{ id: numbered(1).id }]);
  t.match(none, { code: 'ERR_HCN', errno: 'E_FAIL' }, 'an error that hides everything is reported');
  t.match(gone, { code: 'ERR_HCN', errno: 'RPC_S_SERVER_UNAVAILABLE' });
});

t.test('hcn: wrong fields are named, and HNS is not called', async (t) => {
  const server = new HnsServer(new HcnStore());
  const [id, kind, settings] = await answers(server, [
    ['apply', [{ ...remove, id: 'x' }]],
    ['list', 'namespace', null],
    ['apply', [{ ...loadBalancer, settings: [] }]],
  ]);
  t.match(id, { name: 'TypeError', message: 'operations[0].id: expected a GUID, found "x"' });
  t.match(kind, { name: 'TypeError', message: /^kind: expected "network", "endpoint" or "loadBalancer"/ });
  t.match(settings, { name: 'TypeError', message: /^operations\[0\]\.settings: expected an object/ });
  t.same(server.calls, []);
});

t.test('changes of HNS networks are notified', async (t) => {
  const store = new HcnStore();
  const server = new HnsServer(store);
  server.intercept = () => {
    store.tell({ networks: true, disconnected: false });
    return null;
  };
  const [change] = await answers(server, [['watch', remove]]);
  t.strictSame(change, { networks: true, disconnected: false });
});

t.test('an HNS that does not run is an error', async (t) => {
  const { stdout } = await runNode([INSIDE, JSON.stringify([['version'], ['list', 'network', null]])]);
  t.match(stdout, /hcn version: HNSCall: RPC_S_SERVER_UNAVAILABLE \(the service cannot be reached\)/);
  t.match(stdout, /hcn list: HcnEnumerateNetworks: RPC_S_SERVER_UNAVAILABLE/);
});
