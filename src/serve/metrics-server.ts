import type { IncomingMessage, ServerResponse } from 'node:http';
import { clientOf } from '../base/client-network.js';
import { parseAddress } from '../base/ip.js';
import { API_GROUP } from '../config/document.js';
import type { FlagSetting } from '../config/flags.js';
import { ComponentHealth } from '../observe/component-health.js';
import { EXPOSITION_TYPES, negotiateExposition, type ExpositionFormat } from '../observe/exposition.js';
import { answerText, HttpEndpoint, route, type HttpEndpointOptions, type Page } from './http-endpoint.js';
import { answerWhole, JSON_HEADERS } from './listener.js';
import { isOfPage } from './page.js';
import { profilingPages } from './profiling.js';
import { sharedAnswer } from './shared-answer.js';
import type { StructuredPage } from './structured-page.js';
import type { StatusFacts } from './statusz.js';

export interface MetricsServerOptions extends HttpEndpointOptions, ConfiguredPages {
  readonly metrics: { scrape(format: ExpositionFormat): Promise<string> };
  /** Answers what is below /ui. */
  readonly page: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Whether a request that comes over loopback has to name an address or localhost; asked at each request. Absent: none has to. */
  readonly checksHost?: () => boolean;
  /** The effective document as it would be written to a file; asked at each request. */
  readonly configuration: () => unknown;
}

/** What is served as the configuration says. */
export interface ConfiguredPages {
  /** What /proxyMode answers. */
  readonly mode: string;
  /** For /flagz; null: not served (feature gate ComponentFlagz). */
  readonly flags: readonly FlagSetting[] | null;
  /** For /statusz; null: not served (feature gate ComponentStatusz). */
  readonly status: StatusFacts | null;
  /** With enableProfiling: how to set the log's verbosity; null: nothing under /debug is served. */
  readonly setVerbosity: ((verbosity: number) => void) | null;
}

/** Serves metrics and what else a node's administrator asks a component, as access control lets them, or all clients over plain HTTP (behaviour §6.3). */
export class MetricsServer extends HttpEndpoint {
  private readonly health = new ComponentHealth();
  private byPath: ReadonlyMap<string, Page>;

  constructor(private readonly served: MetricsServerOptions) {
    super('metrics', served, (...exchange) => this.answer(...exchange));
    this.byPath = pagesOf(served, this.health);
  }

  /** From now on these are served. */
  show(pages: ConfiguredPages): void {
    this.byPath = pagesOf({ ...this.served, ...pages }, this.health);
  }

  /** As {@link Pages}. */
  private async answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    if (this.served.checksHost?.() === true && isOverLoopback(request) && !isAddressedDirectly(request.headers.host)) {
      answerText(response, 421, 'use an IP address or localhost\n');
      return null;
    }
    const find = (path: string): Page | undefined => {
      if (path === '/') return toPage;
      return isOfPage(path) ? this.served.page : this.byPath.get(path);
    };
    return route(request, response, find, this.served);
  }
}

/** For people: all else has a name. */
function toPage(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(302, { Location: 'ui/' }).end();
}

/** Loaded when it is asked for, which few do. */
function structured(page: () => Promise<StructuredPage>): Page {
  return async (request, response) => {
    (await import('./structured-page.js')).answerPage(request, response, await page());
  };
}

/** Whatever address is listened on: `0.0.0.0` has loopback in it, and a forwarded port of a pod arrives there. */
function isOverLoopback({ socket }: IncomingMessage): boolean {
  return clientOf(socket.localAddress).isLoopback;
}

/**
 * Whether a Host header is an address or localhost, not a name under foreign control. A page of another site can make a
 * browser send requests here by a name that resolves to loopback (DNS rebinding). Clients without a Host header are no browsers.
 */
function isAddressedDirectly(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return name === '' || name.toLowerCase() === 'localhost' || parseAddress(name) !== null;
}

function pagesOf(options: MetricsServerOptions, health: ComponentHealth): ReadonlyMap<string, Page> {
  const metrics = scrapedTogether(options.metrics);
  const pages = new Map<string, Page>([
    ['/metrics', (request, response) => answerMetrics(request, response, metrics)],
    ...healthPages(health),
    [
      '/proxyMode',
      (_request, response) => {
        answerText(response, 200, options.mode);
      },
    ],
    [
      '/configz',
      (_request, response) => {
        const body = JSON.stringify({ [API_GROUP]: options.configuration() });
        answerWhole(response, 200, JSON_HEADERS, body);
      },
    ],
    ...(options.setVerbosity === null ? [] : profilingPages(options.setVerbosity)),
  ]);
  const { flags, status } = options;
  if (flags !== null) {
    pages.set(
      '/flagz',
      structured(async () => (await import('./flagz.js')).flagzPage(flags)),
    );
  }
  if (status !== null) {
    const paths = [...pages.keys(), '/statusz'];
    pages.set(
      '/statusz',
      structured(async () => (await import('./statusz.js')).statuszPage(status, paths)),
    );
  }
  return pages;
}

/** Each format on its own: a scrape takes ten milliseconds, and more in a large cluster. */
function scrapedTogether(metrics: MetricsServerOptions['metrics']): MetricsServerOptions['metrics'] {
  const texts = new Map<ExpositionFormat, () => Promise<string>>();
  return {
    scrape: (format) => {
      const text = texts.get(format) ?? sharedAnswer(() => metrics.scrape(format));
      texts.set(format, text);
      return text();
    },
  };
}

async function answerMetrics(
  request: IncomingMessage,
  response: ServerResponse,
  metrics: MetricsServerOptions['metrics'],
): Promise<void> {
  const format = negotiateExposition(request.headers.accept);
  const text = await metrics.scrape(format);
  answerWhole(response, 200, { 'Content-Type': EXPOSITION_TYPES[format] }, text);
}

function healthPages(health: ComponentHealth): readonly (readonly [string, Page])[] {
  return [
    [
      '/healthz',
      (_request, response, query) => {
        answerText(response, 200, health.check(query));
      },
    ],
    [
      '/healthz/ping',
      (_request, response) => {
        answerText(response, 200, 'ok');
      },
    ],
    [
      '/metrics/slis',
      async (request, response) => {
        if (request.method !== 'DELETE') {
          await answerMetrics(request, response, health);
          return;
        }
        health.reset();
        answerText(response, 200, 'metrics reset\n');
      },
    ],
  ];
}
