import { setImmediate as turn } from 'node:timers/promises';
import { FAMILIES, type Family, type IPAddress } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import type { ForeignBase, ForeignLoss, Hook, HookedPacket } from './packet.js';
import { leadsToOurs, readForeign, type ForeignReading } from './read.js';
import { lossAt } from './walk.js';

/** A packet to a Service that our rules forward. */
export interface ForeignQuestion {
  readonly family: Family;
  readonly protocol: Protocol;
  /** Null: any. */
  readonly source: IPAddress | null;
  readonly inputInterface: string | null;
  readonly isSentHere: boolean;
  /** Whether the node has the Service's address: ipvs then sends the packet on. */
  readonly isSentOn: boolean;
  readonly destination: IPAddress;
  /** Whether the destination is an address of this node. */
  readonly isToNode: boolean;
  readonly port: number;
  readonly masquerade: boolean;
  readonly endpoints: readonly {
    readonly address: IPAddress;
    readonly port: number;
    /** On an address of this node, so that it is not forwarded. */
    readonly isOwn: boolean;
  }[];
}

/** Packets that rules of others take, and where. */
export interface ForeignLosses {
  readonly losses: readonly {
    readonly outcome: ForeignLoss['outcome'];
    /** Whether the packet is lost, or the answer to it. */
    readonly of: 'packet' | 'answer';
    /** False: it may, but not all can be evaluated. */
    readonly certain: boolean;
    /** Such as `rule 3 of chain f of table inet wall, at hook forward, priority 10`. */
    readonly where: string;
    readonly rule: string | null;
    readonly listing: string;
    /** Endpoints, as `address:port`, of connections to which it is so. */
    readonly endpoints: readonly string[];
    /** Whether the loss is of all of them. */
    readonly all: boolean;
    /** Whose packets are lost. */
    readonly families: readonly Family[];
  }[];
  /** Tables that were not read, and why. */
  readonly unread: readonly string[];
}

type Loss = ForeignLosses['losses'][number];
type Endpoint = ForeignQuestion['endpoints'][number];
type Found = 'nothing' | 'possible' | 'certain';

/** Where packets are given to conntrack: NF_IP_PRI_CONNTRACK. */
const TRACKING = -200;
/** Where destinations are translated: NF_IP_PRI_NAT_DST, and after it where sources are. */
const TRANSLATION = -100;
const SOURCE_TRANSLATION = 100;
/** Priorities of ipvs at its hooks: `ip_vs_ops4` and `ip_vs_ops6` in net/netfilter/ipvs/ip_vs_core.c. It does not mark connections as translated. */
const IPVS = { requestsIn: 99, answersIn: 98, requestsOut: -98, answersOut: -99, answersForwarded: 100 } as const;

/** The losses of a packet to rules of others on its way to its endpoints, and of their answers. */
export async function lossesOf(addon: ForeignReading, question: ForeignQuestion): Promise<ForeignLosses> {
  const { bases, unread } = await readForeign(addon, question.family);
  const { endpoints } = question;
  const endless = new Set<ForeignBase>();
  const found = new Map<string, Loss>();
  /** Answers whether the packet is lost for certain. */
  const follow = async (of: Loss['of'], endpoint: Endpoint, certainOnly: boolean): Promise<Found> => {
    let result: Found = 'nothing';
    for (const [base, packet] of bases.flatMap((base) => met(of, base, question, endpoint))) {
      if (endless.has(base)) continue;
      await turn();
      const isHere = isOn(base, packet);
      if (isHere === false) continue;
      const seen = withOrder(lossAt(base, packet), question);
      const loss = seen === null || seen === 'endless' || isHere === true ? seen : { ...seen, certain: false };
      if (loss === null || (certainOnly && loss !== 'endless' && !loss.certain)) continue;
      if (loss === 'endless') {
        endless.add(base);
        continue;
      }
      const key = `${of} ${String(loss.certain)} ${placeOf(loss)}`;
      const name = `${endpoint.address}:${endpoint.port}`;
      const known = found.get(key) ?? described(loss, question.family, of);
      const hit = [...known.endpoints, name];
      found.set(key, { ...known, endpoints: hit, all: hit.length === endpoints.length });
      // A lost packet meets nothing more.
      if (loss.certain) return 'certain';
      result = 'possible';
    }
    return result;
  };
  for (const endpoint of endpoints) {
    const lost = await follow('packet', endpoint, false);
    // A rule that cannot be evaluated for the packet cannot be for its answer either.
    if (lost !== 'certain') await follow('answer', endpoint, lost === 'possible');
  }
  return { losses: [...found.values()], unread: [...unread, ...[...endless].map(unevaluated)] };
}

