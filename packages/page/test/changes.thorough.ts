// What happens on the node is seen on the page without asking, and so is that nothing can be heard.
import t from 'tap';
import { Browser, withoutBrowser } from './browser.js';
import { MadeUpServer } from './made-up-server.js';
import { EXPLAINED, overview, repair, sync } from './made-up.js';

t.test('the page shows changes', { skip: withoutBrowser }, async (t) => {
  const server = await MadeUpServer.start(500);
  const browser = await Browser.start();
  const { page } = browser;
  t.teardown(async () => {
    await browser.close();
    await server.stop();
  });
  const open = async (hash: string): Promise<void> => {
    await page.goto('about:blank');
    await page.goto(`${server.address}${hash}`);
    await page.getByText('Live', { exact: true }).waitFor();
  };
  const reported = page.locator('.unseen[role=status]').last();

  await t.test('the list and the page of a Service show its change', async () => {
    await open('#/services/team-000/service-00007');
    await page.getByRole('heading', { name: 'service-00007' }).waitFor();
    const before = server.services[7];
    if (before === undefined) throw new Error('there is no such Service');
    server.services[7] = { ...before, addresses: ['10.96.77.77'], endpointsUsed: 1 };
    server.send('services', { keys: [before.key], more: false, membership: false });
    await page.locator('[role=row]', { hasText: 'service-00007' }).getByText('1 of 3').waitFor();
    await page.locator('#service').getByText('10.96.77.77:443/TCP').waitFor();
  });

  await t.test('a change of another Service sends no request', async (t) => {
    const before = server.asked.length;
    server.send('services', { keys: ['somewhere/else'], more: false, membership: false });
    server.send('overview', overview({ node: 'renamed' }));
    await page.getByText('renamed').waitFor();
    t.equal(server.asked.length, before);
  });

  await t.test('the selected Service stays selected when Services are added', async (t) => {
    const first = server.services[0];
    if (first === undefined) throw new Error('there is no Service');
    server.services.unshift({ ...first, key: '0/new', namespace: '0', name: 'new' });
    server.send('services', { keys: ['0/new'], more: false, membership: true });
    await page.getByText('501 Services').waitFor();
    await page.locator('[aria-selected=true][aria-rowindex="10"]', { hasText: 'service-00007' }).waitFor();
    await page.getByRole('heading', { name: 'service-00007' }).waitFor();
    t.pass();
  });

  await t.test('an explanation is refreshed when its Service changes, and only then', async (t) => {
    await open('#/explain?to=10.96.0.10:443/TCP');
    await page.getByRole('heading', { name: 'Forwarded' }).first().waitFor();
    const asked = (): number => server.asked.filter((each) => each.startsWith('/ui/api/explain')).length;
    const changed = async (key: string, node: string): Promise<void> => {
      for (let count = 0; count < 20; count++) {
        server.send('services', { keys: [key], more: false, membership: false });
        await page.evaluate('new Promise((done) => setTimeout(done, 20))');
      }
      server.send('overview', overview({ node }));
      await page.getByText(node).waitFor();
    };
    const before = asked();
    await changed('somewhere/else', 'others-changed');
    // Whatever was told before the page listened counts as changed.
    t.ok(asked() - before <= 1, `${asked() - before} times`);
    server.isPending = true;
    await changed(EXPLAINED, 'its-own-changed');
    await page.getByText('a change waits for 7 ms', { exact: true }).waitFor();
    t.ok(asked() - before < 10, `${asked() - before} times of 20`);
    server.isPending = false;
    await page.getByText('a change waits for 7 ms', { exact: true }).waitFor({ state: 'detached' });
  });

  await t.test('a change of health is announced to screen readers', async () => {
    await open('#/overview');
    await page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
    const reason = {
      severity: 'bad',
      kind: 'failing',
      family: 'IPv6',
      text: 'the last sync failed',
      since: null,
    } as const;
    server.send('overview', overview({ health: { healthy: false, nodeEligible: true, reasons: [reason] } }));
    await page.getByRole('heading', { name: 'Not healthy' }).waitFor();
    await reported.getByText('Not healthy: the last sync failed').waitFor({ state: 'attached' });
  });

  await t.test('syncs, and repairs with the process that caused them, are announced to screen readers', async (t) => {
    await open('#/history');
    const { latency } = server.history;
    server.send('syncs', { syncs: [sync(41, { servicePorts: ['shop/cart:http'] })], skipped: 12, latency });
    await page.getByRole('cell', { name: 'shop/cart:http' }).first().waitFor();
    await page.getByText('12 more are not listed, as they happened too fast').waitFor();
    server.send('repairs', { repairs: [repair(2, { process: 'iptables[99]' })] });
    await page.getByText('iptables[99]', { exact: true }).waitFor();
    await reported
      .getByText('Repaired, IPv4: iptables[99] had changed the rules, 4 put right.')
      .waitFor({ state: 'attached' });
    t.equal(await page.getByRole('table', { name: 'Syncs', exact: true }).getByRole('row').count(), 42);
  });

  await t.test('a changed configuration is shown', async () => {
    await open('#/configuration');
    await page.getByText('clusterCIDR', { exact: true }).waitFor();
    server.configuration = { ...server.configuration, refused: 'mode: no such mode' };
    server.send('configuration', {});
    await page.getByRole('alert').getByText('mode: no such mode').waitFor();
  });

  await t.test('the page reports a process that sends nothing on an open connection', async (t) => {
    await open('#/overview');
    // The server here sends nothing by itself, as a process that hangs.
    await page.getByRole('heading', { name: 'Not reachable' }).waitFor();
    await page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
    t.pass('it is asked again');
  });

  t.same(browser.complaints, [], 'the browser has nothing to complain of');

  await t.test('the page reports a process that is gone, and recovers when it is back', async (t) => {
    await open('#/overview');
    const { port } = server;
    await server.stop();
    await page.getByText('Reconnecting…').waitFor();
    await page.getByText(/^The process cannot be reached; trying again\. What is shown is as of/).waitFor();
    await page.getByRole('heading', { name: 'Not reachable' }).waitFor();
    const green = `[...document.querySelectorAll('.dot')].filter((dot) => {
      const { backgroundColor } = getComputedStyle(dot);
      return dot.matches('.good') && backgroundColor !== 'rgba(0, 0, 0, 0)';
    }).length`;
    t.equal(await page.evaluate(green), 0, 'nothing is green');
    server.overview = overview({ node: 'came-back' });
    await server.listen(port);
    await page.getByText('came-back').first().waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
    t.not(await page.evaluate(green), 0, 'green again');
    await page
      .getByText(/^The process cannot be reached/)
      .first()
      .waitFor({ state: 'detached' });
  });
});
