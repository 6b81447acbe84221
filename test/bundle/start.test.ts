// The shipped program on this Node, however it is started: its standard error is the log and nothing else, what V8 compiled is taken, and what only the
// start needed leaves the process.
import '../support/namespace.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { PROGRAM } from '../support/program.js';

const folder = mkdtempSync(join(tmpdir(), 'start-'));
const manifests = join(folder, 'manifests');
mkdirSync(manifests);
t.teardown(() => {
  rmSync(folder, { recursive: true });
});

/** Node's file takes more while it starts, and a third of that afterwards. */
const FILE_MB = 30;
const TEXT_LINE = /^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] "/;

/** Tells which files V8 did not take the compiled code of. */
const report = join(folder, 'report.cjs');
writeFileSync(
  report,
  `const vm = require('node:vm');
   vm.Script = class extends vm.Script {
     constructor(text, options) {
       super(text, options);
       if (this.cachedDataRejected !== false) require('node:fs').appendFileSync(${JSON.stringify(join(folder, 'rejected'))}, options.filename + '\\n');
     }
   };`,
);

function configuration(format: string): string {
  const file = join(folder, `${format}.json`);
  const document = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: '10.244.0.0/16',
    logging: { format, verbosity: 2 },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
  writeFileSync(file, JSON.stringify(document));
  return file;
}

function residentFileMb(pid: number): number {
  const [, kilobytes] = /^RssFile:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** Runs until its first load is settled; its standard error. */
async function life(command: readonly string[], format: string): Promise<string> {
  const [program = '', ...before] = command;
  const flags = ['--hostname-override=me', `--manifests=${manifests}`, '--status-socket='];
  const argv = [...before, `--config=${configuration(format)}`, ...flags];
  const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env['PATH'] } });
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (more: string) => (text += more));
  const ended = once(child, 'close');
  const { pid = 0 } = child;
  while (!text.includes('synced') || residentFileMb(pid) > FILE_MB) {
    if (child.exitCode !== null) throw new Error(text);
    await sleep(20);
  }
  child.kill('SIGTERM');
  await ended;
  return text;
}

for (const [how, command] of [
  ['by its first line', [PROGRAM]],
  ['as a script of Node', [process.execPath, PROGRAM]],
] as const) {
  t.test(`started ${how}, the proxy writes only log lines to standard error`, async (t) => {
    for (const line of (await life(command, 'text')).trimEnd().split('\n')) t.match(line, TEXT_LINE);
    for (const line of (await life(command, 'json')).trimEnd().split('\n'))
      t.type((JSON.parse(line) as { readonly ts?: unknown }).ts, 'number', line);
  });
}

t.test('V8 uses the code cache made at build time without any Node.js option', async (t) => {
  await life([process.execPath, '-r', report, PROGRAM], 'text');
  // The source of manifests is read when V8's options are set (parts.test.ts).
  t.equal(readFileSync(join(folder, 'rejected'), 'utf8'), `${join(dirname(PROGRAM), 'manifests.js')}\n`);
});

const REJECTED = 'V8 rejected the compiled code';

t.test('a rejected code cache is reported once', async (t) => {
  const rejected = await life([process.execPath, '--no-opt', PROGRAM], 'text');
  t.equal(rejected.split(REJECTED).length - 1, 1, rejected);
  t.match(rejected, /options="--no-opt"/);
  t.notMatch(await life([PROGRAM], 'text'), REJECTED);
});
