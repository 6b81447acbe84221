import t from 'tap';
import { addressFromBytes, parsePrefix, prefixAddress, prefixContains, prefixLength } from '../../src/base/ip.js';
import type { Family, IPPrefix } from '../../src/base/ip.js';
import { nodeFacts } from '../../src/plan/facts.js';
import { planService } from '../../src/plan/service-plan.js';
import { admittedSources } from '../../src/plan/source-ranges.js';
import { cpuTime } from '../support/cpu-time.js';
import { rounds } from '../support/extent.js';
import { planSettings } from '../support/plan-settings.js';
import { SeededRandom } from '../support/random.js';
import { service } from '../support/rows.js';

const SETTINGS = planSettings();
const NODE = nodeFacts(SETTINGS, undefined);

function admitted(family: Family, ranges: readonly IPPrefix[]): readonly IPPrefix[] | null {
  return admittedSources(family, ranges, [], NODE);
}

/** Of few different bytes, so that many nest. */
function randomPrefix(random: SeededRandom, size: 4 | 16): IPPrefix {
  const bytes = Uint8Array.from({ length: size }, () => random.pick([0, 1, 127, 128, 255]));
  const prefix = parsePrefix(`${addressFromBytes(bytes)}/${1 + random.below(size * 8)}`);
  if (prefix === null) throw new Error('no prefix');
  return prefix;
}

t.test('source ranges are planned once, sorted, without those that wider ones contain', (t) => {
  const random = new SeededRandom(8);
  for (let round = 0; round < rounds(300); round++) {
    const size = random.pick([4, 16] as const);
    const ranges = Array.from({ length: random.below(40) + 1 }, () => randomPrefix(random, size));
    const covers = (wide: IPPrefix, narrow: IPPrefix): boolean =>
      prefixLength(wide) < prefixLength(narrow) && prefixContains(wide, prefixAddress(narrow));
    const expected = [...new Set(ranges)].filter((range) => !ranges.some((other) => covers(other, range))).sort();
    const found = admitted(size === 4 ? 'IPv4' : 'IPv6', ranges);
    if (JSON.stringify(found) !== JSON.stringify(expected)) t.same(found, expected, `round ${round}`);
  }
  t.pass(`${rounds(300)} lists`);
  t.end();
});

t.test('10,000 source ranges are planned in little time', async (t) => {
  const ranges = Array.from({ length: 10_000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24` as IPPrefix);
  // Comparing each with every other takes a hundred times as long.
  const ms = await cpuTime(() => t.equal(admitted('IPv4', ranges)?.length, ranges.length));
  t.ok(ms < 2000, `${ms} ms`);
});

t.test('source ranges of the other family alone are a limitation of the Service, as they admit every client', (t) => {
  const findings = (sourceRanges: readonly string[], loadBalancer = ['192.0.2.1'], balancesOnly = false): unknown => {
    const settings = planSettings({ traits: { ...SETTINGS.traits, balancesOnly } });
    return planService('IPv4', service('a', { loadBalancer, sourceRanges }), [], NODE, settings)?.limitations;
  };
  const text = 'loadBalancerSourceRanges have none of IPv4, so every client is admitted over IPv4';
  const open = { family: 'IPv4', cause: 'source-ranges', servicePort: 'default/a', text };
  t.same(findings(['2001:db8::/32']), [open]);
  t.same(findings(['2001:db8::/32', '10.0.0.0/8']), []);
  t.same(findings([]), []);
  t.same(findings(['2001:db8::/32'], ['2001:db8::1']), [], 'no address of a load balancer in the family');
  t.notMatch(findings(['2001:db8::/32'], ['192.0.2.1'], true), [open], 'the platform admits every source anyway');
  t.end();
});
