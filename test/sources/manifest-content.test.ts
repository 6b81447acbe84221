import { memoryUsage } from 'node:process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { dump } from 'js-yaml';
import t from 'tap';
import { Interner } from '../../src/sources/translate/intern.js';
import { readContent, withLastGood, type Content } from '../../src/sources/manifests/content.js';
import { Pacer } from '../../src/sources/manifests/pacer.js';
import { printProblem } from '../../src/sources/manifests/problems.js';
import { usually } from '../support/extent.js';
import { nodeObject, serviceCIDRObject, serviceObject, sliceObject } from '../support/api-objects.js';
import { cpuTime, mainThreadTime } from '../support/cpu-time.js';
import { serviceYaml, yaml } from '../support/manifests.js';
import { slownessOfCore } from '../support/slowness.js';

const read = (text: string): Promise<Content> => readContent(text, 'f.yaml', new Interner(), new Pacer());
const keys = (content: Content): string[] => [...content.rows.keys()].sort();
const reported = (content: Content): string[] =>
  content.problems.map((problem) => `${problem.severity} ${printProblem(problem)}`);

t.test('YAML manifests may have several documents, empty ones among them', async (t) => {
  const content = await read(`# head\n---\n${yaml(serviceYaml('a'), '', serviceYaml('b'), '# nothing\n')}---\n`);
  t.same(keys(content), ['Service/default/a', 'Service/default/b']);
  t.same(reported(content), []);
  t.equal(content.documents, 2);
});

t.test('problems of a manifest are at most a kilobyte, however long their subject', async (t) => {
  const long = 'x'.repeat(100_000);
  const content = await read(
    JSON.stringify({
      ...serviceObject('a'),
      metadata: { name: long },
      spec: { ports: Array(50).fill({ port: long }) },
    }),
  );
  t.match(reported(content), [/^error f\.yaml: .*…/]);
  for (const { object, message } of content.problems) {
    t.ok(Buffer.byteLength(message) <= 1024);
    t.ok(Buffer.byteLength(object ?? '') <= 1024);
  }
});

t.test('JSON manifests: one object, a List, lists of one kind, and a byte order mark', async (t) => {
  const objects = [
    serviceObject('a'),
    sliceObject('a-1', 'a', ['10.0.0.1']),
    nodeObject('n'),
    serviceCIDRObject('k', ['10.0.0.0/8']),
  ];
  const all = ['EndpointSlice/default/a-1', 'Node//n', 'Service/default/a', 'ServiceCIDR//k'];
  t.same(keys(await read(`\uFEFF  ${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })}`)), all);
  t.same(keys(await read(JSON.stringify(objects[0]))), ['Service/default/a']);
  const { apiVersion, kind, ...bare } = serviceObject('b');
  t.same([apiVersion, kind], ['v1', 'Service']);
  t.same(keys(await read(JSON.stringify({ apiVersion: 'v1', kind: 'ServiceList', items: [bare] }))), [
    'Service/default/b',
  ]);
  t.same(
    keys(
      await read(
        JSON.stringify({
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSliceList',
          items: [{ ...objects[1], kind: undefined, apiVersion: undefined }],
        }),
      ),
    ),
    ['EndpointSlice/default/a-1'],
  );
  t.same(keys(await read(JSON.stringify({ apiVersion: 'v1', kind: 'ServiceList', items: null }))), []);
});

t.test('YAML that starts like JSON is read as YAML', async (t) => {
  t.same(
    keys(
      await read(
        '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}}',
      ),
    ),
    ['Service/default/a'],
  );
  const two = `${JSON.stringify(serviceObject('a'))}\n---\n${JSON.stringify(serviceObject('b'))}\n`;
  t.same(keys(await read(two)), ['Service/default/a', 'Service/default/b']);
});

t.test('YAML manifests: directives, document ends, comments, anchors and merge keys are read', async (t) => {
  const text = `%YAML 1.2\n---\n${serviceYaml('a')}...\n# between\n%YAML 1.2\n---\nx: &x\n  clusterIP: 10.0.0.1\n  ports: [{port: 80}]\napiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec:\n  <<: *x\n`;
  const content = await read(text);
  t.same(reported(content), []);
  t.same(keys(content), ['Service/default/a', 'Service/default/b']);
});

t.test('YAML manifests: a literal block may contain lines of dashes', async (t) => {
  const content = await read(`${serviceYaml('a')}note: |\n  ---\n  x\n---\n${serviceYaml('b')}`);
  t.same(keys(content), ['Service/default/a', 'Service/default/b']);
});

