import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { messageOf } from '../base/error-message.js';
import { isLoopback } from '../base/ip.js';
import { CLEARED, redrawn } from '../base/redraw.js';
import { parseListen, type HostPort } from '../config/host-port.js';
import { formatted } from '../serve/formatted.js';
import type { NodesReport } from './api.js';
import { ClusterApi, ClusterError } from './cluster-api.js';
import { POD_PLACE, type PodPlace } from './cluster.js';
import { lookAtNodes, PATIENCE_MS } from './look.js';
import { printReport } from './print.js';
import { ProxyAsker } from './proxy-asker.js';
import { isWell } from './report.js';
import { serveNodesPage } from './ui.js';

export { explainOn } from './explain.js';

/** Where the command writes. */
export interface Terminal {
  readonly write: (text: string) => Promise<void>;
  readonly complain: (text: string) => void;
  /** Whether what is written can be written over. */
  readonly isTerminal: boolean;
}

/** Where the page is, unless somebody says otherwise: a free port. */
const LISTEN = '127.0.0.1:0';

const USAGE = `Usage: pointsman nodes [flags]

Asks the proxy of every node through the API server, and says which nodes lag, which differ from what the API server holds, which give no answer and why, and which
Services are set aside, cannot be planned or are in conflict, and where.

      --kubeconfig file      the cluster (default: as kubectl finds it)
      --namespace name       of the proxies' pods (default ${POD_PLACE.namespace})
  -l, --selector labels      of the proxies' pods (default ${POD_PLACE.selector})
  -a, --all                  print nodes that are in step as well
  -o, --output text|json     how to print (default text)
      --watch                again every five seconds, until it is interrupted
      --ui                   serve a page about it to browsers on this machine, until it is interrupted
      --listen IP:port       for --ui: where, an address of loopback (default ${LISTEN})
  -h, --help                 print this text

Exit status: 0 when all nodes are in step and nothing is wrong, 1 when something is, 2 when the API server could not be asked.
`;

const EVERY_MS = 5000;

/** @param argv arguments after `nodes`. Resolves to the exit status; with --watch it does not. */
export async function nodes(argv: readonly string[], terminal: Terminal): Promise<0 | 1 | 2> {
  const { write, complain, isTerminal } = terminal;
  const options = readOptions(argv);
  if (typeof options === 'string') {
    complain(`${options}\n\n${USAGE}`);
    return 2;
  }
  if (options.help) {
    await write(USAGE);
    return 0;
  }
  const { output, all, place } = options;
  try {
    const api = await ClusterApi.open(options.kubeconfig);
    const asker = new ProxyAsker(api);
    const ask = (): Promise<NodesReport> => lookAtNodes({ api, asker, place, patienceMs: PATIENCE_MS });
    if (options.listen !== null) {
      await write(`${await serve(options.listen, ask, asker)}\n`);
      return 0;
    }
    const look = async (): Promise<{ readonly text: string; readonly isWell: boolean }> => {
      const report = await ask();
      return { text: formatted(report, output, (each) => printReport(each, all)), isWell: isWell(report) };
    };
    if (options.watch) {
      if (isTerminal) await write(CLEARED);
      for (;;) {
        const text = await look().then(
          ({ text }) => text,
          (error: unknown) => `${saidOf(error)}\n`,
        );
        await write(isTerminal ? redrawn(text) : text);
        await sleep(EVERY_MS);
        asker.renew();
      }
    }
    const { text, isWell: well } = await look();
    await write(text);
    return well ? 0 : 1;
  } catch (error) {
    complain(saidOf(error));
    return 2;
  }
}

/** Serves the page, and looks once, so that what is wrong with the kubeconfig is said here. @throws ClusterError */
async function serve(listen: HostPort, ask: () => Promise<NodesReport>, asker: ProxyAsker): Promise<string> {
  await ask();
  const look = (): Promise<NodesReport> => {
    asker.renew();
    return ask();
  };
  try {
    return (await serveNodesPage({ look }, listen)).address;
  } catch (error) {
    throw new ClusterError(`--listen: ${messageOf(error)}`, { cause: error });
  }
}

/** Why the API server could not be asked; a later look may find it again. @throws whatever else was thrown. */
function saidOf(error: unknown): string {
  if (error instanceof ClusterError) return error.message;
  throw error;
}

interface Options {
  readonly kubeconfig: string;
  readonly place: PodPlace;
  readonly all: boolean;
  readonly output: string;
  readonly watch: boolean;
  /** Where a page is served; null: none is. */
  readonly listen: HostPort | null;
  readonly help: boolean;
}

/** What is wrong with the arguments, where something is. */
function readOptions(argv: readonly string[]): Options | string {
  try {
    const { values } = parse(argv);
    const { namespace, selector, output, ui, listen, ...others } = values;
    const at = parseListen(listen);
    if (typeof at === 'string' || !isLoopback(at.address))
      return `--listen: ${JSON.stringify(listen)}: ${typeof at === 'string' ? at : 'must be an address of loopback'}`;
    if (output !== 'text' && output !== 'json') return `--output: ${JSON.stringify(output)}: must be text or json`;
    return { ...others, output, place: { namespace, selector }, listen: ui ? at : null };
  } catch (error) {
    return messageOf(error);
  }
}

function parse(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    options: {
      kubeconfig: { type: 'string', default: '' },
      namespace: { type: 'string', default: POD_PLACE.namespace },
      selector: { type: 'string', short: 'l', default: POD_PLACE.selector },
      all: { type: 'boolean', short: 'a', default: false },
      output: { type: 'string', short: 'o', default: 'text' },
      watch: { type: 'boolean', default: false },
      ui: { type: 'boolean', default: false },
      listen: { type: 'string', default: LISTEN },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}
