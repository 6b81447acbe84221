// Cases of the conformance kit are well-formed, and what is not is named.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import type { Case } from './case.js';
import { CASES } from './cases/index.js';
import { problems } from './check.js';
import { DIFFERENCES } from './differences.js';

const BEHAVIOURS = readFileSync(projectFile('docs/develop/behaviour.md'), 'utf8');

t.test('every case of the kit is well-formed', (t) => {
  t.same(problems(CASES, BEHAVIOURS), []);
  t.end();
});

t.test('every difference between modes is documented', (t) => {
  for (const [name, { see }] of Object.entries(DIFFERENCES)) t.ok(BEHAVIOURS.includes(see), `${name}: ${see}`);
  t.end();
});

const GOOD: Case = {
  id: 'good',
  title: 'a good one',
  shows: ['VD-01'],
  steps: [
    {
      objects: [{ service: 'web', ports: [{ port: 80 }], endpoints: [] }],
      flows: [{ from: 'client', to: 'web:80', expect: 'refused' }],
    },
  ],
};
const [STEP] = GOOD.steps;
const FLOW = { from: 'client', to: 'web:80', expect: 'refused' } as const;

t.test('a case that says nothing, or cannot be run, is named with its id and the reason', (t) => {
  t.same(problems([GOOD], BEHAVIOURS), []);
  const broken: readonly (readonly [Partial<Case>, RegExp])[] = [
    [{ id: 'No Name' }, /id is no name/],
    [{ title: ' ' }, /no title/],
    [{ shows: [] }, /shows no behaviour/],
    [{ shows: ['XX-999'] }, /XX-999, which behaviour\.md does not have/],
    [{ steps: [] }, /no steps/],
    [{ steps: [{ flows: [FLOW] }] }, /step 1 has no objects/],
    [{ steps: [{ ...STEP, flows: [] }] }, /step 1 expects nothing/],
    [{ steps: [{ ...STEP, acts: [{ restart: true }], flows: [FLOW] }] }, /step 1 acts, but/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, from: [] }] }] }, /sends nothing/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, to: 'other:80' }] }] }, /there is no "other:80"/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, to: 'web external:80' }] }] }, /there is no "web external:80"/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, to: 'web node-port:80' }] }] }, /there is no "web node-port:80"/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, to: 'web' }] }] }, /"web" names no target/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, expect: '' }] }] }, /expects nothing/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, expect: 'kept' }] }] }, /expects nothing/],
    [{ steps: [{ ...STEP, flows: [{ ...FLOW, expect: 'kept pod-z' }] }] }, /no place "pod-z"/],
    [
      { steps: [{ ...STEP, flows: [{ ...FLOW, differs: { other: 'dropped' } as object }] }] },
      /there is no difference "other"/,
    ],
  ];
  for (const [fields, reason] of broken) t.match(problems([{ ...GOOD, ...fields }], BEHAVIOURS), [reason]);
  t.match(problems([GOOD, GOOD], BEHAVIOURS), [/good: its id is taken/]);
  t.end();
});