t.test('a document that is not YAML is reported with number and line, and the others are read', async (t) => {
  const content = await read(yaml(serviceYaml('a'), 'x: [1, 2\ny: }\n', serviceYaml('c')));
  t.same(keys(content), ['Service/default/a', 'Service/default/c']);
  t.equal(content.unidentified, true);
  t.match(reported(content), [/^error f\.yaml: document 2: is no YAML: line 1[012]: /]);
});

t.test('an invalid object is reported with file, document, object, field and value', async (t) => {
  const content = await read(yaml(serviceYaml('a'), serviceYaml('b', 70_000)));
  t.same(reported(content), [
    'error f.yaml: document 2: Service default/b: spec.ports[0].port: 70000: must be between 1 and 65535',
  ]);
  t.same([...content.invalid], ['Service/default/b']);
  t.equal(content.unidentified, false);
});

t.test('an object without a name cannot be identified', async (t) => {
  const content = await read('apiVersion: v1\nkind: Service\nspec: {}\n');
  t.equal(content.unidentified, true);
  t.match(reported(content), [/^error f\.yaml: document 1: Service: metadata\.name: null: is required; /]);
});

t.test('documents of a manifest that are no objects are reported', async (t) => {
  for (const text of [
    'just text',
    '- a\n- b\n',
    '[]',
    '[1]',
    '5',
    'kind: Service',
    'apiVersion: v1\nkind: 5\n',
    '{"kind": "List", "apiVersion": 1}',
    '{"a": ',
    '"x"',
    '\u0000',
    '<html>',
  ]) {
    const content = await read(text);
    t.equal(content.unidentified, true, JSON.stringify(text));
    t.equal(content.rows.size, 0);
    t.match(reported(content), [/^error f\.yaml: document 1: /]);
  }
});

t.test('wrong lists in a manifest are reported', async (t) => {
  const list = (items: unknown): string => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  t.match(reported(await read(list({}))), ['error f.yaml: document 1: items: must be a list']);
  t.match(reported(await read(list([5, serviceObject('a')]))), [
    /^error f\.yaml: document 1: items\[0\]: must be a mapping/,
  ]);
  t.match(reported(await read(list([{ apiVersion: 'v1', kind: 'List', items: [] }]))), [
    /items\[0\]: a list inside a list is not read/,
  ]);
  const cyclic = await read('apiVersion: v1\nkind: List\nitems: &i\n- apiVersion: v1\n  kind: List\n  items: *i\n');
  t.equal(cyclic.unidentified, true);
});

t.test('manifests: other kinds are ignored with a note, other versions refused', async (t) => {
  const objects = [
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'q' } },
    { apiVersion: 'serving.knative.dev/v1', kind: 'Service', metadata: { name: 's' } },
    { apiVersion: 'discovery.k8s.io/v1beta1', kind: 'EndpointSlice', metadata: { name: 'e' } },
  ];
  const content = await read(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  t.same(reported(content), [
    'error f.yaml: document 1: EndpointSlice default/e: apiVersion: "discovery.k8s.io/v1beta1": must be discovery.k8s.io/v1',
    'note f.yaml: passed over 2 objects of kind v1 Pod',
    'note f.yaml: passed over 1 object of kind serving.knative.dev/v1 Service',
  ]);
  t.equal(content.unidentified, false);
  const pods = await read(JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [{}] }));
  t.same(reported(pods), ['note f.yaml: passed over 1 object of kind v1 PodList']);
});

t.test('of an object given twice in one file the first counts', async (t) => {
  const content = await read(yaml(serviceYaml('a', 1), serviceYaml('a', 2)));
  t.match(content.rows.get('Service/default/a'), { ports: [{ port: 1 }] });
  t.same(reported(content), [
    'error f.yaml: document 2: Service default/a: is given twice in this file: the first one counts',
  ]);
});

