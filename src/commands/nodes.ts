import type { CommandSpec } from './command.js';

/** Where the page is, unless a flag says otherwise: a free port. */
const LISTEN = '127.0.0.1:0';

export const NODES: CommandSpec = {
  name: 'nodes',
  summary: 'ask the proxies of all nodes through the API server, and report problems',
  operands: '[NODE…]',
  about: [
    'Lists nodes that lag, differ from the API server or do not answer, with the reason. Lists Services that are quarantined, cannot be planned or are in conflict, with their nodes.',
  ],
  examples: [
    { line: 'pointsman nodes', says: 'nodes with something to report' },
    { line: 'pointsman nodes worker-1', says: 'one node, with its reasons' },
    { line: 'pointsman nodes --all --context production', says: 'all nodes of another cluster' },
    { line: 'pointsman nodes --ui', says: 'as a page in the browser' },
  ],
  flags: [
    {
      name: 'output',
      short: 'o',
      type: 'string',
      value: 'table|wide|json|yaml',
      help: 'output format',
      initial: 'table',
    },
    { name: 'all', short: 'a', type: 'bool', help: 'print nodes that are in step as well', initial: 'false' },
    {
      name: 'watch',
      short: 'w',
      type: 'bool',
      help: 'print again every five seconds, until interrupted',
      initial: 'false',
    },
    {
      name: 'ui',
      type: 'bool',
      help: 'serve it as a page to browsers on this machine, until interrupted',
      initial: 'false',
    },
    {
      name: 'listen',
      type: 'string',
      value: 'IP:port',
      help: 'with --ui: loopback address of the page',
      initial: LISTEN,
    },
    { name: 'kubeconfig', type: 'string', value: 'file', help: 'kubeconfig; empty: as kubectl finds it', initial: '' },
    {
      name: 'context',
      type: 'string',
      value: 'name',
      help: 'context of the kubeconfig; empty: its current one',
      initial: '',
    },
    {
      name: 'namespace',
      short: 'n',
      type: 'string',
      value: 'name',
      help: 'namespace of the proxy pods',
      initial: 'kube-system',
    },
    {
      name: 'selector',
      short: 'l',
      type: 'string',
      value: 'labels',
      help: 'labels of the proxy pods',
      initial: 'k8s-app in (kube-proxy,kube-proxy-windows,pointsman)',
    },
  ],
  proxyFlags: null,
  exits: {
    0: 'all nodes are in step and nothing is wrong',
    1: 'something is wrong',
    2: 'the API server could not be asked',
  },
};
