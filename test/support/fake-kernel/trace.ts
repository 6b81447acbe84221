import { addressFromBytes, familyOf, isLoopback, type IPAddress } from '../../../src/base/ip.js';
import { protocolNumber } from '../../../src/base/protocol.js';
import type { ChainHook, Statement } from '../../../src/dataplane/nftables/json.js';
import { unpackSlot } from '../../../src/dataplane/nftables/keys.js';
import type { NftFamily } from '../../../src/native/contract.js';
import {
  afterHook,
  afterJump,
  OTHERS_MARK,
  verdictOf,
  type Course,
  type Exit,
  type KernelVerdict,
} from '../courses.js';
import { drawnModulus, Evaluation, isList } from './evaluate.js';
import type { KernelPacket, SetUpdate, Traveller } from './packet.js';
import type { FakeChain, FakeTable } from './table.js';
import { packedAddress } from '../../../src/base/pack-address.js';

type Hook = readonly [ChainHook['hook'], 'filter' | 'nat'];

/** In the order of their priorities: sources are checked before addresses are translated. */
const ARRIVING: readonly Hook[] = [
  ['prerouting', 'filter'],
  ['prerouting', 'nat'],
];
const SENT_HERE: readonly Hook[] = [
  ['output', 'filter'],
  ['output', 'nat'],
];

/** Every way a new connection's first packet can go through a table, with all draws of random numbers. */
export function courses(
  table: FakeTable,
  packet: KernelPacket,
  localAddresses: readonly IPAddress[],
): readonly Course<Traveller>[] {
  const start = traveller(packet, localAddresses);
  const translated = runHooks(
    table,
    [{ verdict: 'accept', packet: start }],
    packet.inputInterface === null ? SENT_HERE : ARRIVING,
  );
  return translated.flatMap((course) =>
    course.verdict === 'accept'
      ? runHooks(table, [course], onward(course.packet, packet.inputInterface === null))
      : [course],
  );
}

/** What the rules make of a packet. */
export function trace(
  table: FakeTable | null,
  packet: KernelPacket,
  localAddresses: readonly IPAddress[],
): KernelVerdict {
  return table === null ? { type: 'none' } : verdictOf(courses(table, packet, localAddresses));
}

function traveller(packet: KernelPacket, localAddresses: readonly IPAddress[]): Traveller {
  const own = new Set(localAddresses.map(packedAddress));
  const destination = packedAddress(packet.destination);
  const port = String.fromCharCode(packet.port >> 8, packet.port & 0xff);
  const family: NftFamily = familyOf(packet.destination) === 'IPv4' ? 'ip' : 'ip6';
  return {
    family,
    protocol: protocolNumber(packet.protocol),
    source: packedAddress(packet.source),
    originalDestination: destination,
    originalPort: port,
    destination,
    port,
    mark: OTHERS_MARK,
    translated: false,
    masqueraded: false,
    inputInterface: packet.inputInterface ?? '',
    isLocal: (address) => own.has(address) || isLoopback(addressFromBytes(Buffer.from(address, 'latin1'))),
    updates: [],
  };
}

/** Hooks after the addresses are translated. A packet of the node to itself leaves, then comes in again through lo. */
function onward(packet: Traveller, sentHere: boolean): readonly Hook[] {
  const local = packet.isLocal(packet.destination);
  const leaving: readonly Hook[] = [['postrouting', 'nat']];
  if (!sentHere) return local ? [['input', 'filter']] : [['forward', 'filter'], ...leaving];
  return [['output', 'filter'], ...leaving, ...(local ? ([['input', 'filter']] as const) : [])];
}

function runHooks(
  table: FakeTable,
  starts: readonly Course<Traveller>[],
  hooks: readonly Hook[],
): readonly Course<Traveller>[] {
  let running = starts;
  for (const [hook, type] of hooks) {
    // Filter chains before the translation of addresses come at its priority less ten, others at 0.
    const early = hooks === ARRIVING || hooks === SENT_HERE;
    const chains = baseChains(table, hook, type, early);
    for (const chain of chains)
      running = running.flatMap((course) =>
        course.verdict === 'accept' ? new Walk(table).base(chain, course.packet) : [course],
      );
  }
  return running;
}

function baseChains(table: FakeTable, hook: string, type: string, early: boolean): readonly FakeChain[] {
  return [...table.chains.values()]
    .filter((chain) => chain.hook?.hook === hook && chain.hook.type === type)
    .filter((chain) => type === 'nat' || (chain.hook?.prio ?? 0) < 0 === early)
    .sort((one, other) => (one.hook?.prio ?? 0) - (other.hook?.prio ?? 0));
}

/** Whether a set can be written to: a rule goes no further than an update that finds it full. */
function hasRoom(table: FakeTable, { set, key }: SetUpdate): boolean {
  const { elements, declaration } = table.sets.get(set) ?? {};
  return elements?.has(key) === true || (elements?.size ?? 0) < (declaration?.size ?? Infinity);
}

