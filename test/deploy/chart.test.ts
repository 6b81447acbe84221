import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import t from 'tap';
import { chartSchema, refused, withValues } from '../support/deploy/chart/values.js';
import { fieldsOf } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';

t.test('the Helm chart has the version of the package', (t) => {
  const chart = fieldsOf(load(readFileSync(projectFile('deploy/chart/Chart.yaml'), 'utf8')));
  const { version } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as { readonly version: string };
  t.match(chart, { version, appVersion: version });
  t.end();
});

t.test('the schema of the Helm chart accepts its values, and names wrong ones', (t) => {
  const values = withValues({});
  t.same(
    Object.keys(values).sort(),
    Object.keys(fieldsOf(chartSchema()['properties']))
      .filter((name) => name !== 'global')
      .sort(),
    'it knows each value',
  );
  for (const [wrong, problem] of [
    [{ instal: 'trial' }, 'values.instal: no such value'],
    [{ install: 'later' }, 'values.install: not one of replace, trial, standalone, none'],
    [{ secured: 'yes' }, 'values.secured: not of type boolean'],
    [{ webhook: { replicas: 0 } }, 'values.webhook.replicas: less than 1'],
    [{ image: { digest: 'latest' } }, 'values.image.digest: does not match ^(sha256:[0-9a-f]{64})?$'],
    [{ server: 'control-plane' }, 'values.server: does not match ^https?://'],
  ] as const)
    t.throws(() => withValues(wrong), { message: problem });
  t.same(refused({ image: [] }, chartSchema(), 'values'), ['values.image: not of type object']);
  t.end();
});
