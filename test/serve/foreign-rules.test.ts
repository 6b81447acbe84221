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

t.test(
  'rules of others are evaluated for packets that ipvs sends on where the node has the addresses of Services',
  async (t) => {
    const settings = planSettings();
    const explanation = { ...FORWARDED, family: 'IPv4', protocol: 'TCP' } as object as Parameters<
      typeof foreignInTheWay
    >[1];
    const question = { destination: '10.96.0.10', port: 80 } as Parameters<typeof foreignInTheWay>[2];
    for (const guardsServiceAddresses of [true, false]) {
      const asked: unknown[] = [];
      const running = {
        foreign: {
          lossesOf: (each: unknown) => {
            asked.push(each);
            return Promise.resolve({ losses: [], unread: [] });
          },
          lossesOfAll: () => Promise.reject(new Error('read')),
        },
        host: { ...LINUX_HOST, localAddresses: () => [] },
        planned: () => ({ ...settings, traits: { ...settings.traits, guardsServiceAddresses } }),
      };
      t.same(await foreignInTheWay(running, explanation, question), []);
      t.match(asked, [{ isSentOn: guardsServiceAddresses, port: 80, endpoints: [{ address: '10.244.1.1' }] }]);
    }
  },
);

const FORWARDED = {
  source: { address: null, interface: null, kind: 'pod' },
  verdict: { type: 'forward', masquerade: false, endpoints: ['10.244.1.1:8080'] },
};