/** Rules of others that let no forwarded packet through. */
export async function lossesOfAll(addon: ForeignReading): Promise<ForeignLosses> {
  const read = await Promise.all(FAMILIES.map(async (family) => ({ family, ...(await readForeign(addon, family)) })));
  const all = read.flatMap(({ family, bases }) => {
    const nothing = { protocol: null, source: null, destination: null, sourcePort: null, port: null };
    const interfaces = { inputInterface: null, outputInterface: null };
    const packet = {
      family,
      ...nothing,
      ...interfaces,
      isTracked: true,
      isTranslated: true,
      isAnswer: false,
      isToNode: null,
    };
    return bases
      .filter(({ hook }) => hook === 'forward')
      .flatMap((base) => {
        const loss = lossAt(base, packet);
        return loss !== null && loss !== 'endless' && loss.certain
          ? [{ ...described(loss, family, 'packet'), all: true }]
          : [];
      });
  });
  const once = new Map<string, Loss>();
  for (const loss of all) {
    const families = [...(once.get(loss.where)?.families ?? []), ...loss.families];
    once.set(loss.where, { ...loss, families });
  }
  return { losses: [...once.values()], unread: [] };
}

/** Rules of others count if they come before ours. Mode ipvs forwards untracked packets, too. */
function withOrder(seen: ReturnType<typeof lossAt>, { isSentOn }: ForeignQuestion): ReturnType<typeof lossAt> {
  if (seen === null || seen === 'endless') return seen;
  const { outcome, base } = seen;
  if (isSentOn) return outcome === 'untrack' ? null : seen;
  if (!base.isNat || base.priority < TRANSLATION || leadsToOurs(base)) return seen;
  return { ...seen, certain: seen.certain && base.isFirst === true };
}

function placeOf({ base, where }: ForeignLoss): string {
  return `${where} of ${base.table.name}, at hook ${base.hook}, priority ${base.priority}`;
}

function unevaluated({ table, chain }: ForeignBase): string {
  return `chain ${chain} of ${table.name} cannot be evaluated, as its chains call each other too many times`;
}

function described(loss: ForeignLoss, family: Family, of: Loss['of']): Loss {
  const { outcome, certain, rule, base } = loss;
  const where = rule === null ? placeOf({ ...loss, where: `the policy of chain ${base.chain}` }) : placeOf(loss);
  return { outcome, of, certain, where, rule, listing: base.listing, endpoints: [], all: false, families: [family] };
}

/** The packet, or the answer to it, each time that a base chain meets it. */
function met(
  of: Loss['of'],
  base: ForeignBase,
  question: ForeignQuestion,
  endpoint: Endpoint,
): readonly (readonly [ForeignBase, HookedPacket])[] {
  const { isSentHere, isSentOn } = question;
  const packets =
    base.isNat && (of === 'answer' || (!isSentOn && base.priority > TRANSLATION))
      ? []
      : of === 'answer'
        ? meetsAnswers(base.hook, isSentHere, endpoint.isOwn)
          ? [answerAt(base, question, endpoint)]
          : []
        : destinations(base, question, endpoint.isOwn).map((to) => packetAt(base, question, endpoint, to));
  return packets.map((packet) => [base, { ...packet, isTranslated: packet.isTranslated && !isSentOn }]);
}

type Destination = 'service' | 'endpoint';

function destinations(
  { hook, priority }: ForeignBase,
  { isSentHere, isSentOn }: ForeignQuestion,
  isOwn: boolean,
): readonly Destination[] {
  if (!isSentOn) {
    if (!meets(hook, isSentHere, isOwn)) return [];
    const isBefore = hook === 'ingress' || ((hook === 'prerouting' || hook === 'output') && priority <= TRANSLATION);
    return [isBefore ? 'service' : 'endpoint'];
  }
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return isSentHere ? [] : ['service'];
    case 'input':
      if (!isSentHere && priority < IPVS.requestsIn) return ['service'];
      return isOwn ? ['endpoint'] : [];
    case 'forward':
      return [];
    case 'output': {
      // What ipvs sends to another host is sent out from the beginning.
      const isBefore = isSentHere && priority < IPVS.requestsOut;
      const isAfter = !isOwn || (isSentHere && !isBefore);
      return [isBefore ? (['service'] as const) : [], isAfter ? (['endpoint'] as const) : []].flat();
    }
    case 'postrouting':
    case 'egress':
      return isOwn ? [] : ['endpoint'];
  }
}

