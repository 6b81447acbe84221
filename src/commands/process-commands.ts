import { isLoopback } from '../base/ip.js';
import type { Output } from '../cli/commands.js';
import type { TopOrder } from '../cli/top.js';
import { ConfigError, invalid } from '../config/errors.js';
import { bool, int, text } from '../config/flag.js';
import { parseListen, type HostPort } from '../config/host-port.js';
import { proxyCommand } from './definition.js';
import type { Given } from './given.js';
import { OUTPUT, readOutput, type OutputForm } from './shared-flags.js';

const LISTED = { ...OUTPUT, value: 'table|wide|json|yaml', initial: 'table' } as const;
const TESTED = { ...OUTPUT, value: 'table|json|yaml|junit', initial: 'table' } as const;

const SECONDS = int('seconds', 'timeout of an answer, 1 to 60', '2');

const TOP_OUTPUT = { ...OUTPUT, value: 'table|json|yaml', initial: 'table' } as const;
const INTERVAL = { ...SECONDS, help: 'refresh interval, 1 to 60' } as const;

const COUNT = int('count', 'number of tables to print; 0: until interrupted', '0');

const SORT = text('sort', 'connections|bytes|refused', 'sort order', 'connections');

const ENDPOINTS = bool('endpoints', 'include endpoints, which the process must count (--service-telemetry-endpoints)');

const FILE = text(
  'file',
  'file',
  'output file, which must not exist; -: standard output; empty: standard output, or on a terminal a file in this folder, named after node and time',
);

const PROBLEMS = bool('problems', 'only those with problems');

const LIMIT = int('limit', 'number of rows; 0: all', '500');

const TOP_LIMIT = { ...LIMIT, initial: '20' } as const;

const WATCH = bool('watch', 'print again every two seconds, until interrupted', { short: 'w' });

const NODE = [
  text(
    'node',
    'name',
    'ask the proxy of that node, through the API server of --kubeconfig; empty: that of this machine',
  ),
  text('namespace', 'name', 'with --node: namespace of the proxy pods; empty: kube-system', '', { short: 'n' }),
  text('selector', 'labels', 'with --node: labels of the proxy pods; empty: as for pointsman nodes', '', {
    short: 'l',
  }),
] as const;

const CONTEXT = text('context', 'name', 'with --node: context of the kubeconfig');

const OF_CLUSTER = [
  bool('all', 'ask the proxies of all nodes, through the API server', { short: 'a' }),
  text('kubeconfig', 'file', 'with --node or --all: kubeconfig; empty: as kubectl finds it'),
  { ...CONTEXT, help: 'with --node or --all: context of the kubeconfig; empty: its current one' },
  ...NODE,
] as const;

const FROM = text(
  'from',
  'sender',
  'external, node, an IP address, a pod, an interface, or address%interface',
  'external',
);

const TRACED_FROM = { ...FROM, help: `${FROM.help}; empty: any sender`, initial: '' } as const;
const TRACED_SECONDS = { ...SECONDS, help: 'how long to wait for connections, 1 to 60', initial: '30' } as const;
const TRACED_COUNT = { ...COUNT, help: 'number of connections to follow, 1 to 100', initial: '1' } as const;

const LISTEN = text('listen', 'IP:port', 'loopback address of the page; port 0: any free one', '127.0.0.1:0');

const HEAP_SNAPSHOT = text(
  'heap-snapshot',
  'file',
  "write a snapshot of the process's memory, which holds every credential, to a new file; pauses the process",
);

const NO_ANSWER = 'unknown: no process answers, or the command line is wrong';

export const STATUS = proxyCommand({
  name: 'status',
  summary: 'print how the running proxy is doing',
  operands: '',
  about: [],
  examples: [
    { line: 'pointsman status', says: 'once' },
    { line: 'pointsman status --watch', says: 'every two seconds' },
    { line: 'pointsman status -o json', says: 'all of it, for programs' },
  ],
  exits: { 0: 'healthy', 1: 'not healthy, or healthy with warnings', 2: NO_ANSWER },
  flags: [OUTPUT, WATCH, HEAP_SNAPSHOT],
  needs: 'process',
  operand: 'none',
  prepare: (given, { config }) => {
    const output = readOutput(given);
    const heapSnapshot = given.text('heap-snapshot');
    return async (parts) => {
      const { printOutput, status } = await import('../cli/commands.js');
      if (!given.isSet('watch')) return await printOutput(await status(config, output, heapSnapshot), parts);
      const { watchOutput } = await import('../cli/watch.js');
      return await watchOutput(() => status(config, output, ''), parts);
    };
  },
});

