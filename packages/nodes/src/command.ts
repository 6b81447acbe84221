import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../src/base/error-message.js';
import { isLoopback } from '../../../src/base/ip.js';
import { CLEARED, redrawn } from '../../../src/base/redraw.js';
import { parseGiven, refusal } from '../../../src/commands/given.js';
import { printHelp } from '../../../src/commands/help.js';
import { NODES } from '../../../src/commands/nodes.js';
import { parseListen, type HostPort } from '../../../src/config/host-port.js';
import { formatted } from '../../../src/serve/formatted.js';
import type { NodesReport } from './api.js';
import { ClusterApi, ClusterError } from './cluster-api.js';
import type { PodPlace } from './cluster.js';
import { lookAtNodes, PATIENCE_MS } from './look.js';
import { printReport } from './print.js';
import { ProxyAsker } from './proxy-asker.js';
import { isWell } from './report.js';
import { serveNodesPage } from './ui.js';

export { bugreportOf } from './bugreport.js';
export { explainOn } from './explain.js';

/** Where the command writes. */
interface Terminal {
  readonly write: (text: string) => Promise<void>;
  readonly complain: (text: string) => void;
  /** Whether what is written can be written over. */
  readonly isTerminal: boolean;
}

const EVERY_MS = 5000;

/** @param argv arguments after `nodes`. Resolves to the exit status; with --watch it does not. */
export async function nodes(argv: readonly string[], terminal: Terminal): Promise<0 | 1 | 2> {
  const { write, complain, isTerminal } = terminal;
  const options = readOptions(argv);
  if (typeof options === 'string') {
    complain(refusal(options, NODES).trimEnd());
    return 2;
  }
  if (options.help) {
    await write(printHelp(NODES));
    return 0;
  }
  const { output, all, place } = options;
  try {
    const api = await ClusterApi.open(options.kubeconfig, options.context);
    const asker = new ProxyAsker(api);
    const ask = (): Promise<NodesReport> =>
      lookAtNodes({ api, asker, place, names: options.nodes, patienceMs: PATIENCE_MS });
    if (options.listen !== null) {
      await write(`${await serve(options.listen, ask, asker)}\n`);
      return 0;
    }
    const look = async (): Promise<{ readonly text: string; readonly isWell: boolean }> => {
      const report = await ask();
      return {
        text: formatted(report, output, (each) =>
          printReport(each, { all: all || options.nodes.length > 0, isWide: output === 'wide' }),
        ),
        isWell: isWell(report),
      };
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

/** Serves the page, and looks once, so that an error in the kubeconfig is reported here. @throws ClusterError */
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

const OUTPUTS = ['table', 'wide', 'text', 'json', 'yaml'] as const;

interface Options {
  readonly kubeconfig: string;
  /** A context of the kubeconfig; empty: its current one. */
  readonly context: string;
  readonly place: PodPlace;
  /** Names of those to ask; empty: all. */
  readonly nodes: readonly string[];
  readonly all: boolean;
  readonly output: (typeof OUTPUTS)[number];
  readonly watch: boolean;
  /** Where a page is served; null: none is. */
  readonly listen: HostPort | null;
  readonly help: boolean;
}

/** What is wrong with the arguments, where something is. */
function readOptions(argv: readonly string[]): Options | string {
  const given = parseGiven(NODES, argv);
  if (typeof given === 'string') return given;
  const listen = given.text('listen');
  const at = parseListen(listen);
  if (typeof at === 'string' || !isLoopback(at.address))
    return `--listen: ${JSON.stringify(listen)}: ${typeof at === 'string' ? at : 'must be an address of loopback'}`;
  const form = given.text('output');
  const output = OUTPUTS.find((each) => each === form);
  if (output === undefined) return `--output: ${JSON.stringify(form)}: must be table, wide, json or yaml`;
  return {
    kubeconfig: given.text('kubeconfig'),
    context: given.text('context'),
    place: { namespace: given.text('namespace'), selector: given.text('selector') },
    nodes: given.operands,
    all: given.isSet('all'),
    output,
    watch: given.isSet('watch'),
    listen: given.isSet('ui') ? at : null,
    help: given.help,
  };
}
