import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { printEndpoint } from '../base/endpoint-list.js';
import { isUnspecified } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { LINUX_MODES, WINDOWS_MODES } from '../config/effective.js';
import { METRICS_PORT } from '../config/host-port.js';
import { OWN_VERSION } from '../config/version.js';
import type { Machine } from '../control/mode.js';
import type { Claim } from '../host/host.js';

/** How long a predecessor that is about to end may take: a stopped process ends within a second, unless its last events wait for the API server. */
const PATIENCE_MS = 15_000;
const RETRY_MS = 200;
const ANSWER_MS = 1000;
const LONGEST_MODE = 16;

/** The only proxy of this network namespace. */
interface SoleProxy {
  readonly release: () => Promise<void>;
}

/** Another proxy serves it. */
interface OtherProxy {
  readonly other: string;
}

const RELEASED = (): Promise<void> => Promise.resolve();

/**
 * Makes sure that no other proxy writes the rules of this network namespace: two of them take each other's rules for damage. Waits for one that is about
 * to end. To be called before anything is written to the kernel.
 *
 * @param patienceMs how long to wait; without it as long as a predecessor may take.
 */
export async function becomeSoleProxy(
  config: Config,
  machine: Machine,
  log: Log,
  patienceMs = PATIENCE_MS,
): Promise<SoleProxy | OtherProxy> {
  const end = performance.now() + patienceMs;
  let claim: Claim | null = null;
  for (let attempt = 0; ; attempt++) {
    if (claim?.type !== 'held') claim = await claimed(config, machine);
    if (claim === null) return { release: RELEASED };
    if (claim.type === 'unknown') log.warn('unknown whether another proxy runs here', { because: claim.why });
    const other = claim.type === 'taken' ? claim.who : await answering(config);
    const release = claim.type === 'held' ? claim.release : RELEASED;
    if (other === null) return { release };
    if (performance.now() >= end) {
      await release();
      return { other };
    }
    if (attempt === 0) log.info(0, 'another proxy runs here, waiting for its end', { other, patienceMs });
    await sleep(RETRY_MS);
  }
}

/** As {@link becomeSoleProxy} for a command that removes rules: without waiting, and beside a kube-proxy that runs. */
export async function claimForCleanup(config: Config, machine: Machine): Promise<SoleProxy | OtherProxy> {
  const claim = await claimed(config, machine);
  if (claim?.type === 'taken') return { other: claim.who };
  return { release: claim?.type === 'held' ? claim.release : RELEASED };
}

async function claimed({ mode, nodeName }: Config, { host, addon }: Machine): Promise<Claim | null> {
  const identity = `pointsman ${OWN_VERSION}, process ${process.pid}, mode ${mode}, node ${nodeName}`;
  return await host.claimNetwork({ identity, peer: () => addon.peer });
}

/** kube-proxy makes no claim, but answers where metrics are served: by default, or where this process is to serve them. Null: none answers. */
async function answering({ metrics }: Config): Promise<string | null> {
  const { address, port } = metrics;
  const own = isUnspecified(address) ? `127.0.0.1:${port}` : printEndpoint(address, port);
  const places = new Set([`127.0.0.1:${METRICS_PORT}`, own]);
  for (const place of places) {
    const url = `http://${place}/proxyMode`;
    const mode = await modeAt(url);
    if (mode !== null) return `a proxy in mode ${mode}, which answers at ${url}`;
  }
  return null;
}

function modeAt(url: string): Promise<string | null> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(ANSWER_MS) }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (text.length > LONGEST_MODE) response.destroy();
      });
      response.once('close', () => {
        const mode = [...LINUX_MODES, ...WINDOWS_MODES].find((each) => each === text.trim());
        resolve(response.statusCode === 200 ? (mode ?? null) : null);
      });
      response.on('error', () => undefined);
    });
    request.on('error', () => {
      resolve(null);
    });
  });
}