export const SERVICES = proxyCommand({
  name: 'services',
  summary: 'list the Services of the running proxy, or show one: addresses, endpoints, why some are not used, traffic',
  operands: '[NAME|NAMESPACE/NAME|ADDRESS]',
  about: [
    'A query that matches several Services lists them: part of a name, an address or port of the Service, an endpoint, the name of a pod.',
    'A Service has a problem if this node refuses or drops traffic to it from any client. So has one that is quarantined, cannot be planned or is in conflict. A part of its object or EndpointSlices that is left out is a problem, too.',
  ],
  examples: [
    { line: 'pointsman services --problems', says: 'those with a problem' },
    { line: 'pointsman services shop/web', says: 'one Service with its endpoints' },
    { line: 'pointsman services 10.96.0.10', says: 'whose address that is' },
  ],
  exits: { 0: 'it is printed', 1: 'a listed Service has a problem, or none matches', 2: NO_ANSWER },
  flags: [LISTED, WATCH, PROBLEMS, LIMIT],
  needs: 'process',
  operand: 'optional',
  prepare: (given, { config }) => {
    const asked = {
      config,
      named: given.operands[0] ?? '',
      output: readOutput(given),
      problemsOnly: given.isSet('problems'),
      limit: given.number('limit'),
      watch: given.isSet('watch'),
    };
    return async (parts) => await (await import('../cli/services.js')).services(asked, parts);
  },
});

export const EXPLAIN = proxyCommand({
  name: 'explain',
  summary: 'show what happens to a packet, and why',
  operands: 'ADDRESS:PORT/PROTOCOL|SERVICE[:PORT]',
  about: [
    'The running process answers. With --manifests the answer is computed from them; with --node the proxy of that node answers.',
  ],
  examples: [
    { line: 'pointsman explain 10.96.0.1:443', says: 'from a client outside the cluster' },
    { line: 'pointsman explain --from 10.244.1.11 10.96.0.10:53/UDP', says: 'from a pod' },
    {
      line: 'pointsman explain shop/web:http',
      says: 'to a Service by name; also web.shop, svc/web, http://web.shop',
    },
    { line: 'pointsman explain --node worker-1 192.0.2.3:80', says: 'on another node' },
  ],
  exits: {
    0: 'the packet is forwarded, and the kernel holds the plan',
    1: 'it is not, the kernel differs from the plan, or something is in the way',
    2: 'unknown: no process answers, or manifests or command line are wrong',
  },
  flags: [FROM, OUTPUT, WATCH, CONTEXT, ...NODE],
  needs: 'process or manifests',
  operand: 'required',
  prepare: (given, { config }) => {
    const asked = { from: given.text('from'), to: given.operands[0] ?? '', output: readOutput(given) };
    const node = given.text('node');
    const place = { node, context: given.text('context'), ...readPods(given) };
    return async (parts) => {
      const { explain, printOutput } = await import('../cli/commands.js');
      const look = async (): Promise<Output> => {
        if (node === '') return await explain(config, await parts.host(), asked);
        const { explainOn } = await import('../../packages/nodes/src/command.js');
        return await explainOn({ kubeconfig: config.kubernetes?.kubeconfig ?? '', ...place, ...asked });
      };
      if (!given.isSet('watch')) return await printOutput(await look(), parts);
      return await (await import('../cli/watch.js')).watchOutput(look, parts);
    };
  },
});