t.test('an invalid object in a manifest keeps its last valid version, and others change', async (t) => {
  const before = await read(yaml(serviceYaml('a', 1), serviceYaml('b', 1), serviceYaml('c', 1)));
  const held = withLastGood(new Map(), before);
  const after = async (text: string): Promise<string[]> => {
    const objects = withLastGood(held, await read(text));
    return [...objects.values()]
      .map((row) => `${row.name}:${row.kind === 'Service' ? (row.ports[0]?.port ?? 0) : 0}`)
      .sort();
  };
  t.same(
    await after(yaml(serviceYaml('a', 2), serviceYaml('b', 2))),
    ['a:2', 'b:2'],
    'a good file: what is gone is gone',
  );
  t.same(
    await after(yaml(serviceYaml('a', 2), serviceYaml('b', 70_000))),
    ['a:2', 'b:1'],
    'an invalid object keeps its version',
  );
  t.same(
    await after(yaml(serviceYaml('a', 2), 'x: [\n')),
    ['a:2', 'b:1', 'c:1'],
    'an unreadable document may mean anything',
  );
  t.same(await after('x: [\n'), ['a:1', 'b:1', 'c:1']);
  t.same(await after('apiVersion: v1\nkind: Service\n'), ['a:1', 'b:1', 'c:1']);
  const label = serviceYaml('b').replace('name: b', 'name: b\n  labels: {service.kubernetes.io/service-proxy-name: x}');
  t.same(await after(yaml(label, 'x: [\n')), ['a:1', 'c:1'], 'what a good document says is not ours goes');
  t.same(await after(''), [], 'an empty file has no objects');
});

t.test('every prefix of a manifest is read without an exception', async (t) => {
  const text = yaml(serviceYaml('a'), serviceYaml('b'), JSON.stringify(sliceObject('s', 'a', ['10.0.0.1'])));
  const held = withLastGood(new Map(), await read(text));
  for (let length = 0; length < text.length; length++) await read(text.slice(0, length));
  const json = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [serviceObject('a'), serviceObject('b')] });
  for (let length = 1; length < json.length; length++) {
    const objects = withLastGood(held, await read(json.slice(0, length)));
    if (objects.size !== held.size) t.fail(`prefix of ${length} lost objects`);
  }
  t.pass('done');
});

t.test('names do not keep the text of a manifest in memory', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Parsed in this thread, whose parser makes windows on the text; what comes out of another thread has been copied.
  const filler = 100_000;
  const files = 30;
  const names = new Interner();
  const held: Content[] = [];
  const readOne = async (index: number): Promise<void> => {
    const node = `node-of-file-number-${index}`;
    const ports = [{ name: `port-of-file-number-${index}`, port: 80 }];
    const text = `# ${'-'.repeat(filler)}\n${dump(serviceObject(`service-of-file-number-${index}`, { ports }))}`;
    const slice = JSON.stringify(
      sliceObject(`slice-of-file-number-${index}`, 'web', [], {
        endpoints: [{ addresses: ['10.0.0.1'], nodeName: node }],
      }),
    );
    held.push(await readContent(`${text}---\n# ${'-'.repeat(filler)}\n${slice}\n`, 'f.yaml', names, new Pacer()));
  };
  const heldBytes = (): number => {
    collect();
    return memoryUsage().heapUsed;
  };
  // What the parser and the translators keep for themselves is there after the first file.
  await readOne(0);
  const before = heldBytes();
  for (let index = 1; index <= files; index++) await readOne(index);
  const grown = heldBytes() - before;
  t.ok(grown < (files * filler) / 4, `${grown} bytes are kept of ${files} files of ${2 * filler}`);
  t.equal(held.flatMap(({ rows }) => [...rows.values()]).length, 2 * (files + 1));
});

/** CPU milliseconds of reading a text. */
function costOf(text: string): Promise<number> {
  return cpuTime(() => read(text));
}

