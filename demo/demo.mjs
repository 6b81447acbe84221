// @ts-check
// Services on a node made of network namespaces: who answers, whom the server sees, and how soon a removed endpoint is left alone.
import { cp, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Laboratory } from './laboratory.mjs';
import { NETWORK, SERVERS } from './network.mjs';
import { showPage } from './page.mjs';

const REQUESTS = 60;
const START_TIMEOUT_MS = 120_000;
/** How long requests are watched before and after the endpoint goes. */
const WATCH_MS = 1000;
/** Longer than it takes where every core is busy with something else, and so long it has not answered when it is gone. */
const REMOVAL_LIMIT_MS = 20_000;
const QUIET_MS = 200;

const [, , ...words] = process.argv;
/** Goes on until it is interrupted, with a page that shows it. */
const SHOWS_PAGE = words.includes('--ui');
const PROGRAM = words.find((word) => word !== '--ui') ?? fileURLToPath(new URL('../dist/main.js', import.meta.url));
const CONFIG = fileURLToPath(new URL('config.yaml', import.meta.url));

/**
 * @typedef {object} Step
 * @property {string} from
 * @property {string} what
 * @property {string} address
 * @property {number} port
 * @property {'TCP' | 'UDP'} protocol
 * @property {readonly string[]} answers who must answer, all of them; empty: the request must be refused
 * @property {boolean} [masqueraded] whether servers must see an address of the node instead of the client's; either way when not given
 */

/** @type {readonly Step[]} */
const STEPS = [
  {
    from: 'web-2',
    what: 'cluster IP',
    address: '10.96.0.10',
    port: 80,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
  },
  {
    from: 'web-2',
    what: 'cluster IP',
    address: 'fd00:10:96::10',
    port: 80,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
  },
  {
    from: 'node',
    what: 'cluster IP',
    address: '10.96.0.10',
    port: 80,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
    masqueraded: true,
  },
  {
    from: 'web-2',
    what: 'cluster IP',
    address: '10.96.0.53',
    port: 53,
    protocol: 'UDP',
    answers: ['web-1', 'web-3'],
    masqueraded: false,
  },
  {
    from: 'client',
    what: 'node port',
    address: '192.168.0.2',
    port: 30080,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
    masqueraded: true,
  },
  {
    from: 'client',
    what: 'load balancer',
    address: '192.0.2.10',
    port: 80,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
    masqueraded: true,
  },
  {
    from: 'client',
    what: 'load balancer',
    address: '2001:db8:192::10',
    port: 80,
    protocol: 'TCP',
    answers: ['web-1', 'web-2', 'web-3'],
    masqueraded: true,
  },
  {
    from: 'client',
    what: 'load balancer, policy Local',
    address: '192.0.2.53',
    port: 53,
    protocol: 'UDP',
    answers: ['web-1'],
    masqueraded: false,
  },
  {
    from: 'client',
    what: 'cluster IP without endpoints',
    address: '10.96.0.99',
    port: 80,
    protocol: 'TCP',
    answers: [],
  },
];