export const TRACE = proxyCommand({
  name: 'trace',
  summary: 'follow new connections through the rules of this node, and report the outcome',
  operands: 'ADDRESS:PORT/PROTOCOL|SERVICE[:PORT]',
  about: [
    'The kernel reports each rule that applies to the first packet of a connection, in all tables, and to its answer. Each connection is compared with the answer of explain. Rules of iptables-legacy and ip_vs are not reported; their effect shows in the addresses of the packet.',
    'It needs root and CAP_NET_ADMIN, and Linux 5.12. It has a table of its own, which the kernel removes when the command ends or is killed. At most 20 packets a second are followed.',
  ],
  examples: [
    { line: 'pointsman trace shop/web', says: 'the next connection to a Service, from any client' },
    { line: 'pointsman trace --from 10.244.1.11 10.96.0.10:53/UDP', says: 'from a pod' },
    { line: 'pointsman trace --from node --count 3 web.shop:http', says: 'three that this node opens' },
  ],
  exits: {
    0: 'all connections were forwarded, as explain predicts',
    1: 'one was not, or explain predicts otherwise',
    2: 'none came, no process answers, packets cannot be traced, or the command line is wrong',
  },
  flags: [TRACED_FROM, OUTPUT, TRACED_SECONDS, TRACED_COUNT],
  needs: 'process',
  operand: 'required',
  prepare: (given, { config }) => {
    const asked = {
      config,
      from: given.text('from'),
      to: given.operands[0] ?? '',
      output: readOutput(given),
      seconds: readSmall(given, 'seconds', 60),
      count: readSmall(given, 'count', 100),
    };
    return async ({ machine, write }) => await (await import('../cli/trace.js')).trace(asked, await machine(), write);
  },
});

export const SELFTEST = proxyCommand({
  name: 'selftest',
  summary: 'send packets to Services as their clients do, and report the answers',
  operands: '[SERVICE…]',
  about: [
    'Tests cluster IPs, node ports, load balancer addresses and each endpoint: TCP and UDP, both families. It sends from this node and from a network namespace of its own. Without a Service argument, the running proxy serves a test Service meanwhile, with addresses of 198.18.0.0/15 and 2001:2::/48. Its server reports the source it sees.',
    'Where a bridge carries pods, a pod of the test asks a Service whose endpoint is at the same bridge.',
    'It leaves nothing behind. When it is killed, the kernel removes its address of a bridge within five minutes. Its namespaces need root and CAP_SYS_ADMIN, as in a privileged pod. Without them, it sends from this node only, and this node is the endpoint of the test Service. Skipped tests are listed with the reason.',
  ],
  examples: [
    { line: 'pointsman selftest', says: 'whether this node forwards at all' },
    { line: 'pointsman selftest shop/web', says: 'every address and endpoint of a Service' },
    { line: 'pointsman selftest shop/web -o junit', says: 'for continuous integration' },
  ],
  exits: {
    0: 'all tests were answered',
    1: 'something was not',
    2: 'nothing could be tried, no process answers, or the command line is wrong',
  },
  flags: [TESTED, SECONDS],
  needs: 'process',
  operand: 'several',
  prepare: (given, { config }) => {
    const output: OutputForm | 'junit' = given.text('output') === 'junit' ? 'junit' : readOutput(given);
    const asked = { config, services: given.operands, output, seconds: readSmall(given, 'seconds', 60) };
    return async ({ machine, write }) =>
      await (await import('../cli/selftest.js')).selftest(asked, await machine(), write);
  },
});

export const TOP = proxyCommand({
  name: 'top',
  summary: 'show the busiest Services and endpoints: connections, bytes and refusals per second',
  operands: '',
  about: [
    'The running process must count them (--service-telemetry). Refusals are packets, including dropped ones. The process reads its counts in at most 1 % of the time. With very many flows a table therefore takes longer than --seconds.',
  ],
  examples: [
    { line: 'pointsman top', says: 'refreshed, like top(1)' },
    { line: 'pointsman top --sort refused --count 1', says: 'Services that refuse most packets, once' },
    { line: 'pointsman top --endpoints --sort bytes', says: 'which endpoints carry the most' },
  ],
  exits: { 0: 'it is printed', 1: null, 2: NO_ANSWER },
  flags: [TOP_OUTPUT, INTERVAL, COUNT, SORT, ENDPOINTS, TOP_LIMIT],
  needs: 'process',
  operand: 'none',
  prepare: (given, { config }) => {
    const asked = {
      config,
      output: readOutput(given),
      seconds: readSmall(given, 'seconds', 60),
      count: given.number('count'),
      sort: readOrder(given),
      endpoints: given.isSet('endpoints'),
      limit: given.number('limit'),
    };
    return async (parts) => await (await import('../cli/top.js')).top(asked, parts);
  },
});

