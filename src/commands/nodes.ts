import { bool, text } from '../config/flag.js';
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
    text('output', 'table|wide|json|yaml', 'output format', 'table', { short: 'o' }),
    bool('all', 'print nodes that are in step as well', { short: 'a' }),
    bool('watch', 'print again every five seconds, until interrupted', { short: 'w' }),
    bool('ui', 'serve it as a page to browsers on this machine, until interrupted'),
    text('listen', 'IP:port', 'with --ui: loopback address of the page', LISTEN),
    text('kubeconfig', 'file', 'kubeconfig; empty: as kubectl finds it'),
    text('context', 'name', 'context of the kubeconfig; empty: its current one'),
    text('namespace', 'name', 'namespace of the proxy pods', 'kube-system', { short: 'n' }),
    text('selector', 'labels', 'labels of the proxy pods', 'k8s-app in (kube-proxy,kube-proxy-windows,pointsman)', {
      short: 'l',
    }),
  ],
  proxyFlags: null,
  exits: {
    0: 'all nodes are in step and nothing is wrong',
    1: 'something is wrong',
    2: 'the API server could not be asked',
  },
};
