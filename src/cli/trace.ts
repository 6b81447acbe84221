import { parseAddress } from '../base/ip.js';
import type { OutputForm } from '../commands/shared-flags.js';
import type { Config } from '../config/config.js';
import type { Machine } from '../control/mode.js';
import { openTrace, TraceError } from '../dataplane/trace/open.js';
import type { TracedConnection } from '../dataplane/trace/connection.js';
import type { TracedFlow } from '../dataplane/trace/table.js';
import type { ExplainedPacket } from '../serve/explain-packet.js';
import { masqueradedEndpoints } from '../plan/masqueraded.js';
import { formatted } from '../serve/formatted.js';
import { EXPLAIN_PAGE } from '../serve/status-pages.js';
import { ask } from './ask.js';
import { AskError } from './ask-error.js';
import { printTraced, printWaiting, type TracedAndExplained } from './print-trace.js';

interface Asked {
  readonly config: Pick<Config, 'statusSocket'>;
  /** Empty: any sender. */
  readonly from: string;
  readonly to: string;
  readonly output: OutputForm;
  readonly seconds: number;
  /** How many connections, of those that come within `seconds`. */
  readonly count: number;
}

/**
 * Follows connections of a flow through the rules of this node, and compares them with the answer of the running process.
 * Returns the exit status.
 */
export async function trace(
  asked: Asked,
  { addon }: Machine,
  write: (text: string) => Promise<void>,
): Promise<0 | 1 | 2> {
  const { output, count, seconds } = asked;
  const isText = output === 'text' || output === 'table' || output === 'wide';
  const { explanation: explained } = await explain(asked, asked.from === '' ? 'external' : asked.from, asked.to);
  const opened = await open(addon, flowOf(explained, asked.from));
  const found: TracedAndExplained[] = [];
  let areWell = true;
  try {
    if (isText) await write(formatted(explained, 'text', (answer) => printWaiting(answer, asked)));
    const deadline = performance.now() + seconds * 1000;
    while (found.length < count) {
      const connection = await opened.next(deadline - performance.now());
      if (connection === null) break;
      const { traced, well } = await compare(asked, connection);
      found.push(traced);
      areWell &&= well;
      if (isText) await write(formatted(traced, 'text', printTraced));
    }
  } finally {
    opened.close();
  }
  if (!isText) await write(formatted(found, output, () => []));
  if (found.length === 0) {
    const missed = opened.missed ? '; the kernel reported more than could be read' : '';
    throw new AskError(`no such packet came by in ${seconds} s${missed}: does its sender use another address?`);
  }
  return areWell ? 0 : 1;
}

async function open(addon: Machine['addon'], flow: TracedFlow): ReturnType<typeof openTrace> {
  try {
    return await openTrace(addon, flow);
  } catch (error) {
    if (error instanceof TraceError) throw new AskError(error.message, { cause: error });
    throw error;
  }
}

interface Explained {
  readonly explanation: ExplainedPacket;
  /** Whether the process answers that such packets arrive. */
  readonly well: boolean;
}

async function explain({ config }: Asked, from: string, to: string): Promise<Explained> {
  const query = new URLSearchParams({ from, to, output: 'json' }).toString();
  const { text, well } = await ask(config.statusSocket, `${EXPLAIN_PAGE}?${query}`);
  return { explanation: JSON.parse(text) as ExplainedPacket, well: well === true };
}

function flowOf({ family, protocol, destination, source: { sender } }: ExplainedPacket, from: string): TracedFlow {
  const [host, port] = splitEndpoint(destination);
  const address = parseAddress(host);
  if (address === null) throw new AskError(`invalid answer on --status-socket: ${destination}`);
  const of = sender.type === 'address' ? sender.address : null;
  const input = sender.type === 'address' ? sender.interface : sender.type === 'interface' ? sender.name : null;
  return {
    family,
    protocol,
    input,
    destination: address,
    port: Number(port),
    source: of,
    incoming: sender.type !== 'node',
    outgoing: from === '' || sender.type === 'node' || (of !== null && input === null),
  };
}

function splitEndpoint(text: string): readonly [string, string] {
  const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(text) ?? [];
  return [host, port];
}

/** Asks the process about just this connection. */
async function compare(
  asked: Asked,
  connection: TracedConnection,
): Promise<{ readonly traced: TracedAndExplained; readonly well: boolean }> {
  const { source, input, destination, protocol } = connection;
  const [host] = splitEndpoint(source);
  const from = input === null || input === 'lo' ? host : `${host}%${input}`;
  try {
    const { explanation, well } = await explain(asked, from, `${destination}/${protocol}`);
    const agrees = agreesWith(explanation, connection);
    return { traced: { connection, explanation, agrees, unexplained: null }, well: agrees && well };
  } catch (error) {
    if (!(error instanceof AskError)) throw error;
    return { traced: { connection, explanation: null, agrees: null, unexplained: error.message }, well: false };
  }
}

/** Whether the packet went where the answer says. */
function agreesWith(explanation: ExplainedPacket, connection: TracedConnection): boolean {
  const { verdict, observations } = explanation;
  const { outcome, endpoint, lost } = connection;
  // The kernel does not report the rule that took it.
  const isHidden = outcome === 'lost' && lost?.passed === false;
  switch (verdict.type) {
    case 'none':
      return endpoint === null || endpoint === connection.destination;
    case 'drop':
      return outcome === 'dropped' || isHidden;
    case 'reject':
      return outcome === 'rejected' || isHidden;
    case 'forward':
      if (endpoint === null) return observations.some(({ severity }) => severity === 'warning');
      return verdict.endpoints.includes(endpoint) && isMasqueradedAs(explanation, connection, endpoint);
  }
}

function isMasqueradedAs(
  explanation: ExplainedPacket,
  { source, sourceSeen }: TracedConnection,
  endpoint: string,
): boolean {
  return masqueradedEndpoints(explanation).includes(endpoint) === (sourceSeen !== source);
}