export const BUGREPORT = proxyCommand({
  name: 'bugreport',
  summary: 'write an archive for the remote diagnosis of a problem',
  operands: '',
  about: [
    'Holds versions, status, history, metrics, traffic and Services with problems; configuration and flags without credentials. It also holds plan, dump and diff, rules of other programs, routes, kernel settings and modules. Its README lists the files. With --node or --all: answers of the proxies through the API server, and the ends of their logs. Names and addresses of Services, endpoints and nodes are included; credentials, keys and the environment are not.',
  ],
  examples: [
    { line: 'pointsman bugreport', says: 'pointsman-NODE-TIME.tar.gz in this folder' },
    { line: 'pointsman bugreport --file /tmp/report.tar.gz', says: 'another file' },
    {
      line: 'kubectl -n kube-system exec POD -- pointsman bugreport > report.tar.gz',
      says: 'of a pod, whose root is read-only',
    },
    { line: 'pointsman bugreport --node worker-1', says: 'of another node, through the API server' },
    { line: 'pointsman bugreport --all', says: 'of all nodes' },
  ],
  exits: {
    0: 'it is written',
    1: 'it is written, and a part could not be read',
    2: 'no process answers, or the file cannot be written',
  },
  flags: [FILE, ...OF_CLUSTER],
  needs: 'process',
  operand: 'none',
  prepare: (given, { config }) => {
    const [file, node, all] = [given.text('file'), given.text('node'), given.isSet('all')];
    if (node !== '' && all)
      throw new ConfigError('CONFIG_USAGE', null, ['--all: Forbidden: --node names one node'], 'bugreport');
    const place = { kubeconfig: given.text('kubeconfig'), context: given.text('context'), ...readPods(given) };
    return async (parts) => {
      if (all || node !== '')
        return await (await import('../../packages/nodes/src/command.js')).bugreportOf({ file, node, ...place }, parts);
      return await (
        await import('../cli/bugreport.js')
      ).bugreport({ config, file }, await parts.machine(), parts.write);
    };
  },
});

export const UI = proxyCommand({
  name: 'ui',
  summary: 'serve a page about the running proxy to browsers on this machine',
  operands: '',
  about: ['It serves until interrupted.'],
  examples: [{ line: 'pointsman ui --listen 127.0.0.1:8080', says: 'at http://127.0.0.1:8080/ui/' }],
  exits: { 0: 'it was interrupted', 1: null, 2: NO_ANSWER },
  flags: [LISTEN],
  needs: 'process',
  operand: 'none',
  prepare: (given, { config }) => {
    const listen = readListen(given);
    return async ({ write }) => {
      await write(await (await import('../cli/page.js')).servePage(config.statusSocket, listen));
      return 0;
    };
  },
});

/** Where the proxies' pods are. */
function readPods(given: Given<'namespace' | 'selector'>): { readonly namespace: string; readonly selector: string } {
  return { namespace: given.text('namespace'), selector: given.text('selector') };
}

const ORDERS: readonly TopOrder[] = ['connections', 'bytes', 'refused'];

function readOrder(given: Given<'sort'>): TopOrder {
  const text = given.text('sort');
  const order = ORDERS.find((each) => each === text);
  if (order !== undefined) return order;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--sort', text, `must be one of ${ORDERS.join(', ')}`)]);
}

function readSmall<Name extends string>(given: Given<Name>, name: Name, most: number): number {
  const value = given.number(name);
  if (value >= 1 && value <= most) return value;
  throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${name}`, value, `must be 1 to ${most}`)]);
}

/** Where the page is served: to this machine alone. */
function readListen(given: Given<'listen'>): HostPort {
  const text = given.text('listen');
  const place = parseListen(text);
  const problem =
    typeof place === 'string' ? place : 'must be an address of loopback: the page is for this machine alone';
  if (typeof place === 'object' && isLoopback(place.address)) return place;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--listen', text, problem)]);
}
