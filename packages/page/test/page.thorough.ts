// The page in a browser, against a node that was made up: what it shows, what it asks, and who can use it.
import { readFileSync, statSync } from 'node:fs';
import t from 'tap';
import { projectFile } from '../../../test/support/lab/agent.js';
import { Browser, withoutBrowser } from './browser.js';
import { MadeUpServer } from './made-up-server.js';
import { LONG, MARKUP } from './made-up.js';
import { TABLES_BESIDE } from './phone.js';

const VIEWS = {
  overview: '#/overview',
  services: '#/services',
  service: `#/services/a/${encodeURIComponent(MARKUP)}`,
  'a Service with troubles': '#/services/team-000/service-00003',
  explain: '#/explain?to=10.96.0.10:443/TCP&from=external',
  'what is dropped': '#/explain?to=10.96.0.10:53/UDP',
  history: '#/history',
  configuration: '#/configuration',
} as const;

interface AxeViolation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

t.test('the page of a proxy works in a browser', { skip: withoutBrowser }, async (t) => {
  const server = await MadeUpServer.start();
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
    await page.getByText('Asking the process…').waitFor({ state: 'detached' });
  };
  const focused = (of: string): Promise<string> => page.evaluate(`String(document.activeElement?.${of})`);
  const rows = page.getByRole('row');
  const grid = page.getByRole('grid');
  const search = page.getByRole('searchbox');
  // The page's policy forbids what waitForFunction would have it evaluate.
  const searchIs = async (text: string): Promise<void> => {
    while ((await search.inputValue()) !== text) await page.waitForTimeout(20);
  };

  await t.test('every view is accessible to blind and low-vision users', async (t) => {
    const axe = readFileSync(projectFile('node_modules/axe-core/axe.min.js'), 'utf8');
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      for (const [name, hash] of Object.entries(VIEWS)) {
        await open(hash);
        await page.evaluate(axe);
        const violations = await page.evaluate<readonly AxeViolation[]>(
          "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
        );
        const found = violations.map(({ id, impact, nodes }) => `${impact}: ${id}: ${nodes[0]?.html ?? ''}`);
        t.same(found, [], `${name}, ${colorScheme}`);
      }
    }
    await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  });

  await t.test('names are shown as text, never as markup', async (t) => {
    for (const [name, hash] of Object.entries(VIEWS)) {
      await open(hash);
      const text = await page.locator('#page').innerText();
      if (name !== 'overview') t.ok(text.includes(MARKUP), name);
      t.notOk(text.includes('\u202e'), `${name}: nothing turns text around`);
      t.equal(await page.evaluate('document.querySelectorAll("#page img, #page script").length'), 0, name);
    }
    t.equal(await page.evaluate('window.hit'), undefined);
  });

  await t.test('long names and narrow windows do not widen the page', async (t) => {
    await open(VIEWS.services);
    server.overview = { ...server.overview, node: LONG };
    for (const width of [320, 700, 1100]) {
      await page.setViewportSize({ width, height: 700 });
      for (const [name, hash] of Object.entries({ ...VIEWS, long: `#/services/team-000/${LONG}` })) {
        await open(hash);
        t.equal(await page.evaluate('document.documentElement.scrollWidth'), width, `${name}, ${width} pixels`);
      }
    }
    await page.setViewportSize({ width: 1360, height: 850 });
  });

  await t.test('the search asks the server, and shows the number of matches', async (t) => {
    await open('#/overview');
    await page.keyboard.press('/');
    await page.locator('#search:focus').waitFor();
    await page.keyboard.type('service-01234');
    await page.getByText('1 of 44,000 Services').waitFor();
    await rows.filter({ hasText: 'team-012/service-01234' }).waitFor();
    t.equal(await page.evaluate('location.hash'), '#/services?q=service-01234');
    await page.keyboard.press('Escape');
    await page.getByText('44,000 Services', { exact: true }).waitFor();
    await page.getByLabel('With problems').check();
    await page.getByText(/^\d+ of 44,000 Services$/).waitFor();
    await rows.nth(1).filter({ hasText: 'conflict' }).waitFor();
    await page.getByLabel('With problems').uncheck();
    await search.fill('nothing is called so');
    await page.getByText('0 of 44,000 Services').waitFor();
    // What is typed while the address takes over what was typed before.
    await page.evaluate(`new Promise((resolve) => {
      const search = document.getElementById('search');
      const type = (text) => {
        search.value = text;
        search.dispatchEvent(new InputEvent('input', { bubbles: true }));
      };
      addEventListener('hashchange', () => { type('service-01235'); resolve(); }, { once: true });
      type('service');
    })`);
    await rows.filter({ hasText: 'team-012/service-01235' }).waitFor();
    t.equal(await search.inputValue(), 'service-01235', 'nothing that is typed is lost');
  });

  await t.test('the overview counts problems by kind, and links to them', async (t) => {
    await open('#/overview');
    const wrong = page.getByRole('list', { name: 'What is wrong' });
    await wrong.getByText('ip_forward is 0').waitFor();
    t.equal(await wrong.getByRole('listitem').count(), 2 + 1 + 4, 'reasons, observations, problems of Services');
    await wrong.getByText('Remedy: sysctl -w net.ipv4.ip_forward=1').waitFor();
    t.same(
      (await wrong.getByRole('listitem').allInnerTexts())
        .map((text) => text.replaceAll(/\s+/g, ' ').trim())
        .slice(5, 6),
      [
        `Warning: 3 Services dropped: traffic policy Local, and no endpoint on this node: ${server.services[5]?.key ?? ''} …`,
      ],
    );
    await page.getByRole('heading', { name: 'Last changes' }).waitFor();
    await page.locator('li', { hasText: 'after nft[31337]' }).waitFor();
    t.same(await page.getByRole('table', { name: 'Busiest Services' }).getByRole('row').allInnerTexts(), [
      'Service\tConnections\tBytes\tRefused',
      `${server.services[5]?.key ?? ''}\t812\t12 MB\t0`,
      'all others\t3.2\t1.0 kB\t4.0',
    ]);
    t.same(await page.locator('.graph figcaption').allInnerTexts(), [
      'Longest sync now 16.0 ms, at most 40.0 ms in 15 min 0 s',
      'Changed frontends now 0, at most 175 in 15 min 0 s',
      'Connections per second now 1,790, at most 1,790 in 15 min 0 s',
      'Refused packets per second now 36, at most 36 in 15 min 0 s',
    ]);
    await wrong.getByRole('link', { name: '454 Services' }).click();
    await page.getByText('454 of 44,000 Services refused: no endpoint can serve').waitFor();
    t.equal(await page.evaluate('location.hash'), '#/services?problems=no-endpoints');
    await page.getByLabel('With problems').uncheck();
    await page.getByText('44,000 Services', { exact: true }).waitFor();
  });

  await t.test('configuration marks what differs from the default', async (t) => {
    await open('#/configuration');
    const fields = page.getByRole('table', { name: 'Fields' }).getByRole('row');
    t.equal(await fields.count(), 5);
    await fields.filter({ hasText: 'clusterCIDR' }).getByText('changed', { exact: true }).waitFor();
    await page.getByLabel('Changed from the default').check();
    t.same((await fields.allInnerTexts()).slice(1), [
      'clusterCIDR\t"10.244.0.0/16" changed default ""',
      'mode\t"nftables" changed default "iptables"',
    ]);
    t.same((await page.getByRole('table', { name: 'Flags' }).getByRole('row').allInnerTexts()).slice(1), [
      '--config\t/var/lib/kube-proxy/config.conf changed no default',
    ]);
  });

  await t.test('a node leads to the Services with endpoints there', async (t) => {
    await open(VIEWS.service);
    await page.locator('#service').getByRole('link', { name: 'worker-18' }).first().click();
    t.equal(await page.evaluate('location.hash'), '#/services?q=node%3Aworker-18');
    await searchIs('node:worker-18');
  });

  await t.test('times are shown with date and 24 hours', async (t) => {
    await open('#/history');
    const times = await page.locator('main time').allInnerTexts();
    t.ok(times.length > 10);
    t.same(
      times.filter((time) => !/^\d{4}-\d\d-\d\d [012]\d:\d\d:\d\d$/.test(time) && !/ago$|now$/.test(time)),
      [],
    );
  });

  await t.test('Services are sorted by type, and an empty result is reported as such', async (t) => {
    await open('#/services');
    await page.getByLabel('Type', { exact: true }).selectOption('LoadBalancer');
    await page.getByText('8,800 of 44,000 Services').waitFor();
    await page.getByLabel('Sort by').selectOption('endpoints');
    await rows.nth(1).filter({ hasText: 'no endpoints' }).waitFor();
    t.equal(await page.evaluate('location.hash'), '#/services?type=LoadBalancer&sort=endpoints');
    const cut =
      '[...document.querySelectorAll(".grid-row > :nth-child(2)")].filter((cell) => cell.scrollWidth > cell.clientWidth).length';
    t.equal(await page.evaluate(cut), 0, 'no type is cut');
    await search.fill('no Service is called so');
    await page.getByText('No Service matches.').waitFor();
    await page.getByRole('link', { name: 'Show all' }).click();
    await page.getByText('44,000 Services', { exact: true }).waitFor();
    await page.getByText('No Service matches.').waitFor({ state: 'detached' });
    await searchIs('');
  });

  await t.test('a link to a missing Service does not show another one', async (t) => {
    await open('#/services/team-000/service-00003');
    await page.getByRole('heading', { name: 'service-00003' }).waitFor();
    await page.evaluate("location.hash = '#/services/gone/away'");
    await page.getByRole('alert').getByText('there is none of that name').waitFor();
    // Longer than a row that the arrows chose takes to be opened.
    await page.evaluate('new Promise((done) => setTimeout(done, 500))');
    t.equal(await page.evaluate('location.hash'), '#/services/gone/away');
    t.equal(await page.locator('[aria-selected=true]').count(), 0);
    await page.evaluate("location.hash = '#/services/team-439/service-43998'");
    await page.getByRole('heading', { name: 'service-43998' }).waitFor();
    await page.evaluate('new Promise((done) => setTimeout(done, 500))');
    t.equal(await page.evaluate('location.hash'), '#/services/team-439/service-43998', 'nor one that is out of sight');
    t.match(browser.complaints.splice(0), [/404 \(Not Found\)/]);
  });

  await t.test('Escape closes the Service from anywhere, and ? shows the keys', async (t) => {
    await open('#/services/team-000/service-00003');
    const heading = page.getByRole('heading', { name: 'service-00003' });
    await heading.waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
    t.ok(await heading.isVisible(), 'which is behind the keys');
    await page.locator('body').press('Escape');
    await heading.waitFor({ state: 'detached' });
  });

  await t.test('on a phone, table rows are shown as cards', async (t) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open('#/services');
    const card = rows.filter({ hasText: 'team-000/service-00003' });
    await card.waitFor();
    t.equal((await card.boundingBox())?.height, 84);
    for (const text of ['ClusterIP', '10.96.0.3', '2 of 3', 'conflict', 'quarantined'])
      t.ok(await card.getByText(text, { exact: true }).or(card.getByText(text)).first().isVisible(), text);
    t.same(
      await page.evaluate(
        "[...document.querySelectorAll('.grid-row > *')].filter((cell) => cell.scrollHeight > cell.clientHeight + 1).length",
      ),
      0,
      'nothing is cut off below',
    );
    await card.click();
    await page.getByRole('heading', { name: 'service-00003' }).waitFor();
    server.connections = 1500;
    for (const [name, hash] of Object.entries(VIEWS)) {
      await open(hash);
      t.same(await page.evaluate(TABLES_BESIDE), [], name);
      if (name === 'service')
        t.equal(
          await page.getByRole('table', { name: 'Endpoints' }).first().getByRole('cell').first().innerText(),
          'app-1',
        );
      await page.evaluate(readFileSync(projectFile('node_modules/axe-core/axe.min.js'), 'utf8'));
      const violations = await page.evaluate<readonly AxeViolation[]>(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
      );
      t.same(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`),
        [],
        name,
      );
    }
    server.connections = null;
    await page.setViewportSize({ width: 1360, height: 850 });
  });

  await t.test('a list of 44,000 Services renders only the rows in sight', async (t) => {
    await open('#/services');
    t.equal(await grid.getAttribute('aria-rowcount'), '44001');
    const before = server.asked.length;
    const most = await page.evaluate<number>(`(async () => {
      const grid = document.querySelector('[role=grid]');
      let most = 0;
      for (let step = 0; step <= 200; step++) {
        grid.scrollTop = (grid.scrollHeight - grid.clientHeight) * (step / 200);
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll('*').length);
      }
      return most;
    })()`);
    t.ok(most < 700, `${most} elements at most`);
    await page.getByText('team-439/service-43999').waitFor();
    t.equal(await rows.last().getAttribute('aria-rowindex'), '44001');
    t.ok(server.asked.length - before < 100, `asked ${server.asked.length - before} times`);
  });

  await t.test('the page can be used with the keyboard alone', async (t) => {
    await open('#/overview');
    await page.keyboard.press('Tab');
    t.equal(await focused('textContent'), 'Skip to the content');
    t.not(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', 'focus is seen');
    await page.keyboard.press('Enter');
    t.equal(await focused('id'), 'content');
    t.equal(await page.evaluate('location.hash'), '#/overview', 'which is no view');

    await page.keyboard.press('/');
    await page.locator('#search:focus').waitFor();
    await page.keyboard.press('ArrowDown');
    t.equal(await focused('getAttribute("role")'), 'grid');
    await page.getByText('team-000/service-00002').waitFor();
    for (let times = 0; times < 3; times++) await page.keyboard.press('ArrowDown');
    const chosen = page.locator('[role=row][aria-selected=true]');
    await chosen.filter({ hasText: 'team-000/service-00002' }).waitFor();
    t.equal(await grid.getAttribute('aria-activedescendant'), await chosen.getAttribute('id'));
    await page.keyboard.press('End');
    await page.locator('[role=row][aria-selected=true][aria-rowindex="44001"]', { hasText: 'service-43999' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'service-43999' }).waitFor();
    await page.keyboard.press('ArrowUp');
    await page.getByRole('heading', { name: 'service-43998' }).waitFor();
    await page.keyboard.press('Enter');
    t.equal(await focused('id'), 'service');
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'service-43998' }).waitFor({ state: 'detached' });
    t.equal(await focused('getAttribute("role")'), 'grid');
  });

  await t.test('connections of a Service are shown where they are counted, and are updated', async (t) => {
    await open(VIEWS.service);
    t.equal(await page.getByRole('heading', { name: 'Traffic' }).count(), 0);
    server.connections = 1500;
    await open(VIEWS.service);
    const table = page.getByRole('table', { name: 'Traffic' });
    t.same(await table.getByRole('row').allInnerTexts(), [
      'Port\tConnections\tPackets to endpoints\tBytes\tPackets back\tBytes back',
      'https/TCP\t1,500\t15,000\t1.5 MB\t30,000\t1.5 GB',
      'to 10.244.1.2:8443\t1,500\t15,000\t1.5 MB\t30,000\t1.5 GB',
      'to other endpoints\t1,500\t15,000\t1.5 MB\t30,000\t1.5 GB',
    ]);
    t.same(await page.getByRole('table', { name: 'Refused and dropped' }).getByRole('row').allInnerTexts(), [
      'Port\tRefused or dropped\tWhy\tPackets',
      'https/TCP\trefused\tno endpoint to use\t12',
      'https/TCP\tdropped\tsource in none of the ranges\t3,400',
    ]);
    server.connections = 1501;
    await table.getByText('1,501').first().waitFor();
    t.equal(await page.getByText('Asking the process…').count(), 0, 'what was there stays until there is more');
    server.connections = null;
  });

  await t.test('an explanation is requested and drawn', async (t) => {
    await open('#/explain');
    await page.getByLabel('From', { exact: true }).fill('node');
    await page.getByLabel('To', { exact: true }).fill('10.96.0.10:53/UDP');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dropped' }).first().waitFor();
    t.same(await page.locator('.track h3').allTextContents(), [
      'Source: goes on',
      'Service: goes on',
      'Conflict: look here',
      'Policy: decides',
      'Endpoints: goes on',
      'Masquerade',
      'Dropped',
    ]);
    t.equal(await page.locator('.branches > .used').count(), 2);
    t.equal(await page.locator('.branches > .unused').count(), 2);
    t.equal(await page.evaluate('location.hash'), '#/explain?to=10.96.0.10%3A53%2FUDP&from=node');
    await page.getByLabel('To', { exact: true }).fill('nowhere');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    t.equal(await page.getByRole('alert').innerText(), 'to: not an address and port');
    // The browser itself tells of every answer that is an error.
    t.match(browser.complaints.splice(0), [/400 \(Bad Request\)/]);
  });

  await t.test('the light or dark theme can be selected, and is remembered', async (t) => {
    await open('#/overview');
    const ground = (): Promise<string> => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const toggle = page.getByRole('button', { name: /^Colours/ });
    await toggle.click();
    t.equal(await ground(), 'rgb(246, 245, 241)');
    await toggle.click();
    t.equal(await ground(), 'rgb(19, 20, 23)');
    await open('#/overview');
    t.equal(await ground(), 'rgb(19, 20, 23)');
    await toggle.click();
    t.equal(await page.evaluate('document.documentElement.dataset.theme'), undefined);
  });

  t.same(browser.complaints, [], 'the browser has nothing to complain of');
  t.same(
    browser.requests.filter((url) => !url.startsWith(server.address)),
    [],
    'no other host is asked',
  );
});

t.test('the HTML of the page has no inline script and no inline style', (t) => {
  const html = readFileSync(projectFile('dist/ui/index.html'), 'utf8');
  t.notMatch(html, /<style|\sstyle=|\son\w+=|javascript:/i);
  t.same(
    html.match(/<script[^>]*>[^<]*/g)?.map((script) => script.replace(/\bmain-\w+/, 'main')),
    ['<script type="module" src="./main.js">'],
  );
  t.end();
});

t.test('the screenshot of the README is small', (t) => {
  t.ok(statSync(projectFile('docs/page.png')).size < 200_000);
  t.end();
});
