import { setImmediate as turn } from 'node:timers/promises';
import { FAMILIES, type Family, type IPAddress } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import type { ForeignBase, ForeignLoss, Hook, HookedPacket } from './packet.js';
import { readForeign, type ForeignReading } from './read.js';
import { lossAt } from './walk.js';

/** A packet to a Service that our rules forward. */
export interface ForeignQuestion {
  readonly family: Family;
  readonly protocol: Protocol;
  /** Null: any. */
  readonly source: IPAddress | null;
  readonly inputInterface: string | null;
  readonly isSentHere: boolean;
  readonly destination: IPAddress;
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

/** Where destinations are translated: NF_IP_PRI_NAT_DST, and after it where sources are. */
const TRANSLATION = -100;
const SOURCE_TRANSLATION = 100;

/** The losses of a packet to rules of others on its way to its endpoints. */
export async function lossesOf(addon: ForeignReading, question: ForeignQuestion): Promise<ForeignLosses> {
  const { bases, unread } = await readForeign(addon, question.family);
  const { endpoints } = question;
  const endless = new Set<ForeignBase>();
  const found = new Map<string, Loss>();
  for (const endpoint of endpoints) {
    for (const base of bases) {
      const packet = endless.has(base) ? null : packetAt(base, question, endpoint);
      if (packet === null) continue;
      await turn();
      const loss = lossAt(base, packet);
      if (loss === null) continue;
      if (loss === 'endless') {
        endless.add(base);
        continue;
      }
      const key = `${String(loss.certain)} ${placeOf(loss)}`;
      const name = `${endpoint.address}:${endpoint.port}`;
      const known = found.get(key) ?? described(loss, question.family);
      const hit = [...known.endpoints, name];
      found.set(key, { ...known, endpoints: hit, all: hit.length === endpoints.length });
      // A lost packet meets nothing more.
      if (loss.certain) break;
    }
  }
  return { losses: [...found.values()], unread: [...unread, ...[...endless].map(unevaluated)] };
}

/** Rules of others that let no forwarded packet through. */
export async function lossesOfAll(addon: ForeignReading): Promise<ForeignLosses> {
  const read = await Promise.all(FAMILIES.map(async (family) => ({ family, ...(await readForeign(addon, family)) })));
  const all = read.flatMap(({ family, bases }) => {
    const nothing = { protocol: null, source: null, destination: null, port: null };
    const packet = { family, ...nothing, inputInterface: null, outputInterface: null, isTranslated: true };
    return bases
      .filter(({ hook }) => hook === 'forward')
      .flatMap((base) => {
        const loss = lossAt(base, packet);
        return loss !== null && loss !== 'endless' && loss.certain ? [{ ...described(loss, family), all: true }] : [];
      });
  });
  const once = new Map<string, Loss>();
  for (const loss of all) {
    const families = [...(once.get(loss.where)?.families ?? []), ...loss.families];
    once.set(loss.where, { ...loss, families });
  }
  return { losses: [...once.values()], unread: [] };
}

function placeOf({ base, where }: ForeignLoss): string {
  return `${where} of ${base.table.name}, at hook ${base.hook}, priority ${base.priority}`;
}

function unevaluated({ table, chain }: ForeignBase): string {
  return `chain ${chain} of ${table.name} cannot be evaluated, as its chains call each other too many times`;
}

function described(loss: ForeignLoss, family: Family): Loss {
  const { outcome, certain, rule, base } = loss;
  const where = rule === null ? placeOf({ ...loss, where: `the policy of chain ${base.chain}` }) : placeOf(loss);
  return { outcome, certain, where, rule, listing: base.listing, endpoints: [], all: false, families: [family] };
}

/** The packet as a base chain meets it; null: it does not. */
function packetAt(
  { hook, priority }: ForeignBase,
  question: ForeignQuestion,
  endpoint: ForeignQuestion['endpoints'][number],
): HookedPacket | null {
  if (!meets(hook, question.isSentHere, endpoint.isOwn)) return null;
  const isTranslated = (hook !== 'prerouting' && hook !== 'output') || priority > TRANSLATION;
  const isMasqueraded = question.masquerade && hook === 'postrouting' && priority >= SOURCE_TRANSLATION;
  return {
    family: question.family,
    protocol: question.protocol,
    source: isMasqueraded ? null : question.source,
    destination: isTranslated ? endpoint.address : question.destination,
    port: isTranslated ? endpoint.port : question.port,
    inputInterface: hook === 'output' || hook === 'postrouting' ? null : question.inputInterface,
    outputInterface: null,
    isTranslated,
  };
}

function meets(hook: Hook, isSentHere: boolean, isOwn: boolean): boolean {
  switch (hook) {
    case 'prerouting':
      return !isSentHere;
    case 'output':
      return isSentHere;
    case 'input':
      return isOwn;
    case 'forward':
      return !isSentHere && !isOwn;
    case 'postrouting':
      return !isOwn;
  }
}