t.test('aliases, merge keys and errors cost no more than their text', async (t) => {
  const bad = Array.from({ length: 3000 }, () => '{addresses: [x]}').join();
  const slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s, labels: {kubernetes.io/service-name: w}}, addressType: IPv4, endpoints: [${bad}]}`;
  const list = (count: number): string =>
    `apiVersion: v1\nkind: List\nitems:\n- &a ${slice}\n${'- *a\n'.repeat(count)}`;
  const keys = Array.from({ length: 500 }, (_, index) => `k${index}: 1`).join();
  // Without its bound each takes many seconds.
  t.ok((await costOf(list(300))) < 3000, '300 aliases of a slice with bad addresses');
  t.ok((await costOf(list(2000))) < 3000, '2,000 aliases');
  t.ok((await costOf(`a: &a {${keys}}\nb:\n${'- {<<: *a}\n'.repeat(20_000)}`)) < 3000, 'merges');
  t.ok((await costOf('...\n'.repeat(100_000))) < 3000, 'ends of no document');
  const { problems } = await readContent(list(300), 'f.yaml', new Interner(), new Pacer());
  t.match(problems, [{ message: 'its aliases repeat more than twice what is written' }]);
  const one = await readContent(list(0), 'f.yaml', new Interner(), new Pacer());
  t.match(one.problems[0]?.message, /^3000 problems, of which these are the first; endpoints\[0\]/);
});

t.test('thousands of small documents cost linear time, and are distinguished', async (t) => {
  const mostMs = usually(500, 2000) * slownessOfCore();
  t.ok(
    (await costOf('--- {}\n'.repeat(usually(19_000, 76_000)))) < mostMs,
    'one call of the parser for each takes longer',
  );
  t.ok((await costOf('---\n[\n'.repeat(usually(22_000, 89_000)))) < mostMs, 'nor do very many broken ones');
  const many = '--- {}\n'.repeat(usually(1000, 4000));
  const good = await costOf(many.repeat(20));
  const bad = await costOf(`${many}---\n[\n`.repeat(20));
  t.ok(bad < 5 * good, 'a broken one is found without reading each of its neighbours alone', { good, bad });
  const documents = Array.from({ length: usually(1000, 3000) }, (_, index) => `---\n${serviceYaml(`s${index}`)}`);
  t.equal((await read(documents.join(''))).rows.size, documents.length);
  const broken = documents.with(500, '---\na: [\n').with(800, '---\nx: &a 1\ny: *a\n');
  const { rows, problems } = await read(broken.join(''));
  t.equal(rows.size, documents.length - 2);
  t.match(problems, [
    { document: 501, message: /^is no YAML: line \d+: / },
    { document: 801, message: /must be a mapping/ },
  ]);
  const line = broken.slice(0, 500).join('').split('\n').length;
  const named = Number(/line (\d+)/.exec(problems[0]?.message ?? '')?.[1]);
  t.ok(named >= line && named <= line + 3, 'in its line', { line, named });
});

t.test('of thousands of problems in a manifest the first are reported, by severity', async (t) => {
  const { problems } = await read('--- 1\n'.repeat(250) + '---\n{apiVersion: v1, kind: Pod}\n');
  t.equal(problems.length, 102);
  t.match(problems.slice(100), [
    { severity: 'note', message: 'passed over 1 object of kind v1 Pod' },
    { severity: 'error', document: null, message: 'and 150 more like these' },
  ]);
});

t.test('a large YAML document is parsed in a thread, with the same result', async (t) => {
  const filler = `# ${'-'.repeat(150_000)}\n`;
  for (const [name, text] of [
    ['objects', yaml(serviceYaml('a'), `${serviceYaml('b')}x: &a [1]\ny: *a\n`)],
    ['a syntax error', yaml(serviceYaml('a'), `a: 1\n  b: 2\n`)],
    ['several documents, some broken', yaml(serviceYaml('a'), 'x: [', serviceYaml('c'))],
    ['too many repetitions', yaml(serviceYaml('a'), `x: &a [${'1,'.repeat(2000)}]\ny:\n${'- *a\n'.repeat(2000)}`)],
  ] as const) {
    const documents = text.split(/^---\n/m);
    const large = documents.map((document) => document + filler).join('---\n');
    const [here, there] = [
      await read(documents.map((document) => document + '# -\n').join('---\n')),
      await read(large),
    ];
    t.same(there, here, name);
  }
});

t.test('the event loop runs while a large YAML document is parsed', async (t) => {
  const text = `apiVersion: v1\nkind: List\nitems:\n${'- {apiVersion: v1, kind: Pod, metadata: {labels: {a: b, c: d}}}\n'.repeat(30_000)}`;
  const before = mainThreadTime();
  let problems: Content['problems'] = [];
  const all = await cpuTime(async () => ({ problems } = await read(text)));
  const own = mainThreadTime() - before;
  t.match(problems, [{ message: 'passed over 30000 objects of kind v1 Pod' }]);
  // In CPU time: a thread that waits for a core counts as busy.
  t.comment(`CPU ms: ${own} of ${all} in the thread of the event loop`);
  t.ok(own < all / 2, 'most of the work is not in its way', { own, all });
});

t.test('a stop does not wait for the end of parsing', async (t) => {
  const stopped = new AbortController();
  const text = `a:\n${'- {b: c}\n'.repeat(500_000)}`;
  const reading = readContent(text, 'f.yaml', new Interner(), new Pacer(stopped.signal));
  stopped.abort();
  await t.rejects(reading, { message: 'was not read to its end' });
});

t.test('YAML beyond the limit is refused, JSON is not', async (t) => {
  const spaces = ' '.repeat(16 << 20);
  t.match((await read(`a: 1\n#${spaces}`)).problems, [{ message: /^is YAML of more than 16777216 characters/ }]);
  t.equal((await read(`${JSON.stringify(serviceObject('a'))}${spaces}`)).rows.size, 1);
});
