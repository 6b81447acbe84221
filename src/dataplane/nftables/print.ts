import type { Family } from '../../base/ip.js';
import type { NftCommand, NftElementsOperation, NftFamily, NftTransaction } from '../../native/contract.js';
import { componentsOf, elementAt } from './elements.js';
import type { SetDeclaration } from './json.js';
import { nameClientKey } from './affinity/key-names.js';
import { NFT_FAMILY, parseClientsMap } from './names.js';
import { clientsMapOf, staticSets } from './schema.js';

/**
 * A transaction as sorted text, a line for each object: `add element ip frontends 10.96.0.10 . tcp . 80 : goto pick-2 "ClusterIP default/web"`. Rules
 * are numbered within their chain, so that sorting keeps their order, and spelled in the libnftables JSON schema.
 */
export function printTransaction({ family, operations }: NftTransaction): readonly string[] {
  const positions = new Map<string, number>();
  const lines = operations.flatMap((operation) =>
    operation.type === 'commands'
      ? operation.commands.map((command) => printCommand(family, command, positions))
      : printElements(operation, family),
  );
  return lines.sort((one, other) => (one.sortKey < other.sortKey ? -1 : 1)).map(({ text }) => text);
}

interface Line {
  readonly text: string;
  /** Object before verb: what happens to one object stands together. */
  readonly sortKey: string;
}

function line(verb: string, object: string): Line {
  return { text: `${verb} ${object}`, sortKey: `${object} ${verb === 'add' ? 1 : 0}` };
}

type Body = Readonly<Record<string, unknown>>;

function printCommand(family: NftFamily, command: NftCommand, positions: Map<string, number>): Line {
  const [verb = '', objects] = Object.entries(command)[0] ?? [];
  const [kind = '', body = {}] = Object.entries(objects as Readonly<Record<string, Body>>)[0] ?? [];
  const named = `${kind} ${family} ${String(body['name'] ?? body['chain'])}`;
  if (kind === 'rule') {
    const position = positions.get(named) ?? 0;
    positions.set(named, position + 1);
    return line(verb, `${named} ${String(position).padStart(4, '0')} ${JSON.stringify(body['expr'])}`);
  }
  const rest = Object.entries(body).filter(([field]) => !['family', 'table', 'name'].includes(field));
  return line(verb, rest.length === 0 ? named : `${named} ${JSON.stringify(Object.fromEntries(rest))}`);
}

function printElements(operation: NftElementsOperation, family: NftFamily): readonly Line[] {
  const set = declarationOf(family === NFT_FAMILY.IPv4 ? 'IPv4' : 'IPv6', operation.set);
  const keyTypes = set?.type ?? null;
  const dataTypes = set === undefined || set.map === 'verdict' ? null : set.map;
  return Array.from({ length: operation.count }, (_, index) => {
    const { key, keyEnd, data, chain, comment } = elementAt(operation, index);
    const keys = [key, ...(keyEnd === null ? [] : [keyEnd])].map((each) => printValue(each, keyTypes)).join(' - ');
    const content = data === null ? chain && `goto ${chain}` : printValue(data, dataTypes);
    const parts = [
      `element ${family} ${operation.set} ${keys}`,
      ...(content === null ? [] : [`: ${content}`]),
      ...(comment === null ? [] : [JSON.stringify(comment)]),
    ];
    return line(operation.verb, parts.join(' '));
  });
}

/** Bytes of what is not declared by us are shown as such. */
function printValue(bytes: Uint8Array, types: readonly string[] | null): string {
  return types === null ? `0x${Buffer.from(bytes).toString('hex')}` : componentsOf(bytes, types).join(' . ');
}

const STATIC_SETS: Readonly<Record<Family, ReadonlyMap<string, SetDeclaration>>> = {
  IPv4: new Map(staticSets('IPv4').map((set) => [set.name, set])),
  IPv6: new Map(staticSets('IPv6').map((set) => [set.name, set])),
};

function declarationOf(family: Family, name: string): SetDeclaration | undefined {
  const clients = parseClientsMap(name);
  return clients === null ? STATIC_SETS[family].get(name) : clientsMapOf(family, nameClientKey(clients));
}
