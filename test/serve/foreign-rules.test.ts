import t from 'tap';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { planSettings } from '../support/plan-settings.js';
import type { Family } from '../../src/base/ip.js';
import { foreignInTheWay, foreignWalls } from '../../src/serve/foreign-rules.js';

t.test('rules of others that let nothing through are named for the families that Services have', async (t) => {
  const texts = async (lost: readonly Family[], served: readonly Family[]): Promise<readonly string[]> => {
    const loss = {
      outcome: 'drop',
      of: 'packet',
      certain: true,
      where: 'its policy',
      rule: null,
      listing: 'nft',
    } as const;
    const losses = [{ ...loss, endpoints: [], all: true, families: lost }];
    const lossesOfAll = () => Promise.resolve({ losses, unread: [] });
    const found = await foreignWalls({ foreign: { lossesOf: lossesOfAll, lossesOfAll } }, served);
    return found.map(({ text }) => text);
  };
  t.match(await texts(['IPv4', 'IPv6'], ['IPv4', 'IPv6']), [/drop every packet that this node forwards/]);
  t.match(await texts(['IPv6'], ['IPv4', 'IPv6']), [/drop every IPv6 packet that this node forwards/]);
  t.same(await texts(['IPv6'], ['IPv4']), [], 'no Service has the other family');
});

t.test('explain reports that rules of others are not evaluated where ip_vs forwards', async (t) => {
  const settings = planSettings();
  const running = {
    foreign: {
      lossesOf: () => Promise.reject(new Error('read')),
      lossesOfAll: () => Promise.reject(new Error('read')),
    },
    host: LINUX_HOST,
    planned: () => ({ ...settings, traits: { ...settings.traits, guardsServiceAddresses: true } }),
  };
  const explanation = { verdict: { type: 'forward' } } as Parameters<typeof foreignInTheWay>[1];
  const question = {} as Parameters<typeof foreignInTheWay>[2];
  t.match(await foreignInTheWay(running, explanation, question), [
    { severity: 'note', text: /^rules of others were not all read: in this mode none are evaluated/ },
  ]);
});
