// @ts-check
// The demo that goes on: requests all the time, an endpoint that comes and goes, and the page that shows it.
import { spawn } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Between two changes of the endpoints. */
const CHANGE_MS = 3000;

const TRAFFIC = [
  { from: 'client', address: '192.0.2.10', port: 80, protocol: 'TCP' },
  { from: 'web-2', address: '10.96.0.10', port: 80, protocol: 'TCP' },
  { from: 'web-2', address: '10.96.0.53', port: 53, protocol: 'UDP' },
];

/**
 * Goes on until this process is interrupted.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {{ program: string, folder: string, manifests: string }} running
 */
export async function showPage(laboratory, { program, folder, manifests }) {
  const page = spawn(program, ['ui', '--status-socket', join(folder, 'status.sock')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let ended = false;
  const end = new Promise((resolve) => {
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.once(signal, resolve);
    page.once('error', resolve).once('close', resolve);
  }).then(() => (ended = true));
  page.stdout.setEncoding('utf8').on('data', (address) => {
    console.log(
      `\nThe page: ${address}Requests go on, and web-3 comes and goes every ${CHANGE_MS / 1000} s. Ctrl-C ends it.`,
    );
  });
  for (const traffic of TRAFFIC)
    await laboratory.call('watch', { ...traffic, bytes: 16, timeout: 2, workers: 1, pause: 0.05 });
  const file = join(manifests, 'web.yaml');
  const without = await readFile(file, 'utf8');
  const whole = without.replace(
    /^(\s*)- \{? ?addresses: \[10\.244\.1\.11\].*$/m,
    (line) => `${line}\n${line.replace('10.244.1.11', '10.244.2.10').replace('demo-node', 'other-node')}`,
  );
  for (let changes = 0; !ended; changes++) {
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, CHANGE_MS))]);
    const unfinished = join(folder, 'web.yaml');
    await writeFile(unfinished, changes % 2 === 0 ? whole : without);
    await rename(unfinished, file);
  }
  page.kill();
}
