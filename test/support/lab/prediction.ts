import { familyOf, parseAddress } from '../../../src/base/ip.js';
import { masqueradedEndpoints } from '../../../src/plan/masqueraded.js';
import type { ExplainedPacket } from '../../../src/serve/explain-packet.js';
import { contradiction } from '../scenario-checks.js';
import { describeOutcomes, type Lab, type Outcome, type Traffic } from './lab.js';
import { runningProxy } from './proxy.js';
import { ADDRESSES, INPUT_INTERFACES } from './topology.js';

/**
 * What the running process explains of some traffic, against what became of its packets in the words of Lab.verdict. Null when they are the same, or
 * when no process runs that could be asked.
 *
 * @param deaf nobody listens on the endpoints: packets have to be explained as forwarded.
 */
export async function misprediction(lab: Lab, traffic: Traffic, found: string, deaf: boolean): Promise<string | null> {
  const explanation = await explained(lab, traffic);
  if (explanation === null || typeof explanation === 'string') return explanation;
  if (deaf) return explanation.verdict.type === 'forward' ? null : 'it is not explained as forwarded';
  const predicted = predictions(explanation);
  if (predicted === null) return isUntouched(traffic.to, found) ? null : 'it is explained as untouched';
  return predicted.join(', ') === found ? null : `explained as ${predicted.join(', ')}`;
}

/** The same where not every endpoint need have answered. */
export async function unexplained(lab: Lab, traffic: Traffic, outcomes: readonly Outcome[]): Promise<string | null> {
  const explanation = await explained(lab, traffic);
  if (explanation === null || typeof explanation === 'string') return explanation;
  const predicted = predictions(explanation);
  const strange = describeOutcomes(outcomes).filter((outcome) =>
    predicted === null ? !isUntouched(traffic.to, outcome) : !predicted.includes(outcome),
  );
  if (strange.length === 0) return null;
  return `${strange.join(', ')} explained as ${predicted?.join(', ') ?? 'untouched'}`;
}

/** The explanation, or what is wrong with it in itself; null without a process. */
async function explained(lab: Lab, traffic: Traffic): Promise<ExplainedPacket | string | null> {
  const proxy = runningProxy(lab);
  if (proxy === null) return null;
  const explanation = await proxy.explain(sender(traffic), `${traffic.to}/${traffic.protocol ?? 'TCP'}`);
  const { agrees, missing, surplus, unknown } = explanation.kernel;
  // A process that may not read the kernel says so, and is asked for the verdict alone.
  const mayNotLook = agrees === null && /EPERM/.test(unknown ?? '');
  if (agrees !== true && !mayNotLook)
    return `the kernel is said to differ: ${[unknown, ...missing, ...surplus].join('; ')}`;
  return contradiction(explanation) ?? explanation;
}

/** As somebody who knows the node would ask. */
function sender({ from, to, source }: Traffic): string {
  const family = to.startsWith('[') ? 'IPv6' : 'IPv4';
  if (from === 'node') return source ?? 'node';
  const known = Object.entries(ADDRESSES).find(([name]) => name === from)?.[1][family];
  const address = parseAddress(source ?? known ?? '');
  if (address === null || familyOf(address) !== family) throw new Error(`which address has ${from}?`);
  return `${address}%${INPUT_INTERFACES[from] ?? 'eth0'}`;
}

/** A verdict in the words of Lab.verdict, every endpoint that may answer; null: the network decides. */
function predictions(explanation: ExplainedPacket): readonly string[] | null {
  const { verdict, kernel } = explanation;
  switch (verdict.type) {
    case 'none':
      return null;
    case 'reject':
      return ['refused'];
    case 'drop':
      return ['dropped'];
    case 'forward': {
      const masqueraded = masqueradedEndpoints(explanation);
      const endpoints = kernel.remembered === null ? verdict.endpoints : [kernel.remembered];
      return endpoints
        .map((endpoint) => (masqueraded.includes(endpoint) ? `${endpoint} masqueraded` : endpoint))
        .sort();
    }
  }
}

/** Nothing answered but who was asked. */
function isUntouched(to: string, found: string): boolean {
  return found === to || !/\d/.test(found);
}
