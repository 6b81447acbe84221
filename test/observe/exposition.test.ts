import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import t from 'tap';
import { parseAccept } from '../../src/base/accept.js';
import { expose, negotiateExposition } from '../../src/observe/exposition.js';

function registry(): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: 'b_total', help: 'Counts "things".', labelNames: ['x'], registers }).inc({ x: 'a"\\\n' }, 2);
  new Gauge({ name: 'a_total', help: 'One\nline \\.', registers }).set(-1.5e-7);
  new Histogram({ name: 'c_seconds', help: 'Times.', buckets: [0.5, 1], labelNames: ['y'], registers }).observe(
    { y: 'z' },
    0.75,
  );
  new Counter({ name: 'unused_total', help: 'Never.', labelNames: ['x'], registers });
  const odd = new Gauge({ name: 'd', help: 'Odd.', labelNames: ['n'], registers });
  odd.set({ n: 1 }, Number.NaN);
  odd.set({ n: 2 }, Infinity);
  odd.set({ n: 3 }, -Infinity);
  return registry;
}

t.test('metrics are exposed as Prometheus text', async (t) => {
  t.equal(
    await expose(registry(), 'text'),
    [
      '# HELP a_total One\\nline \\\\.',
      '# TYPE a_total gauge',
      'a_total -1.5e-7',
      '# HELP b_total Counts "things".',
      '# TYPE b_total counter',
      'b_total{x="a\\"\\\\\\n"} 2',
      '# HELP c_seconds Times.',
      '# TYPE c_seconds histogram',
      'c_seconds_bucket{le="0.5",y="z"} 0',
      'c_seconds_bucket{le="1",y="z"} 1',
      'c_seconds_bucket{le="+Inf",y="z"} 1',
      'c_seconds_sum{y="z"} 0.75',
      'c_seconds_count{y="z"} 1',
      '# HELP d Odd.',
      '# TYPE d gauge',
      'd{n="1"} NaN',
      'd{n="2"} +Inf',
      'd{n="3"} -Inf',
      '',
    ].join('\n'),
  );
});

t.test('metrics are exposed as OpenMetrics, without changing the registry', async (t) => {
  const metrics = registry();
  const before = await expose(metrics, 'text');
  const text = await expose(metrics, 'openmetrics');
  t.match(text, /^# HELP a_total One\\nline \\\\\.\n# TYPE a_total gauge\na_total -1\.5e-7\n/);
  t.match(text, '# HELP b Counts \\"things\\".\n# TYPE b counter\nb_total{x="a\\"\\\\\\n"} 2\n');
  t.match(text, 'c_seconds_bucket{le="0.5",y="z"} 0\nc_seconds_bucket{le="1.0",y="z"} 1\n');
  t.match(text, /\n# EOF\n$/);
  t.equal(await expose(metrics, 'text'), before);
});

t.test('the Accept header selects the format of metrics', (t) => {
  const prometheus =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  for (const [accept, format] of [
    [undefined, 'text'],
    ['', 'text'],
    ['*/*', 'text'],
    ['text/html', 'text'],
    [prometheus, 'openmetrics'],
    ['application/openmetrics-text', 'openmetrics'],
    ['application/openmetrics-text;version=2.0.0,*/*;q=0.1', 'text'],
    ['application/openmetrics-text;q=0,text/plain;q=0.1', 'text'],
    ['text/plain;version=0.0.4;q=0.5,application/openmetrics-text;q=0.4', 'text'],
    ['TEXT/Plain;q=0.5, Application/OpenMetrics-Text; Version="1.0.0"', 'openmetrics'],
  ] as const)
    t.equal(negotiateExposition(accept), format, accept ?? 'no header');
  t.end();
});

t.test('Accept headers are parsed with their weights', (t) => {
  t.same(
    parseAccept(' a/b ; V="1" ; q=0.2, , c/D;q=7,*/*;q=0.5,e/f').map(({ type, parameters, quality }) => [
      type,
      Object.fromEntries(parameters),
      quality,
    ]),
    [
      ['e/f', {}, 1],
      ['*/*', {}, 0.5],
      ['a/b', { v: '1' }, 0.2],
      ['c/d', {}, 0],
    ],
  );
  t.same(
    parseAccept(undefined).map(({ type }) => type),
    ['*/*'],
  );
  t.end();
});
