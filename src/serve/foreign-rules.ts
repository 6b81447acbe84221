import { messageOf } from '../base/error-message.js';
import { parseAddress, type Family, type IPAddress } from '../base/ip.js';
import type { ForeignLosses, ForeignQuestion } from '../dataplane/foreign/losses.js';
import type { Observation } from '../observe/observations.js';
import type { Explanation } from '../plan/explain.js';
import type { Question } from '../plan/question.js';
import type { RunningProcess } from './running-process.js';

/** Of so many endpoints the way is followed. */
const MOST_ENDPOINTS = 32;

type Loss = ForeignLosses['losses'][number];

/** Rules of others in the way of one packet. */
export async function foreignInTheWay(
  { foreign, host, planned }: Pick<RunningProcess, 'foreign' | 'host' | 'planned'>,
  explanation: Explanation,
  question: Question,
): Promise<readonly Observation[]> {
  if (foreign === undefined || explanation.verdict.type !== 'forward') return [];
  return await attempted(async () => {
    const asked = questionOf(explanation, question, host.localAddresses());
    // Packets come in where the node has the addresses of Services, and the kernel sends them on.
    const isSentOn = planned().traits.guardsServiceAddresses;
    const { losses, unread } = await foreign.lossesOf({ ...asked, isSentOn });
    return [...losses.map((loss) => observe(loss, lostOf(loss))), ...unread.map(unreadNote)];
  });
}

function lostOf({ of, all, endpoints }: Loss): string {
  if (of === 'answer') return all ? 'its answers' : `answers of ${endpoints.join(', ')}`;
  return all ? 'it' : `connections to ${endpoints.join(', ')}`;
}

/** Rules of others that let nothing through of these families. */
export async function foreignWalls(
  { foreign }: Pick<RunningProcess, 'foreign'>,
  served: readonly Family[],
): Promise<readonly Observation[]> {
  if (foreign === undefined) return [];
  return await attempted(async () => {
    const { losses } = await foreign.lossesOfAll();
    return losses.flatMap((loss) => {
      const lost = served.filter((family) => loss.families.includes(family));
      const which = lost.length === served.length ? '' : ` ${lost.join(' and ')}`;
      return lost.length === 0 ? [] : [observe(loss, `every${which} packet that this node forwards`)];
    });
  });
}

async function attempted(find: () => Promise<readonly Observation[]>): Promise<readonly Observation[]> {
  try {
    return await find();
  } catch (error) {
    return [unreadNote(messageOf(error))];
  }
}

function unreadNote(why: string): Observation {
  return {
    kind: 'foreign-rules',
    severity: 'note',
    text: `rules of others were not all read: ${why}`,
    remedy: 'see nft list ruleset',
  };
}

const EFFECTS: Readonly<Record<Loss['outcome'], (what: string) => string>> = {
  drop: (what) => `drop ${what}`,
  reject: (what) => `reject ${what}`,
  translate: (what) => `translate ${what} before ours do`,
  untrack: (what) => `exempt ${what} from tracking, so that ours do not translate`,
  divert: (what) => `give ${what} to a program on this node, if one listens (tproxy)`,
};

const REMEDIES: Readonly<Record<Loss['outcome'], string>> = {
  drop: 'accept these packets before it, or remove the rule',
  reject: 'accept these packets before it, or remove the rule',
  translate: 'the packet goes where that rule sends it; give one of them another address or port, or remove the rule',
  untrack: 'a node-local DNS cache has such rules for its own addresses; otherwise remove the rule',
  divert: 'exempt Service addresses from it, or remove the rule',
};

function observe({ outcome, certain, where, rule, listing }: Loss, what: string): Observation {
  const text = rule === null ? '' : `: ${rule}`;
  return {
    kind: 'foreign-rules',
    severity: certain ? 'warning' : 'note',
    text: certain
      ? `rules of others ${EFFECTS[outcome](what)}: ${where}${text}`
      : `rules of others may ${EFFECTS[outcome](what)}, not all of them can be evaluated: ${where}${text}`,
    remedy: `see ${listing}; ${REMEDIES[outcome]}`,
  };
}

function questionOf(
  { family, protocol, source, verdict }: Explanation,
  { destination, port }: Question,
  own: readonly IPAddress[],
): Omit<ForeignQuestion, 'isSentOn'> {
  const endpoints = verdict.type === 'forward' ? verdict.endpoints.slice(0, MOST_ENDPOINTS) : [];
  return {
    family,
    protocol,
    destination,
    isToNode: own.includes(destination),
    port,
    source: source.address,
    inputInterface: source.interface,
    isSentHere: source.kind === 'node',
    masquerade: verdict.type === 'forward' && verdict.masquerade,
    endpoints: endpoints.flatMap((endpoint) => {
      const [, host = '', at = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(endpoint) ?? [];
      const address = parseAddress(host);
      return address === null ? [] : [{ address, port: Number(at), isOwn: own.includes(address) }];
    }),
  };
}