const laboratory = new Laboratory();
const folder = await mkdtemp(join(tmpdir(), 'pointsman-demo-'));
try {
  console.log('Making a node, its pods, another node and a client, all of network namespaces …');
  await laboratory.build(NETWORK);
  for (const [name, address, port, protocol] of SERVERS)
    await laboratory.call('serve', { in: name, name, address, port, protocol });
  const manifests = join(folder, 'manifests');
  await cp(fileURLToPath(new URL('manifests', import.meta.url)), manifests, { recursive: true });
  console.log('Starting pointsman …');
  await startProxy(manifests);
  console.log('Sending requests to every kind of address …\n');
  const wrong = [...(await requestTable()), ...(await removeEndpoint(join(manifests, 'web.yaml')))];
  for (const complaint of wrong) console.error(`WRONG: ${complaint}`);
  if (wrong.length === 0) console.log('\nEvery request went where it should.');
  process.exitCode = wrong.length === 0 ? 0 : 1;
  if (SHOWS_PAGE) await showPage(laboratory, { program: PROGRAM, folder, manifests });
} catch (error) {
  console.error(`The demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  laboratory.close();
  await rm(folder, { recursive: true, force: true });
}

/**
 * Starts the process in the node's namespace and waits until it reports that everything is in the kernel.
 * @param {string} manifests
 */
async function startProxy(manifests) {
  const node = ['--hostname-override', 'demo-node', '--status-socket', join(folder, 'status.sock')];
  const flags = ['--config', CONFIG, '--manifests', manifests, ...node, '-v', '2'];
  const started = performance.now();
  const child = laboratory.spawn('node', [PROGRAM, ...flags]);
  let log = '';
  let ended = false;
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (log += text));
  child.once('error', (error) => (log += error.message));
  child.once('close', () => (ended = true));
  for (;;) {
    const answer = await laboratory.call('http', {
      from: 'node',
      address: '127.0.0.1',
      port: 10256,
      path: '/healthz',
      timeout: 1,
    });
    if (answer.status === 200) break;
    if (ended || performance.now() - started > START_TIMEOUT_MS) {
      throw new Error(
        `pointsman ${ended ? 'ended' : `is not healthy after ${START_TIMEOUT_MS / 1000} s`}; its log:\n${log}`,
      );
    }
    await pause(10);
  }
  console.log(`pointsman is healthy ${Math.round(performance.now() - started)} ms after its start.\n`);
}

/** Sends the requests of every step and prints what became of them; resolves to complaints. */
async function requestTable() {
  const rows = [['from', 'to', '', 'answered by', 'server sees']];
  const wrong = [];
  for (const step of STEPS) {
    const to = `${step.address.includes(':') ? `[${step.address}]` : step.address}:${step.port} ${step.protocol}`;
    const answers = [];
    for (let sent = 0; sent < (step.answers.length === 0 ? 1 : REQUESTS); sent++) {
      answers.push(await laboratory.call('request', { ...traffic(step), timeout: 2 }));
    }
    const counts = new Map();
    for (const { name, error } of answers) counts.set(name ?? error, (counts.get(name ?? error) ?? 0) + 1);
    const names = [...counts.keys()].sort();
    const seen = [
      ...new Set(answers.filter(({ seen }) => seen !== undefined).map(({ seen }) => seen.replace(/:\d+$/, ''))),
    ].sort();
    rows.push([
      step.from,
      step.what,
      to,
      names.map((name) => (seen.length === 0 ? name : `${name} ×${counts.get(name)}`)).join(', '),
      seen.join(', '),
    ]);
    const expected = step.answers.length === 0 ? ['refused'] : step.answers;
    if (names.join() !== expected.join())
      wrong.push(`${step.from} to ${to}: expected ${expected.join(', ')}; got ${names.join(', ')}`);
    const kept = answers.filter(({ seen, source }) => seen !== undefined && seen === source).length;
    if (step.masqueraded === true && kept > 0)
      wrong.push(`${step.from} to ${to}: ${kept} answers saw the client's own address`);
    if (step.masqueraded === false && kept < answers.length)
      wrong.push(`${step.from} to ${to}: ${answers.length - kept} answers saw another address than the client's`);
  }
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    );
  return wrong;
}

/**
 * Takes web-3 out of the slice while requests go on; resolves to complaints.
 * @param {string} manifest
 */
async function removeEndpoint(manifest) {
  const content = await readFile(manifest, 'utf8');
  const shorter = content.replace(/.*addresses: \[10\.244\.2\.10\].*\n/, '');
  if (shorter === content) throw new Error('web-3 is not in the manifest');
  const step = { from: 'client', address: '192.0.2.10', port: 80, protocol: 'TCP' };
  const watch = () => laboratory.call('watch', { ...traffic(step), timeout: 2, workers: 4, pause: 0.0005 });
  let handle = await watch();
  await pause(WATCH_MS);
  const unfinished = join(folder, 'web.yaml');
  await writeFile(unfinished, shorter);
  const removed = Date.now();
  await rename(unfinished, manifest);
  /** @type {{ name?: string, error?: string, count: number, last: number }[]} */
  const outcomes = [];
  // On a busy machine it takes longer; it is gone once it has not answered for a while.
  for (let isGone = false; !isGone && Date.now() - removed < REMOVAL_LIMIT_MS;) {
    await pause(WATCH_MS);
    const ended = Date.now();
    outcomes.push(...(await laboratory.call('unwatch', { handle })));
    isGone = outcomes.every(({ name, last }) => name !== 'web-3' || last < ended - QUIET_MS);
    if (!isGone) handle = await watch();
  }
  const total = outcomes.reduce((sum, { count }) => sum + count, 0);
  const last = outcomes.findLast(({ name }) => name === 'web-3')?.last;
  const failed = outcomes.filter(({ error }) => error !== undefined);
  const wrong = failed.map(({ error, count }) => `${count} requests ${error} while web-3 was removed`);
  if (last === undefined) return [...wrong, 'web-3 never answered before it was removed'];
  const milliseconds = Math.max(0, last - removed);
  if (milliseconds > REMOVAL_LIMIT_MS - QUIET_MS)
    return [...wrong, `web-3 still answered ${milliseconds.toFixed(0)} ms after its manifest was replaced`];
  const failures = failed.length === 0 ? 'none failed' : 'some failed';
  console.log(`\nweb-3 was removed from its EndpointSlice while ${total} requests went to 192.0.2.10:80; ${failures}.`);
  console.log(
    `The last request that reached web-3 was sent ${milliseconds.toFixed(1)} ms after the manifest was replaced.`,
  );
  return wrong;
}

/** @param {{ from: string, address: string, port: number, protocol: string }} step */
function traffic({ from, address, port, protocol }) {
  return { from, address, port, protocol, bytes: 16 };
}

/** @param {number} milliseconds */
function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
