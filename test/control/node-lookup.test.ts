import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Config } from '../../src/config/config.js';
import { systemFiles } from '../../src/config/files.js';
import { loadConfig } from '../../src/config/load.js';
import { lookUpNode, type FoundNode } from '../../src/control/node-lookup.js';
import { ApiServer } from '../support/api-server/server.js';
import { node } from '../support/lab/objects.js';
import { RecordingLog } from '../support/recording-log.js';

const ADDRESSES = ['192.0.2.1'];

function config(...flags: readonly string[]): Config {
  const loaded = loadConfig(['--proxy-mode=nftables', '--hostname-override=me', ...flags], systemFiles);
  if (loaded.command !== 'run') throw new Error(loaded.command);
  return loaded.config;
}

async function server(t: Test): Promise<ApiServer> {
  const made = new ApiServer();
  await made.start();
  t.teardown(() => made.stop());
  return made;
}

const log = new RecordingLog();

/**
 * What is found in a time that runs out, as something is lacking. Where every core is busy with something else so short a time may be too short to be
 * answered in: then again in a longer one.
 */
async function lookUp(settings: Config, expected: RegExp, ms = 300): Promise<FoundNode> {
  const found = await lookUpNode(settings, 'v1', log, { nodeMs: ms, podCIDRsMs: ms });
  const { warnings, errors } = found;
  return ms > 60_000 || expected.test([...warnings, ...errors].join()) ? found : lookUp(settings, expected, 2 * ms);
}

t.test('ST-13: a Node that appears during the wait is found', async (t) => {
  const api = await server(t);
  const looking = lookUpNode(config(`--master=${api.url}`), 'v1', log, { nodeMs: 100_000, podCIDRsMs: 0 });
  setTimeout(() => {
    api.put(node('me', { addresses: [] }));
  }, 50);
  setTimeout(() => {
    api.put(node('me', { addresses: ADDRESSES }));
  }, 100);
  t.match(await looking, { node: { name: 'me', addresses: ADDRESSES }, warnings: [], errors: [] });
  t.same(new Set(api.requests.map(({ resource }) => resource)), new Set(['nodes']), 'nothing else is read');
});

t.test('a Node that does not appear, or has no address, gives a warning', async (t) => {
  const api = await server(t);
  const settings = config(`--master=${api.url}`);
  t.match(await lookUp(settings, /no Node/), { warnings: ['there is no Node me'], errors: [] });
  api.put(node('me', { addresses: [] }));
  t.match(await lookUp(settings, /no address/), { warnings: ['Node me has no address'], errors: [] });
});

t.test('ST-15: NodeCIDR needs pod CIDRs, and waits longer for them', async (t) => {
  const api = await server(t);
  const settings = config(`--master=${api.url}`, '--detect-local-mode=NodeCIDR');
  api.put(node('me', { addresses: ADDRESSES }));
  t.match(await lookUp(settings, /podCIDRs/), { errors: [/Node me has no podCIDRs/] });
  setTimeout(() => {
    api.put(node('me', { addresses: ADDRESSES, podCIDRs: ['10.244.1.0/24'] }));
  }, 50);
  const found = await lookUpNode(settings, 'v1', log, { nodeMs: 100_000, podCIDRsMs: 100_000 });
  t.match(found, { node: { podCIDRs: ['10.244.1.0/24'] }, errors: [] });
});

t.test('an API server that cannot be read is an error that says why', async (t) => {
  const api = await server(t);
  const settings = config(`--master=${api.url}`);
  api.faults.add({ fault: { type: 'status', code: 403, message: 'not you' } });
  const [error = ''] = (await lookUp(settings, /not you/)).errors;
  t.match(error, /Node me could not be read in [\d.]+ s: forbidden: .*not you/);
  await api.stop();
  t.match((await lookUp(settings, /REFUSED/)).errors, [/unavailable: .*ECONNREFUSED/]);
});

t.test('manifests are read once for the Node', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'lookup-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  const settings = config(`--manifests=${folder}`);
  t.match(await lookUpNode(settings, 'v1', log), { warnings: ['there is no Node me'], errors: [] });
  writeFileSync(join(folder, 'node.json'), JSON.stringify(node('me', { addresses: ADDRESSES })));
  t.match(await lookUpNode(settings, 'v1', log), { node: { addresses: ADDRESSES }, warnings: [], errors: [] });
  t.match((await lookUpNode(config('--manifests=/nowhere'), 'v1', log)).errors, [/\/nowhere/]);
});