function packetAt(
  { hook, priority }: ForeignBase,
  question: ForeignQuestion,
  endpoint: Endpoint,
  to: Destination,
): HookedPacket {
  const isTranslated = to === 'endpoint';
  const isMasqueraded = question.masquerade && isLeaving(hook, priority);
  return {
    family: question.family,
    protocol: question.protocol,
    source: isMasqueraded ? null : question.source,
    destination: isTranslated ? endpoint.address : question.destination,
    sourcePort: null,
    port: isTranslated ? endpoint.port : question.port,
    inputInterface: hook === 'output' || hook === 'postrouting' || hook === 'egress' ? null : question.inputInterface,
    outputInterface: null,
    isTracked: isTracked(hook, priority),
    isTranslated,
    isAnswer: false,
    isToNode: isTranslated ? endpoint.isOwn : question.isToNode,
  };
}

/** The answer as a base chain meets it. Its destination is translated back first. It leaves by the interface by which the packet came. */
function answerAt(base: ForeignBase, question: ForeignQuestion, endpoint: Endpoint): HookedPacket {
  const { hook, priority } = base;
  const { masquerade } = question;
  const isFirst = (hook === 'prerouting' || hook === 'output') && priority <= TRANSLATION;
  const isBack = comesFromService(base, question.isSentOn);
  return {
    family: question.family,
    protocol: question.protocol,
    source: isBack ? question.destination : endpoint.address,
    destination: masquerade && (isFirst || hook === 'ingress') ? null : question.source,
    sourcePort: isBack ? question.port : endpoint.port,
    port: null,
    inputInterface: null,
    outputInterface: hook === 'forward' || hook === 'postrouting' || hook === 'egress' ? question.inputInterface : null,
    isTracked: isTracked(hook, priority),
    isTranslated: true,
    isAnswer: true,
    isToNode: null,
  };
}

/** Whether conntrack has seen the packet. */
function isTracked(hook: Hook, priority: number): boolean {
  return hook !== 'ingress' && !((hook === 'prerouting' || hook === 'output') && priority < TRACKING);
}

/** Whether the source of an answer is the Service's address again, as rules do last and ipvs where it meets the answer. */
function comesFromService({ hook, priority }: ForeignBase, isSentOn: boolean): boolean {
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return false;
    case 'input':
      return priority >= (isSentOn ? IPVS.answersIn : SOURCE_TRANSLATION);
    case 'forward':
      return isSentOn && priority >= IPVS.answersForwarded;
    case 'output':
      return isSentOn && priority > IPVS.answersOut;
    case 'postrouting':
    case 'egress':
      return isSentOn || isLeaving(hook, priority);
  }
}

/** Where sources have been translated. */
function isLeaving(hook: Hook, priority: number): boolean {
  return hook === 'egress' || (hook === 'postrouting' && priority >= SOURCE_TRANSLATION);
}

/** Whether the packet passes an interface of the chain, if it is one of interfaces; null: unknown. */
function isOn({ hook, devices }: ForeignBase, { inputInterface, outputInterface }: HookedPacket): boolean | null {
  if (hook !== 'ingress' && hook !== 'egress') return true;
  const name = hook === 'ingress' ? inputInterface : outputInterface;
  if (name === null) return null;
  return devices.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each));
}

function meetsAnswers(hook: Hook, isSentHere: boolean, isOwn: boolean): boolean {
  // Loopback.
  if (isSentHere && isOwn) return false;
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return !isOwn;
    case 'output':
      return isOwn;
    case 'input':
      return isSentHere;
    case 'forward':
      return !isOwn && !isSentHere;
    case 'postrouting':
    case 'egress':
      return !isSentHere;
  }
}

function meets(hook: Hook, isSentHere: boolean, isOwn: boolean): boolean {
  switch (hook) {
    case 'ingress':
    case 'prerouting':
      return !isSentHere;
    case 'output':
      return isSentHere;
    case 'input':
      return isOwn;
    case 'forward':
      return !isSentHere && !isOwn;
    case 'postrouting':
    case 'egress':
      return !isOwn;
  }
}
