import { packedKey } from '../../base/endpoint-list.js';
import { addressLength, type Family } from '../../base/ip.js';
import { FLOW_RECORD, type NftablesAddon, type NftElementsOperation } from '../../native/contract.js';
import type { ConnectionResets } from '../contract.js';
import { NFT_FAMILY, SET, TABLE } from './names.js';

type Addon = Pick<NftablesAddon, 'nftElements' | 'nftTransact'>;

/** The size of a port or protocol, each padded to 4 bytes. */
const COMPONENT = 4;

/** Resets by elements of a set, which the kernel removes by itself. Packets that are reset are noted in another set. */
export function connectionResets(addon: Addon, family: Family): ConnectionResets {
  const where = { family: NFT_FAMILY[family], table: TABLE };
  const recordSize = FLOW_RECORD.addresses * addressLength(family) + FLOW_RECORD.tail;
  return {
    expect: async (records) => {
      if (records.length === 0) return;
      await addon.nftTransact({ ...where, operations: [adding(family, records, recordSize)] });
    },
    unanswered: async (records) => {
      const [listed] = await addon.nftElements(where.family, TABLE, [SET.wereReset]);
      const { keyLength = 0, elements = null } = listed ?? {};
      const answered = new Set<string>();
      for (let row = 0; row < (elements?.count ?? 0); row++)
        answered.add(packedKey(elements?.keys ?? new Uint8Array(), row * keyLength, keyLength));
      const key = new Uint8Array(keyLengthOf(family));
      const silent: Uint8Array[] = [];
      for (let start = 0; start < records.length; start += recordSize) {
        writeKey(family, records, start, key, 0);
        if (!answered.has(packedKey(key, 0, key.length))) silent.push(records.subarray(start, start + recordSize));
      }
      return Buffer.concat(silent);
    },
  };
}

function keyLengthOf(family: Family): number {
  return 2 * addressLength(family) + 3 * COMPONENT;
}

function adding(family: Family, records: Uint8Array, recordSize: number): NftElementsOperation {
  const count = records.length / recordSize;
  const keyLength = keyLengthOf(family);
  const keys = new Uint8Array(count * keyLength);
  for (let row = 0; row < count; row++) writeKey(family, records, row * recordSize, keys, row * keyLength);
  return {
    type: 'elements',
    verb: 'add',
    set: SET.resetting,
    count,
    keyLength,
    keys,
    keyEnds: null,
    dataLength: 0,
    data: null,
    gotoChains: null,
    comments: null,
  };
}

/** Client address . client port . address asked for . protocol . port asked for. See {@link FLOW_RECORD}. */
function writeKey(family: Family, records: Uint8Array, start: number, keys: Uint8Array, at: number): void {
  const size = addressLength(family);
  const ports = start + FLOW_RECORD.addresses * size;
  keys.set(records.subarray(start, start + size), at);
  keys.set(records.subarray(ports, ports + 2), at + size);
  keys.set(records.subarray(start + size, start + 2 * size), at + size + COMPONENT);
  const protocol = at + 2 * size + COMPONENT;
  keys[protocol] = TCP;
  keys.set(records.subarray(ports + 2, ports + 4), protocol + COMPONENT);
}

const TCP = 6;
