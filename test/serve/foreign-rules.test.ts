import t from 'tap';
import type { Family } from '../../src/base/ip.js';
import { foreignWalls } from '../../src/serve/foreign-rules.js';

t.test('rules of others that let nothing through are named for the families that Services have', async (t) => {
  const texts = async (lost: readonly Family[], served: readonly Family[]): Promise<readonly string[]> => {
    const loss = { outcome: 'drop', certain: true, where: 'its policy', rule: null, listing: 'nft' } as const;
    const losses = [{ ...loss, endpoints: [], all: true, families: lost }];
    const lossesOfAll = () => Promise.resolve({ losses, unread: [] });
    const found = await foreignWalls({ foreign: { lossesOf: lossesOfAll, lossesOfAll } }, served);
    return found.map(({ text }) => text);
  };
  t.match(await texts(['IPv4', 'IPv6'], ['IPv4', 'IPv6']), [/drop every packet that this node forwards/]);
  t.match(await texts(['IPv6'], ['IPv4', 'IPv6']), [/drop every IPv6 packet that this node forwards/]);
  t.same(await texts(['IPv6'], ['IPv4']), [], 'no Service has the other family');
});