const DEPTH = 16;

class Walk {
  constructor(
    private readonly table: FakeTable,
    private readonly depth = 0,
  ) {
    if (depth > DEPTH) throw new Error('chains nest deeper than the kernel goes');
  }

  /** A base chain that a packet comes to the end of accepts it. */
  base(chain: FakeChain, packet: Traveller): readonly Course<Traveller>[] {
    return this.chain(chain.name, packet).map(afterHook);
  }

  private chain(name: string, packet: Traveller): readonly Exit<Traveller>[] {
    const exits: Exit<Traveller>[] = [];
    let running: readonly Traveller[] = [packet];
    for (const { statements } of this.table.chains.get(name)?.rules ?? []) {
      const next = new Set<Traveller>();
      const modulus = drawnModulus(statements);
      for (const each of running) {
        for (let draw = 0; draw < modulus; draw++) {
          for (const exit of this.rule(statements, each, draw)) {
            // Draws that miss leave the packet as it is, so they all lead to the same place.
            if (exit.verdict === 'next') next.add(exit.packet);
            else exits.push(exit);
          }
        }
      }
      running = [...next];
    }
    return [...exits, ...running.map((each) => ({ verdict: 'return' as const, packet: each }))];
  }

  private rule(statements: readonly Statement[], packet: Traveller, draw: number): readonly Exit<Traveller>[] {
    let current = packet;
    for (const [index, statement] of statements.entries()) {
      const evaluation = new Evaluation(this.table, current, draw);
      if ('match' in statement) {
        if (!evaluation.matches(statement.match)) return [{ verdict: 'next', packet: current }];
      } else if ('mangle' in statement) {
        const mark = unpackSlot(Buffer.from(evaluation.bytes(statement.mangle.value), 'latin1'), 0);
        current = { ...current, mark };
      } else if ('map' in statement && statement.map.op === 'delete') {
        // No traveller comes twice.
        continue;
      } else if ('map' in statement) {
        const { elem, data, map } = statement.map;
        const update = { set: map.slice(1), key: evaluation.bytes(elem), value: evaluation.bytes(data), counts: false };
        if (!hasRoom(this.table, update)) return [{ verdict: 'next', packet: current }];
        current = { ...current, updates: [...current.updates, update] };
      } else if ('ct timeout' in statement) {
        // Says nothing of where the packet goes.
        continue;
      } else if ('set' in statement) {
        const { elem, set, stmt } = statement.set;
        const update = { set: set.slice(1), key: evaluation.bytes(elem), value: null, counts: stmt !== undefined };
        if (!hasRoom(this.table, update)) return [{ verdict: 'next', packet: current }];
        current = { ...current, updates: [...current.updates, update] };
      } else if (index !== statements.length - 1) {
        throw new Error(`statements after a verdict: ${JSON.stringify(statements)}`);
      } else {
        return this.last(statement, evaluation, current);
      }
    }
    return [{ verdict: 'next', packet: current }];
  }

  private last(statement: Statement, evaluation: Evaluation, packet: Traveller): readonly Exit<Traveller>[] {
    if ('drop' in statement) return [{ verdict: 'drop', packet }];
    if ('return' in statement) return [{ verdict: 'return', packet }];
    if ('reject' in statement) return [{ verdict: 'reject', packet }];
    if ('masquerade' in statement) return [{ verdict: 'accept', packet: { ...packet, masqueraded: true } }];
    if ('jump' in statement) return this.enter(statement.jump.target, packet).map(afterJump);
    if ('goto' in statement) return this.enter(statement.goto.target, packet);
    if ('vmap' in statement) {
      const { key, data } = statement.vmap;
      const chain = evaluation.lookup(key, data)?.chain ?? null;
      return chain === null ? [{ verdict: 'next', packet }] : this.enter(chain, packet);
    }
    if ('dnat' in statement) {
      const { addr } = statement.dnat;
      if (typeof addr !== 'object' || isList(addr) || !('map' in addr))
        throw new TypeError(`the tracer knows no such dnat: ${JSON.stringify(addr)}`);
      const value = evaluation.lookup(addr.map.key, addr.map.data)?.value ?? null;
      if (value === null) return [{ verdict: 'next', packet }];
      const size = packet.destination.length;
      const destination = value.slice(0, size);
      const port = value.slice(size, size + 2);
      return [{ verdict: 'accept', packet: { ...packet, destination, port, translated: true } }];
    }
    throw new TypeError(`the tracer does not know ${JSON.stringify(statement)}`);
  }

  private enter(chain: string, packet: Traveller): readonly Exit<Traveller>[] {
    return new Walk(this.table, this.depth + 1).chain(chain, packet);
  }
}
