// A node by itself: the process has a client certificate made by a bootstrap kubeconfig, and the next ones, with the rights that deploy/nodes gives.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { PolicyRule } from '../support/api-server/rbac.js';
import { build, items } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab, type HttpAnswer } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'remote-a'] as const;

t.test('a proxy requests, uses and renews its client certificate', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const rules = join(t.testdir({}), 'rules.json');
  const roles = build(projectFile('deploy/nodes')).filter(({ kind }) => kind === 'ClusterRole');
  writeFileSync(
    rules,
    JSON.stringify(roles.flatMap((role) => items(role['rules']) as unknown as readonly PolicyRule[])),
  );
  const plane = await ControlPlane.start(t, lab, { identity: 'bootstrap', flags: ['--rules', rules] });
  const flags = ['--bootstrap-kubeconfig', plane.bootstrapKubeconfig, '--cert-dir', plane.certificates];
  const proxy = await Proxy.prepare(t, lab, { cluster: plane, flags: [...flags, '--rotate-certificates'] });
  const web = (pod: (typeof PODS)[number]): ReturnType<typeof dualStack> =>
    dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: [pod] });
  const rows = (pod: (typeof PODS)[number]): readonly Row[] =>
    FAMILY_VIEWS.map((view) => ({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept([pod], 80) }));
  const reported = async (): Promise<string> => {
    const answer: HttpAnswer = await lab.http('node', 'http://127.0.0.1:10256/healthz?verbose');
    return 'body' in answer ? `${answer.status} ${answer.body}` : '';
  };
  const waiting = (): Promise<string> =>
    eventually('a request that waits', async () => {
      const text = await reported();
      return text.includes('waits for its approval') ? text : null;
    });

  await plane.sign({ policy: 'wait' });
  await proxy.write(web('pod-a'));
  proxy.launch();
  t.match(await waiting(), /^503 .*"clientCertificate":"request [^"]+: kubectl certificate approve node-proxy-csr-/);
  t.equal(await proxy.stop('SIGTERM'), 0, 'who waits can be ended');
  proxy.launch();
  await waiting();
  t.equal((await plane.state()).signingRequests.length, 1, 'another start goes on with the request');
  t.equal(await lab.ruleset(), '', 'and nothing is known yet');

  await plane.sign({ policy: 'sign', seconds: 5 });
  await proxy.ready();
  await checkRows(t, lab, rows('pod-a'));
  t.notMatch(await reported(), 'clientCertificate');
  // The server sees one that is only tried as well.
  const metrics = await eventually('certificates that follow', async () => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    const text = 'body' in answer ? answer.body : '';
    return /^pointsman_client_certificate_requests_total\{result="issued"\} [2-9]/m.test(text) ? text : null;
  });
  t.match(metrics, /^pointsman_client_certificate_expiration_timestamp_seconds 1\d{9}/m);
  t.ok((await plane.state()).serials.length > 1);
  await proxy.apply(web('remote-a'));
  await checkRows(t, lab, rows('remote-a'));

  await plane.sign({ policy: 'sign', seconds: 3600 });
  await proxy.stop('SIGKILL');
  rmSync(plane.kubeconfig);
  // With the key of a renewal that was signed as the process ended, the next process would take up that request.
  rmSync(plane.certificates, { recursive: true });
  await plane.sign({ policy: 'wait' });
  await proxy.write(web('pod-a'));
  proxy.launch();
  await waiting();
  for (const view of FAMILY_VIEWS)
    t.match(
      await lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) }),
      { name: 'remote-a' },
      'rules of before stay',
    );
  await plane.sign({ policy: 'sign' });
  await proxy.ready();
  await checkRows(t, lab, rows('pod-a'));
  const { forbidden } = await plane.state();
  t.same(forbidden, [], 'deploy/nodes allows all of it');
});
