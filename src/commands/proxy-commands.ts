import { SUBCOMMANDS, type Subcommand } from '../config/command-names.js';
import type { CommandSpec } from './command.js';
import { CONFIGURED_COMMANDS, flagsOf } from './command-line.js';

type About = Omit<CommandSpec, 'name' | 'flags' | 'proxyFlags'>;

/** Worth a line in the help of commands that are configured as the proxy is. */
const USUAL = ['config', 'manifests', 'kubeconfig', 'hostname-override', 'mode', 'cluster-cidr'];
const OF_PROCESS = ['status-socket'];

const READS_MANIFESTS = 'it is printed';
const NOT_USED = 'part of the input is wrong and was left out';
const CANNOT = 'unknown: the command line or the configuration is wrong';
const NO_ANSWER = 'unknown: no process answers, or the command line is wrong';

const ABOUT: Readonly<Record<Subcommand, About>> = {
  plan: {
    summary: 'print the forwarding table of this node, one fact a line',
    operands: '',
    about: ['Computed from manifests and configuration. It needs no privileges and does not read the kernel.'],
    examples: [
      { line: 'pointsman plan --config config.conf --manifests objects/', says: 'as text' },
      { line: 'pointsman plan -o json --manifests objects/', says: 'as a list of facts for jq(1)' },
    ],
    exits: { 0: READS_MANIFESTS, 1: NOT_USED, 2: CANNOT },
  },
  render: {
    summary: 'print the ruleset of this node, as nftables JSON or as iptables-restore takes it',
    operands: '',
    about: ['It needs no privileges.'],
    examples: [{ line: 'pointsman render --mode nftables --manifests objects/', says: 'the tables of mode nftables' }],
    exits: { 0: READS_MANIFESTS, 1: NOT_USED, 2: CANNOT },
  },
  dump: {
    summary: 'print what the kernel holds, in the terms of plan',
    operands: '',
    about: [],
    examples: [
      { line: 'pointsman dump --config config.conf', says: 'all that is programmed' },
      {
        line: 'diff <(pointsman plan …) <(pointsman dump …)',
        says: 'empty when the kernel holds the plan',
      },
    ],
    exits: {
      0: READS_MANIFESTS,
      1: NOT_USED,
      2: 'unknown: the kernel could not be read, or the command line is wrong',
    },
  },
  diff: {
    summary: 'print what a start would change on this node, and change nothing',
    operands: '',
    about: [],
    examples: [
      { line: 'pointsman diff --config config.conf', says: 'with the objects of the API server' },
      { line: 'pointsman diff --manifests objects/ -o json', says: 'with manifests, as JSON' },
    ],
    exits: { 0: 'nothing would change', 1: 'something would', 2: 'unknown' },
  },
  status: {
    summary: 'print how the running proxy is doing',
    operands: '',
    about: [],
    examples: [
      { line: 'pointsman status', says: 'once' },
      { line: 'pointsman status --watch', says: 'every two seconds' },
      { line: 'pointsman status -o json', says: 'all of it, for programs' },
    ],
    exits: { 0: 'healthy', 1: 'not healthy, or healthy with warnings', 2: NO_ANSWER },
  },
  services: {
    summary:
      'list the Services of the running proxy, or show one: addresses, endpoints, why some are not used, traffic',
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
  },
  explain: {
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
  },
  trace: {
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
  },
  selftest: {
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
  },
  top: {
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
  },
  bugreport: {
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
  },
  ui: {
    summary: 'serve a page about the running proxy to browsers on this machine',
    operands: '',
    about: ['It serves until interrupted.'],
    examples: [{ line: 'pointsman ui --listen 127.0.0.1:8080', says: 'at http://127.0.0.1:8080/ui/' }],
    exits: { 0: 'it was interrupted', 1: null, 2: NO_ANSWER },
  },
};

/** Commands that are configured as the proxy is, or ask the running one. */
export const PROXY_COMMANDS: readonly CommandSpec[] = SUBCOMMANDS.map((name) => {
  const { flags, takes } = CONFIGURED_COMMANDS[name];
  const own: readonly string[] = flags.map((flag) => flag.name);
  const taken = flagsOf(name).filter((flag) => !own.includes(flag.name));
  const shown = takes === 'process' ? OF_PROCESS : [...USUAL, ...(name === 'explain' ? OF_PROCESS : [])];
  return { name, flags, proxyFlags: { taken, shown }, ...ABOUT[name] };
});
