// What is read without YAML's library is what that would have read, and all else is left to it.
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { readPlainJson } from '../../src/base/plain-json.js';
import { readYaml, YamlError } from '../../src/base/yaml.js';
import { Mapping, parseDocuments, readMappings } from '../../src/config/yaml.js';
import { parseDocument } from '../../src/sources/kubernetes/auth/document.js';
import { rounds } from '../support/extent.js';
import { SeededRandom } from '../support/random.js';

const CONFIGURATION = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  clientConnection: { kubeconfig: '/var/lib/kube-proxy/kubeconfig.conf', qps: 5, acceptContentTypes: '' },
  featureGates: { A: true, B: false },
  nodePortAddresses: ['10.0.0.0/8', 'fd00::/64'],
  conntrack: { maxPerCore: null, min: 0 },
  empty: [{}, [], -12],
};

t.test('JSON in the common layout is read without the YAML library', (t) => {
  for (const text of [
    JSON.stringify(CONFIGURATION),
    `${JSON.stringify(CONFIGURATION, null, 2)}\n`,
    '{}',
    '{"a": "# - ~ * & ! yes \'<<\' {[,]} : no"}',
  ]) {
    t.same(readPlainJson(text), JSON.parse(text), text);
    t.strictSame([readPlainJson(text)], readYaml(text), text);
    t.strictSame(parseDocuments(text), readMappings(text), text);
    t.strictSame([parseDocument(text)], readYaml(text), text);
  }
  t.end();
});

t.test('JSON that is not plain is left to the YAML library', (t) => {
  for (const text of [
    ...[
      '',
      '[]',
      'null',
      '"a"',
      'a: 1',
      '# comment\n{}',
      ' {}',
      '{}\n---\n{}',
      '\uFEFF{}',
      '{"a": 1',
      '{"a": 1}}',
      '{"a"}',
    ],
    ...[
      '{"a": 1, "a": 2}',
      '{"a": {"b": 1, "b": 1}}',
      '{"a": [{"b": 1, "c": 1, "b": 2}]}',
      "{'a': 1}",
      '{a: 1}',
      '{"a": b}',
    ],
    ...['{"__proto__": 1}', '{"<<": {"a": 1}}', '{"1": 1}', '{"": 1}', `{"${'k'.repeat(101)}": 1}`, '{"a b": 1}'],
    ...[
      '{"a": 1.5}',
      '{"a": 1e3}',
      '{"a": 010}',
      '{"a": -0}',
      '{"a": 12345678901234567}',
      '{"a": 0x10}',
      '{"a": +1}',
      '{"a": 1_0}',
    ],
    ...[
      '{"a": "\\n"}',
      '{"a": "\\u0041"}',
      '{"a": "\u00e9"}',
      '{"a": "x\ny"}',
      '{"a" : 1}',
      '{\t"a": 1}',
      '{"a": 1,}',
      '{"a": yes}',
    ],
    `{"a": ${'['.repeat(40)}${']'.repeat(40)}}`,
  ])
    t.equal(readPlainJson(text), null, text);
  t.end();
});

t.test('a duplicate key is reported, and the last one counts', (t) => {
  const [document] = parseDocuments('{"a": 1, "b": 2, "a": 3}');
  t.ok(document instanceof Mapping && document.entries.get('a') === 3);
  t.same(document instanceof Mapping ? document.duplicates : null, ['a']);
  t.throws(() => parseDocument('{"a": 1, "a": 3}'), { message: /line 1/ });
  t.end();
});

/** What the library makes of a text; why it does not take it. */
function tried(read: (text: string) => unknown): (text: string) => unknown {
  return (text) => {
    try {
      return read(text);
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      return error.message;
    }
  };
}

const mappings = tried(readMappings);
const documents = tried((text) => readYaml(text));

const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  ' ',
  '\n',
  '\n  ',
  '"a":',
  '"b": ',
  '"c"',
  '""',
  '"x: y"',
  '0',
  '7',
  '-3',
  '-',
  'true',
  'null',
  '"# a"',
];
const SPACES = ['', '', '', ' ', '\n', '\n  ', '  ', '\n\n'];
const SCALARS = [
  '0',
  '-1',
  '42',
  'true',
  'false',
  'null',
  '"text"',
  '""',
  '"a: b # c"',
  '"- ? | > @ `"',
  '"---"',
  '"yes"',
];

/** JSON with whitespace anywhere, and a key now and then that comes twice. */
function made(random: SeededRandom, depth: number): string {
  if (depth === 0 || random.chance(0.3)) return random.pick(SCALARS);
  const isMapping = random.chance(0.5);
  const items = Array.from({ length: random.below(4) }, (_, index) => {
    const key = isMapping ? `"${random.chance(0.8) ? `k${index}` : 'a'}":${random.pick(SPACES)}` : '';
    return `${random.pick(SPACES)}${key}${made(random, depth - 1)}${random.pick(SPACES)}`;
  }).join(',');
  return isMapping ? `{${items}${random.pick(SPACES)}}` : `[${items}${random.pick(SPACES)}]`;
}

t.test('JSON read without the YAML library gives the same as with it', (t) => {
  const random = new SeededRandom(7);
  let plain = 0;
  for (let round = 0; round < rounds(20_000); round++) {
    const whole = round % 2 === 0 ? made(random, 4) : Array.from({ length: 8 }, () => random.pick(TOKENS)).join('');
    const text = `{${random.pick(SPACES)}"first":${whole}}${random.pick(['', '\n', '\n\n', ' '])}`;
    if (readPlainJson(text) === null) continue;
    plain++;
    const same =
      isDeepStrictEqual(parseDocuments(text), mappings(text)) &&
      isDeepStrictEqual([parseDocument(text)], documents(text));
    if (!same) t.fail(JSON.stringify(text));
  }
  t.ok(plain > rounds(20_000) / 10, `${plain} texts`);
  t.end();
});
