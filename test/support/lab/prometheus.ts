import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Apt } from '../apt.js';
import { cachedFolder } from '../cached-folder.js';
import type { Lab } from './lab.js';
import type { ProxyScope } from './proxy.js';
import { RunningProcess } from './running.js';

const INSTALLED = '/usr/bin/prometheus';
/** Grows with every change to what the cache holds. */
const FORMAT = '1';
const ADDRESS = '127.0.0.1:9090';

/**
 * Debian's Prometheus: the one that is installed, or else apt fetches the package into `~/.cache/pointsman-prometheus` (`POINTSMAN_PROMETHEUS_CACHE`) and
 * nothing is installed, as that would start it.
 *
 * @throws Error when apt has none.
 */
export function prometheusProgram(): string {
  if (existsSync(INSTALLED)) return INSTALLED;
  const cache = process.env['POINTSMAN_PROMETHEUS_CACHE'] ?? join(homedir(), '.cache/pointsman-prometheus');
  const folder = cachedFolder(cache, FORMAT, (building) => {
    const apt = new Apt(join(building, 'apt'));
    apt.unpack(['prometheus'], building);
    apt.close();
  });
  return join(folder, INSTALLED);
}

/** Debian's package has it beside the server. @throws Error when apt has none. */
export function promtool(): string {
  return join(dirname(prometheusProgram()), 'promtool');
}

/** One time series, with its last value. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

interface AlertGroup {
  readonly rules: readonly {
    readonly alerts: readonly { readonly annotations: Readonly<Record<string, string>> }[];
  }[];
}

interface Target {
  readonly labels: { readonly job: string };
  readonly lastError: string;
}

/** A server of its own in a namespace, that scrapes every second. It ends with the test. */
export class Prometheus {
  #log = '';

  private constructor(
    private readonly lab: Lab,
    private readonly namespace: string,
  ) {}

  /**
   * @param jobs of `scrape_configs`.
   * @param rules files, evaluated every second.
   */
  static start(
    t: ProxyScope,
    lab: Lab,
    namespace: string,
    jobs: readonly object[],
    rules: readonly string[] = [],
  ): Prometheus {
    const folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
    const config = join(folder, 'config.yml');
    const global = { scrape_interval: '1s', evaluation_interval: '1s' };
    writeFileSync(config, JSON.stringify({ global, scrape_configs: jobs, rule_files: rules }));
    const server = new Prometheus(lab, namespace);
    const flags = [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${ADDRESS}`,
    ];
    const running = new RunningProcess(lab.spawn(namespace, [prometheusProgram(), ...flags]), (text) => {
      server.#log += text;
    });
    t.teardown(async () => {
      if (running.end === null) await running.stop('SIGKILL');
      rmSync(folder, { recursive: true });
      if (!t.passing()) t.comment(server.#log);
    });
    return server;
  }

  /** What an expression of PromQL is just now; nothing while it does not answer yet. */
  async query(expression: string): Promise<readonly Sample[]> {
    const data = await this.#get(`query?query=${encodeURIComponent(expression)}`);
    return (data as { readonly result?: readonly Sample[] }).result ?? [];
  }

  /** Annotations of rules that are not what their templates say, because those fail. */
  async brokenAnnotations(): Promise<readonly string[]> {
    const { groups = [] } = (await this.#get('rules?type=alert')) as { readonly groups?: readonly AlertGroup[] };
    const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alerts }) => alerts));
    return alerts.flatMap(({ annotations }) => Object.values(annotations).filter((text) => text.includes('<error')));
  }

  /** Why the last scrape of each job failed; empty: it did not. */
  async errors(): Promise<ReadonlyMap<string, string>> {
    const { activeTargets = [] } = (await this.#get('targets?state=active')) as {
      readonly activeTargets?: readonly Target[];
    };
    return new Map(activeTargets.map(({ labels, lastError }) => [labels.job, lastError]));
  }

  async #get(path: string): Promise<object> {
    const answer = await this.lab.http(this.namespace, `http://${ADDRESS}/api/v1/${path}`);
    if (!('status' in answer) || answer.status !== 200) return {};
    return (JSON.parse(answer.body) as { readonly data: object }).data;
  }
}
