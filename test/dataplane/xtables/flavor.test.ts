import t from 'tap';
import { chooseFlavor, prepareFlavor } from '../../../src/dataplane/xtables/flavor.js';
import type { IptablesFlavor } from '../../../src/native/contract.js';
import { FakeIptables } from '../../support/fake-iptables/fake-iptables.js';
import { refusalIn } from '../../support/fake-iptables/program-error.js';
import { RecordingLog } from '../../support/recording-log.js';

/** A host with these chains and rules in a flavour. */
function host(held: Partial<Record<IptablesFlavor, Readonly<Record<string, number>>>>): FakeIptables {
  const kernel = new FakeIptables();
  for (const flavor of kernel.flavors) {
    for (const [name, rules] of Object.entries(held[flavor] ?? {})) {
      const [table = '', chain = ''] = name.split(' ');
      kernel.tamper(
        table === 'mangle' ? 'mangle' : 'nat',
        (chains) => chains.set(chain, new Array<string>(rules).fill('-j RETURN')),
        flavor,
      );
    }
  }
  return kernel;
}

t.test('the iptables flavour of the host is detected', async (t) => {
  const rows: readonly (readonly [string, Parameters<typeof host>[0], IptablesFlavor])[] = [
    ['without any hint', {}, 'nft'],
    ['more rules', { legacy: { 'nat DOCKER': 3 }, nft: { 'nat OTHER': 2 } }, 'legacy'],
    ['as many rules', { legacy: { 'nat DOCKER': 2 }, nft: { 'nat OTHER': 2 } }, 'nft'],
    ["kubelet's hint", { legacy: { 'mangle KUBE-IPTABLES-HINT': 0 }, nft: { 'nat OTHER': 9 } }, 'legacy'],
    [
      "kubelet's hint before a proxy's canary",
      { legacy: { 'mangle KUBE-IPTABLES-HINT': 0 }, nft: { 'mangle KUBE-PROXY-CANARY': 0, 'nat KUBE-SERVICES': 9 } },
      'legacy',
    ],
    ["kubelet's canary", { legacy: { 'mangle KUBE-KUBELET-CANARY': 0 }, nft: { 'nat OTHER': 9 } }, 'legacy'],
    ["a proxy's chains", { legacy: { 'nat KUBE-SERVICES': 1 }, nft: { 'nat OTHER': 9 } }, 'legacy'],
    ['chains in both', { legacy: { 'nat KUBE-SERVICES': 9 }, nft: { 'nat KUBE-SERVICES': 1 } }, 'legacy'],
  ];
  for (const [what, held, expected] of rows) t.equal(await chooseFlavor(host(held), 'IPv4', null), expected, what);
});

t.test('the iptables flavour is chosen by the working programs and the configuration', async (t) => {
  const kernel = host({ legacy: { 'mangle KUBE-IPTABLES-HINT': 0 } });
  t.equal(await chooseFlavor(kernel, 'IPv4', 'nft'), 'nft', 'an order goes before what is found');
  kernel.flavors = ['nft'];
  t.equal(await chooseFlavor(kernel, 'IPv6', null), 'nft');
  t.equal(await chooseFlavor(kernel, 'IPv6', 'legacy'), 'legacy', 'it is unused');
  kernel.flavors = [];
  t.equal(await chooseFlavor(kernel, 'IPv4', null), null);
  t.equal(await chooseFlavor(kernel, 'IPv4', 'nft'), null);
});

/** A kernel that lists empty tables and takes rules of these flavours alone, with what the programs say of others. */
function kernelThatTakes(taken: readonly IptablesFlavor[], why: Error): FakeIptables {
  const kernel = host({});
  const restore = kernel.iptablesRestore.bind(kernel);
  kernel.iptablesRestore = (transaction) =>
    taken.includes(transaction.flavor) ? restore(transaction) : Promise.reject(why);
  return kernel;
}

t.test('a detected iptables flavour is tried, and legacy is used if nf_tables has no IP tables', async (t) => {
  const words = 'TABLE_ADD failed (Operation not supported): table filter';
  const lacking = new Error(`iptables-nft-restore failed with status 4: ${words}`);
  const inLine = refusalIn('filter', new Error(`iptables-nft-restore failed with status 4: line 2: ${words}`));
  const passing = new Error('Resource temporarily unavailable');
  const warning = 'warn this kernel takes no rules of iptables-nft, those of iptables-legacy are used';
  const rows: readonly (readonly [string, FakeIptables, IptablesFlavor, readonly string[]])[] = [
    ['nft works', kernelThatTakes(['nft', 'legacy'], lacking), 'nft', []],
    ['nft has no tables', kernelThatTakes(['legacy'], lacking), 'legacy', [warning]],
    ['nft has no tables, and names the line', kernelThatTakes(['legacy'], inLine), 'legacy', [warning]],
    ['neither works', kernelThatTakes([], lacking), 'nft', []],
    ['neither works, and both name the line', kernelThatTakes([], inLine), 'nft', []],
    ['a failure that may pass', kernelThatTakes(['legacy'], passing), 'nft', []],
  ];
  for (const [what, kernel, flavor, lines] of rows) {
    const log = new RecordingLog();
    const found = await prepareFlavor(kernel, ['IPv4', 'IPv6'], 'auto', log);
    t.same(found, { flavor, served: ['IPv4', 'IPv6'] }, what);
    t.same(log.lines, [...lines, 'info 0 iptables'], what);
    t.same(kernel.chains('filter', 'IPv4', flavor), [], 'nothing stays');
  }
  const log = new RecordingLog();
  const { flavor } = await prepareFlavor(kernelThatTakes(['legacy'], lacking), ['IPv4'], 'nft', log);
  t.equal(flavor, 'nft', 'an order is not changed');
  t.same(log.lines, ['info 0 iptables']);
});
