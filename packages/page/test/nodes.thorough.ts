// The page about all nodes in a browser, against a cluster that was made up.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { serveNodesPage } from '../../nodes/src/ui.js';
import type { NodeRow, NodesReport } from '../../nodes/src/api.js';
import { makeReport } from '../../nodes/src/report.js';
import { projectFile } from '../../../test/support/lab/agent.js';
import { address } from '../../../test/support/rows.js';
import { Browser, withoutBrowser } from './browser.js';
import { MARKUP } from './made-up.js';
import { TABLES_BESIDE } from './phone.js';

function row(node: string, more: Partial<NodeRow> = {}): NodeRow {
  const proxy = { release: '0.1.0', mode: 'nftables', startedAt: '2026-01-02T03:04:05Z', services: 4012, problems: 0 };
  const well = { state: 'in-step', pod: `proxy-${node}`, proxy, healthCheck: null, why: [] } as const;
  return { node, ...well, differences: [], moreDifferences: false, ...more };
}

/** 1000 nodes, of which two are not well, or all are. */
function report(isWell: boolean): NodesReport {
  const rows = Array.from({ length: 1000 }, (_, index) => row(`node-${index}`));
  if (!isWell) {
    const difference = { resource: 'services', object: MARKUP, held: '17', actual: '19' } as const;
    rows[7] = row('node-7', { state: 'differs', differences: [difference] });
    rows[8] = row('node-8', { state: 'no-answer', proxy: null, why: [`nothing listens ${MARKUP}`], healthCheck: true });
  }
  const problems = [{ service: 'default/web', problem: 'quarantined', text: '10.96.0.1:80/TCP: ENOSPC' }] as const;
  return makeReport(
    new Date(),
    rows.map((each) => ({ row: each, problems: isWell || each.node !== 'node-9' ? [] : problems })),
  );
}

t.test('the page of all nodes works in a browser', { skip: withoutBrowser }, async (t) => {
  let answer: () => Promise<NodesReport> = () => Promise.resolve(report(false));
  const folder = projectFile('dist/nodes-ui/');
  const served = await serveNodesPage({ look: () => answer(), folder }, { address: address('127.0.0.1'), port: 0 });
  const browser = await Browser.start();
  const { page } = browser;
  t.teardown(async () => {
    await browser.close();
    await served.close();
  });
  await page.goto(served.address);
  await page.getByText('1,000 nodes: 998 in step, 1 differs, 1 no answer').first().waitFor();
  const nodes = page.getByRole('table', { name: 'Nodes' });
  t.match(
    await nodes.getByRole('row').nth(1).innerText(),
    /^node-8\s+no answer\s+nothing listens <.*\s+.*its health check passes/,
  );
  t.match(await nodes.getByRole('row').nth(2).innerText(), `services ${MARKUP}: 17, and 19 in the API server`);
  await page.getByText('and 800 nodes more: search for them').waitFor();
  t.match(
    await page.getByRole('table', { name: 'Services' }).innerText(),
    /default\/web\s+quarantined\s+.*ENOSPC\s+1\s+node-9/,
  );
  await page.getByRole('link', { name: 'default/web' }).click();
  await nodes.getByRole('row').nth(2).waitFor({ state: 'detached' });
  t.match(await nodes.getByRole('row').nth(1).innerText(), /^node-9\b/, 'a Service leads to its nodes');
  await page.getByRole('table', { name: 'Services' }).getByRole('link', { name: 'node-9' }).click();
  await nodes.getByText('node-99', { exact: true }).waitFor();
  t.equal(await page.getByRole('searchbox').inputValue(), 'node-9');
  await page.getByRole('link', { name: 'default/web' }).waitFor();
  await page.getByRole('searchbox').fill('node-999');
  await nodes.getByText('node-999', { exact: true }).waitFor();
  t.equal(await nodes.getByRole('row').count(), 2);

  const axe = readFileSync(projectFile('node_modules/axe-core/axe.min.js'), 'utf8');
  await page.getByRole('searchbox').fill('');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.evaluate(axe);
    const violations = await page.evaluate<readonly { readonly id: string }[]>(
      "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
    );
    t.same(
      violations.map(({ id }) => id),
      [],
      colorScheme,
    );
  }

  await page.setViewportSize({ width: 390, height: 844 });
  for (const text of ['node-8', 'no answer']) t.ok(await nodes.getByText(text, { exact: true }).isVisible(), text);
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  t.same(await page.evaluate(TABLES_BESIDE), [], 'rows are cards');
  await page.setViewportSize({ width: 1360, height: 850 });

  answer = () => Promise.resolve(report(true));
  await page.getByText('1,000 nodes: 1,000 in step').first().waitFor();
  t.equal(await page.getByRole('table', { name: 'Services' }).count(), 0);
  t.same(browser.complaints, []);
  t.same(
    browser.requests.filter((url) => !url.startsWith(served.address)),
    [],
  );
  answer = () => Promise.reject(new Error('connect ECONNREFUSED'));
  await page.getByRole('alert').getByText('connect ECONNREFUSED').waitFor();
});
