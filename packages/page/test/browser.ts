import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type BrowserContext, type Page } from 'playwright-core';

/** Debian's. */
export const CHROMIUM = '/usr/bin/chromium';

/** Why there can be no test with a browser; false: there can. */
export const withoutBrowser: string | false = existsSync(CHROMIUM)
  ? false
  : `${CHROMIUM} is missing: apt-get install chromium`;

/** A browser of its own, that keeps nothing and asks nobody but the page's server. */
export class Browser {
  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly folder: string,
    /** Whatever it complained of: errors of the console, exceptions, breaches of the policy. */
    readonly complaints: string[],
    /** Addresses that it asked. */
    readonly requests: string[],
  ) {}

  /** @param process whose network it is in; null: its own. */
  static async start(process: number | null = null): Promise<Browser> {
    const folder = mkdtempSync(join(tmpdir(), 'page-'));
    const executablePath = process === null ? CHROMIUM : inNetworkOf(process, folder);
    const context = await chromium.launchPersistentContext(join(folder, 'profile'), {
      executablePath,
      headless: true,
      viewport: { width: 1360, height: 850 },
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    });
    const page = context.pages()[0] ?? (await context.newPage());
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`));
    page.on('request', (request) => requests.push(request.url()));
    return new Browser(context, page, folder, complaints, requests);
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A program that starts the browser beside a process. Whoever drives it does so by pipes, which are in no network. */
function inNetworkOf(process: number, folder: string): string {
  const path = join(folder, 'browser');
  writeFileSync(path, `#!/bin/sh\nexec nsenter --net=/proc/${process}/ns/net ${CHROMIUM} "$@"\n`, { mode: 0o755 });
  return path;
}
