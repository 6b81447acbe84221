import { hostname } from 'node:os';
import { readTextFileSync } from '../base/bounded-file.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { TRACING_KIND } from '../config/kinds/egress.js';
import { readKind } from '../config/tables/document.js';
import { MAX_CONFIG_BYTES } from '../config/yaml.js';
import type { NativeAddon } from '../native/contract.js';
import { composeAddon, SUBSYSTEMS, type Subsystem } from '../native/subsystems.js';
import { WRITES } from '../native/writes.js';
import { Exporting } from '../observe/traces/exporting.js';
import { KernelCalls } from '../observe/traces/kernel-calls.js';
import { ProcessSpans } from '../observe/traces/process-spans.js';
import { Spans } from '../observe/traces/spans.js';
import type { ProcessTracing } from '../observe/tracing.js';

/** A `TracingConfiguration`. */
interface TracingSettings {
  readonly endpoint: string;
  /** Of so many traces in a million all spans are sent; null: of none that begins here. */
  readonly samplingRatePerMillion: number | null;
}

/** Where a collector on the same node listens. */
const DEFAULT_ENDPOINT = 'localhost:4317';

interface TracingOptions {
  /** A `TracingConfiguration`. */
  readonly file: string;
  readonly config: Pick<Config, 'nodeName' | 'mode'>;
  /** Our own release. */
  readonly version: string;
  readonly addon: NativeAddon;
  readonly log: Log;
  /** How long a collector has to take a batch; only tests have another. */
  readonly exportTimeoutMs?: number;
}

/** Traces of this process, from now on. */
export interface OpenTracing {
  readonly tracing: ProcessTracing;
  /** The same, with its calls seen. */
  readonly addon: NativeAddon;
  /** Within a second, whatever becomes of the last spans. */
  stop(): Promise<void>;
}

/** What the file asks for; why that is not possible when it is not. */
export function openTracing(options: TracingOptions): OpenTracing | { readonly problem: string } {
  const { file, config, version, addon, log, ...limits } = options;
  let settings: TracingSettings;
  try {
    settings = readTracingFile(readTextFileSync(file, MAX_CONFIG_BYTES), (warning) => {
      log.warn(`--tracing-config-file: ${file}: ${warning}`);
    });
  } catch (error) {
    return { problem: `--tracing-config-file: ${file}: ${messageOf(error)}` };
  }
  const resource = {
    'service.name': 'pointsman',
    'service.version': version,
    'service.instance.id': `${hostname()}-${process.pid}`,
    'k8s.node.name': config.nodeName,
  };
  const exporting = new Exporting({ ...settings, ...limits, resource, version, log });
  const spans = new Spans(exporting.tracer);
  const kernel = new KernelCalls(spans, WRITES);
  log.info(1, 'traces', { ...settings });
  if ((settings.samplingRatePerMillion ?? 0) === 0)
    log.warn(
      `--tracing-config-file: ${file}: TracingConfiguration.samplingRatePerMillion: is not above 0, so no trace is sent`,
    );
  const tracing = new ProcessSpans(spans, kernel, exporting, config.mode);
  return {
    tracing,
    addon: composeAddon((name) => kernel.seen(addon[name], functionsOf(name))),
    stop: () => {
      tracing.stop();
      return exporting.stop();
    },
  };
}

/** @throws Error with every problem, each with the path of its field. */
export function readTracingFile(text: string, warn: (problem: string) => void): TracingSettings {
  return readKind(
    text,
    TRACING_KIND,
    (section) => {
      const endpoint = section.text('endpoint') || DEFAULT_ENDPOINT;
      if (endpoint.startsWith('unix-abstract:'))
        section.refuse('endpoint', 'endpoint', 'is a socket without a path, which cannot be reached from here');
      return { endpoint, samplingRatePerMillion: section.number('samplingRatePerMillion') };
    },
    warn,
  );
}

function functionsOf<S extends Subsystem>(name: S): readonly (keyof NativeAddon[S] & string)[] {
  return Object.keys(SUBSYSTEMS[name]) as (keyof NativeAddon[S] & string)[];
}
