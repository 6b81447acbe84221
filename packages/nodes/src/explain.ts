import type { Mapping } from '../../../src/base/mapping.js';
import { printableText } from '../../../src/base/printable.js';
import { isForwarded, printExplainedPacket, type ExplainedPacket } from '../../../src/serve/explain-packet.js';
import { formatted } from '../../../src/serve/formatted.js';
import { ClusterApi, ClusterError } from './cluster-api.js';
import { POD_PLACE, readPods } from './cluster.js';
import { NODE_MS } from './look.js';
import { NoAnswer, ProxyAsker } from './proxy-asker.js';

interface NodeQuestion {
  /** Empty: as kubectl finds one. */
  readonly kubeconfig: string;
  /** Of the kubeconfig; empty: its current one. */
  readonly context: string;
  readonly node: string;
  /** Namespace of the proxies' pods; empty: the one of {@link POD_PLACE}. */
  readonly namespace: string;
  readonly selector: string;
  readonly from: string;
  readonly to: string;
  readonly output: 'text' | 'table' | 'wide' | 'json' | 'yaml';
}

/** As of every command that prints. */
interface Explained {
  readonly text: string;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** Null: it was not reported. */
  readonly well: boolean | null;
}

/** The answer of a node's proxy about a packet there, in the form of `pointsman explain`; or why it has none. */
export async function explainOn(question: NodeQuestion): Promise<Explained> {
  const { kubeconfig, context, node, from, to, output } = question;
  const namespace = question.namespace || POD_PLACE.namespace;
  const selector = question.selector || POD_PLACE.selector;
  try {
    const api = await ClusterApi.open(kubeconfig, context);
    const pod = (await readPods(api, { namespace, selector }, node)).get(node);
    if (pod === undefined) return failed(`--node: ${node}: no pod of ${selector} in ${namespace} is on it`);
    const page = `api/packet?${new URLSearchParams({ from, to }).toString()}`;
    const answer = await new ProxyAsker(api).ask(pod, page, AbortSignal.timeout(NODE_MS));
    return { ...printed(answer, output), errors: [], warnings: [] };
  } catch (error) {
    if (error instanceof ClusterError) return failed(error.message);
    if (error instanceof NoAnswer) return failed(`--node: ${node}: ${error.message}`);
    throw error;
  }
}

/** @throws NoAnswer where the proxy, or who stands in its place, answers something else. */
function printed(answer: Mapping, output: NodeQuestion['output']): Pick<Explained, 'text' | 'well'> {
  try {
    // A proxy of another release may not observe anything.
    const packet = { observations: [], attempts: null, ...answer } as unknown as ExplainedPacket;
    const text = printableText(formatted(packet, output, printExplainedPacket));
    return { text, well: isForwarded(packet) };
  } catch {
    throw new NoAnswer('an answer that this release does not understand', false);
  }
}

function failed(problem: string): Explained {
  return { text: '', errors: [problem], warnings: [], well: null };
}
