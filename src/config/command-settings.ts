import { isLoopback } from '../base/ip.js';
import { ConfigError, invalid } from './errors.js';
import { isFlagSet, numberFlag, textFlag, type CommandLine } from './flags.js';
import { parseListen, type HostPort } from './host-port.js';
import { OUTPUT_FORMS, type Command, type Loaded, type LoadedConfig, type OutputForm } from './load.js';

function readOutput(line: CommandLine): OutputForm {
  return OUTPUT_FORMS.find((form) => form === textFlag(line, 'output')) ?? 'text';
}

/** With what only this command wants to know. */
export function commandSettings(command: Command, line: CommandLine, loaded: Loaded): LoadedConfig {
  const output = readOutput(line);
  if (command === 'status') {
    const heapSnapshot = textFlag(line, 'heap-snapshot');
    return { command, output, heapSnapshot, watch: isFlagSet(line, 'watch'), ...loaded };
  }
  if (command === 'services')
    return {
      command,
      named: line.operand ?? '',
      output,
      problemsOnly: isFlagSet(line, 'problems'),
      limit: numberFlag(line, 'limit') ?? 0,
      watch: isFlagSet(line, 'watch'),
      ...loaded,
    };
  if (command === 'selftest' || command === 'trace') return forPackets(command, line, loaded);
  if (command === 'top')
    return {
      command,
      output,
      seconds: readSmall(line, 'seconds'),
      count: numberFlag(line, 'count') ?? 0,
      sort: readOrder(line),
      endpoints: isFlagSet(line, 'endpoints'),
      limit: numberFlag(line, 'limit') ?? 0,
      ...loaded,
    };
  if (command === 'bugreport') return bugreportSettings(line, loaded);
  if (command === 'ui') return { command, listen: readListen(line), ...loaded };
  if (command === 'plan' || command === 'dump' || command === 'diff') return { command, output, ...loaded };
  if (command === 'explain')
    return {
      command,
      from: textFlag(line, 'from'),
      to: line.operand ?? '',
      output,
      watch: isFlagSet(line, 'watch'),
      node: textFlag(line, 'node'),
      context: textFlag(line, 'context'),
      namespace: textFlag(line, 'namespace'),
      selector: textFlag(line, 'selector'),
      ...loaded,
    };
  if (command === 'render') return { command, ...loaded };
  throw new TypeError(`${command} is no command of its own`);
}

/** What sends packets, or follows them. */
function forPackets(command: 'selftest' | 'trace', line: CommandLine, loaded: Loaded): LoadedConfig {
  const output = readOutput(line);
  const seconds = readSmall(line, 'seconds');
  if (command === 'selftest') {
    const isJunit = textFlag(line, 'output') === 'junit';
    return { command, services: line.operands, output: isJunit ? 'junit' : output, seconds, ...loaded };
  }
  const [from, to] = [textFlag(line, 'from'), line.operand ?? ''];
  return { command, from, to, output, seconds, count: readSmall(line, 'count'), ...loaded };
}

function bugreportSettings(line: CommandLine, loaded: Loaded): LoadedConfig {
  const [node, all] = [textFlag(line, 'node'), isFlagSet(line, 'all')];
  if (node !== '' && all)
    throw new ConfigError('CONFIG_USAGE', null, ['--all: Forbidden: --node names one node'], 'bugreport');
  const [kubeconfig, context] = [textFlag(line, 'kubeconfig'), textFlag(line, 'context')];
  const place = { namespace: textFlag(line, 'namespace'), selector: textFlag(line, 'selector') };
  return { command: 'bugreport', file: textFlag(line, 'file'), node, all, kubeconfig, context, ...place, ...loaded };
}

const ORDERS = ['connections', 'bytes', 'refused'] as const;

function readOrder(line: CommandLine): (typeof ORDERS)[number] {
  const text = textFlag(line, 'sort');
  const order = ORDERS.find((each) => each === text);
  if (order !== undefined) return order;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--sort', text, `must be one of ${ORDERS.join(', ')}`)]);
}

const MOST = { seconds: 60, count: 100 } as const;

function readSmall(line: CommandLine, name: keyof typeof MOST): number {
  const value = numberFlag(line, name) ?? 0;
  if (value >= 1 && value <= MOST[name]) return value;
  throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${name}`, value, `must be 1 to ${MOST[name]}`)]);
}

/** Where the page is served: to this machine alone. */
function readListen(line: CommandLine): HostPort {
  const text = textFlag(line, 'listen');
  const place = parseListen(text);
  const problem =
    typeof place === 'string' ? place : 'must be an address of loopback: the page is for this machine alone';
  if (typeof place === 'object' && isLoopback(place.address)) return place;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--listen', text, problem)]);
}
