// The page of a real process, by `pointsman ui`: what it shows is so, and what happens to the rules and to the process is seen.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { Lab } from '../../../test/support/lab/lab.js';
import type { Manifest } from '../../../test/support/lab/objects.js';
import { dualStack, IPV4 } from '../../../test/support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../../../test/support/lab/proxy.js';
import { PROGRAM } from '../../../test/support/program.js';
import { Browser, withoutBrowser } from './browser.js';

function objects(...endpoints: readonly ('pod-a' | 'pod-b' | 'remote-a')[]): readonly Manifest[] {
  return [
    ...dualStack('web', {
      type: 'LoadBalancer',
      number: 41,
      loadBalancers: [3],
      externalTrafficPolicy: 'Local',
      affinitySeconds: 600,
      ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30001 }],
      endpoints: [...endpoints, { pod: 'pod-c', ready: false }],
    }),
    ...dualStack('dns', { number: 43, ports: [{ protocol: 'UDP', port: 53 }], endpoints: ['pod-a', 'pod-b'] }),
    ...dualStack('empty', { number: 44, ports: [{ port: 80 }], endpoints: [] }),
  ];
}

/** For the README, when it is asked for. */
async function takePicture(page: Page): Promise<void> {
  const path = process.env['POINTSMAN_PICTURE'];
  if (path === undefined) return;
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.screenshot({ path });
}

/** Serves the page until the test ends; resolves to its address. */
async function servePage(t: Test, socket: string): Promise<string> {
  const child = spawn(PROGRAM, ['ui', '--status-socket', socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return line;
}

t.test('the page shows a running process', { skip: withoutBrowser }, async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab, { mode: 'nftables', objects: objects('pod-a', 'remote-a') });
  const address = await servePage(t, proxy.statusSocket);
  const browser = await Browser.start();
  t.teardown(() => browser.close());
  const { page } = browser;
  const show = (view: string): Promise<void> => page.getByRole('link', { name: view, exact: true }).click();
  const pane = page.locator('#service');

  await t.test('the overview shows health and syncs', async (t) => {
    await page.goto(address);
    await page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
    await page.getByText(NODE_NAME).first().waitFor();
    const wrong = page.getByRole('list', { name: 'What is wrong' });
    await wrong.getByText(/refused: no endpoint can serve: default\/empty/).waitFor();
    const families = page.getByRole('table', { name: 'Address families' });
    t.equal(await families.getByText('in sync', { exact: true }).count(), 2);
    t.ok(await page.getByRole('table', { name: 'Sources' }).getByRole('row').count());
  });

  await t.test('the list shows Services, and one Service in detail', async (t) => {
    await page.keyboard.press('/');
    await page.locator('#search:focus').waitFor();
    await page.keyboard.type('web 30001');
    await page.getByText('1 of 4 Services').waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await pane.getByRole('heading', { name: 'web', exact: true }).waitFor();
    const local = pane.getByRole('table', { name: 'Endpoints of http, IPv4, policy Local' });
    await local.waitFor();
    t.same(
      (await local.getByRole('row').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim()),
      [
        'Endpoint Pod Node Conditions Here',
        '10.244.1.10:8080 none node-1 ready, serving used',
        '10.244.1.12:8080 none node-1 none not used: not ready',
        '10.244.2.10:8080 none node-2 ready, serving not used: not on this node',
      ],
    );
  });

  await t.test('the page shows a change of a Service', async () => {
    await proxy.write(objects('pod-a', 'pod-b', 'remote-a'));
    await pane.getByText('10.244.1.11:8080').first().waitFor();
    await page.locator('[role=row]', { hasText: 'web' }).getByText('6 of 8').waitFor();
  });

  await t.test('the page explains where a packet goes', async (t) => {
    await pane.getByRole('link', { name: `Explain ${IPV4.loadBalancerIP(3)}:80/TCP` }).click();
    await page.getByRole('heading', { name: 'Forwarded' }).first().waitFor();
    await page.getByText('externalTrafficPolicy Local: endpoints on this node only', { exact: true }).waitFor();
    t.equal(await page.locator('.branches > .used').count(), 2);
    await takePicture(page);
    await page.getByLabel('To', { exact: true }).fill(`${IPV4.clusterIP(44)}:80/TCP`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Rejected' }).first().waitFor();
  });

  await t.test('the page shows a repair, and the process that caused it', async () => {
    await show('History');
    await page.getByText('None: no other process has changed the rules.').waitFor();
    await lab.output('node', ['nft', 'flush', 'map', 'ip', 'kube-proxy', 'frontends']);
    await page
      .getByText(/^nft\[\d+\]$/)
      .first()
      .waitFor();
    await page.locator('[role=status]', { hasText: /Repaired, IPv4: nft\[\d+\]/ }).waitFor({ state: 'attached' });
  });

  await t.test('the page shows the effective configuration', async () => {
    await show('Configuration');
    await page.getByText('clusterCIDR', { exact: true }).waitFor();
  });

  t.same(browser.complaints, [], 'the browser has nothing to complain of');
  t.same(
    browser.requests.filter((url) => !url.startsWith(address)),
    [],
    'no other host is asked',
  );

  await t.test('the metrics address serves the same page', async (t) => {
    const beside = await Browser.start(proxy.pid);
    t.teardown(() => beside.close());
    const own = 'http://127.0.0.1:10249/ui/';
    await beside.page.goto(new URL('/', own).href);
    t.equal(beside.page.url().split('#')[0], own);
    await beside.page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
    await beside.page.getByText('Live', { exact: true }).waitFor();
    await beside.page.getByRole('link', { name: 'Services', exact: true }).click();
    await beside.page.getByText('4 Services').first().waitFor();
    t.same(beside.complaints, []);
    t.same(
      beside.requests.filter((url) => !url.startsWith(own)),
      [new URL('/', own).href],
    );
  });

  await t.test('the page notices that another process has taken the place of the first', async () => {
    await show('Overview');
    await proxy.stop();
    await page.getByText('Reconnecting…').waitFor();
    await proxy.restart();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Healthy', exact: true }).waitFor();
  });
});
