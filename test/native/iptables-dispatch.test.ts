// Chains of a divided dispatch in the real kernel: it takes them at their deepest, and lists them as they were written.
// needs: iptables, ip
import '../support/namespace.js';

import t from 'tap';
import { loadAddon } from '../../src/native/load.js';
import type { IptablesOperation } from '../../src/native/contract.js';
import { crowdAround } from '../support/crowded-addresses.js';
import { needs } from '../support/needs.js';
import { service, slice } from '../support/rows.js';
import { NODE_ROWS, Rig } from '../dataplane/iptables/rig.js';

const addon = loadAddon().iptables;
const VICTIMS = { IPv4: '203.0.113.10', IPv6: '2001:db8::a' } as const;
/** Of IPv6: all before the last 32 bits are zero. */
const COMPATIBLE = ['::198.51.100.7', '::5:0', '::6'];
const PORTS = Array.from({ length: 3000 }, (_, index) => ({ name: `p${index}`, port: 1 + 21 * index }));

// The message of iptables-nft asks for a buffer that root of the machine alone is given (SO_SNDBUFFORCE).
for (const [flavor, programs] of [
  ['legacy', []],
  ['nft', ['root']],
] as const)
  for (const family of ['IPv4', 'IPv6'] as const)
    t.test(
      `${flavor} ${family}: the deepest dispatch chains are accepted, and listed as written`,
      needs(...programs),
      async (t) => {
        const victim = VICTIMS[family];
        const rig = new Rig(undefined, family);
        const isV4 = family === 'IPv4';
        const endpoints = Array.from({ length: 100 }, (_, index) => ({
          address: isV4 ? `10.0.1.${index + 1}` : `fd00::1:${index + 1}`,
        }));
        const sourceRanges = ['198.51.100.0/24', '::1.2.3.0/120'];
        rig.commit([
          ...NODE_ROWS,
          service('crowd', {
            clusterIPs: [isV4 ? '10.96.0.7' : 'fd00:96::7'],
            loadBalancer: [
              ...crowdAround(victim, 8),
              ...(isV4 ? [] : [...COMPATIBLE, ...crowdAround('::10.0.0.6', 8)]),
            ],
            sourceRanges,
            ports: PORTS.slice(0, 3),
          }),
          service('many', {
            clusterIPs: [isV4 ? '10.96.0.8' : 'fd00:96::8'],
            loadBalancer: [victim],
            sourceRanges,
            ports: PORTS,
          }),
          slice('crowd', endpoints, { ports: PORTS.slice(0, 3) }),
          slice('many', endpoints, { ports: PORTS.slice(0, 3) }),
          slice('many', endpoints.slice(0, 1), { name: 'rest', ports: PORTS.slice(3, 2500) }),
        ]);
        await rig.sync();
        const tables = ['filter', 'nat'] as const;
        const chains = tables.flatMap((table) =>
          rig.kernel
            .chains(table, family)
            .map((chain) => ({ table, chain, rules: rig.kernel.rules(table, chain, family) ?? [] })),
        );
        const operations = chains.map(({ table, chain, rules }): IptablesOperation => ({
          type: 'chain',
          table,
          chain,
          owner: null,
          rules: rules.map((text) => ({ type: 'text', text })),
        }));
        const hooks = tables.flatMap((table) =>
          rig.kernel.every(table, family).has('OUTPUT')
            ? (rig.kernel.rules(table, 'OUTPUT', family) ?? []).map((text): IptablesOperation => ({
                type: 'rule',
                verb: 'insert',
                table,
                chain: 'OUTPUT',
                text,
              }))
            : [],
        );
        t.ok(hooks.length >= 2, 'the kernel follows jumps from built-in chains');
        const order = (all: readonly IptablesOperation[]): readonly IptablesOperation[] =>
          tables.flatMap((table) => all.filter((operation) => operation.table === table));
        await addon.iptablesRestore({ family, flavor, operations: order([...operations, ...hooks]) });
        const listed = await addon.iptablesList(family, flavor, tables, ['KUBE-']);
        const held = new Map(listed.map(({ table, name, rules }) => [`${table} ${name}`, rules]));
        const differing = chains.filter(
          ({ table, chain, rules }) => held.get(`${table} ${chain}`)?.join('\n') !== rules.join('\n'),
        );
        t.same(
          differing.map(({ table, chain }) => `${table} ${chain}`),
          [],
          `${chains.length} chains are the same`,
        );
        t.ok(chains.some(({ chain }) => /^KUBE-SVC-IP-[A-Z2-7]{16}$/.test(chain)));
        t.ok(chains.some(({ chain }) => /^KUBE-REF-FW-[A-Z2-7]{16}$/.test(chain)));
      },
    );
