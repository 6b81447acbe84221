import type { CommandSpec } from './command.js';

/** Where the page is, unless a flag says otherwise: a free port. */
const LISTEN = '127.0.0.1:0';

export const NODES: CommandSpec = {
  name: 'nodes',
  summary: 'ask the proxies of all nodes through the API server, and say what is wrong where',
  operands: '[NODE…]',
  about: [
    'Says which nodes lag, which differ from what the API server holds, which give no answer and why, and which Services are quarantined, cannot be planned or are in conflict, and where.',
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
      help: 'how to print',
      initial: 'table',
    },
    { name: 'all', short: 'a', type: 'bool', help: 'print nodes that are in step as well', initial: 'false' },
    {
      name: 'watch',
      short: 'w',
      type: 'bool',
      help: 'print again every five seconds, until it is interrupted',
      initial: 'false',
    },
    {
      name: 'ui',
      type: 'bool',
      help: 'serve a page about it to browsers on this machine, until it is interrupted',
      initial: 'false',
    },
    {
      name: 'listen',
      type: 'string',
      value: 'IP:port',
      help: 'with --ui: where, an address of loopback',
      initial: LISTEN,
    },
    { name: 'kubeconfig', type: 'string', value: 'file', help: 'the cluster; empty: as kubectl finds it', initial: '' },
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
