import Registry from 'prom-client/lib/registry.js';
import { LINUX_MODES, WINDOWS_MODES } from '../../src/config/effective.js';
import { listenerMetrics, modeDefinition } from '../../src/dataplane/modes.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { CertificateMetrics } from '../../src/observe/certificate-metrics.js';
import { AccessMetrics } from '../../src/observe/access-metrics.js';
import {
  ComponentInstruments,
  ModeInstruments,
  OwnInstruments,
  ProxyInstruments,
} from '../../src/observe/instruments.js';
import { ListenerMetrics } from '../../src/observe/listener-metrics.js';
import { ProcessInstruments, RuntimeInstruments } from '../../src/observe/process-metrics.js';
import { SpanMetrics } from '../../src/observe/span-metrics.js';

interface Defined {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** What a part of the program registers. */
function defined(register: (registry: Registry) => unknown): readonly Defined[] {
  const registry = new Registry();
  register(registry);
  // Objects of prom-client carry their labels and their class, which its types do not say.
  const metrics = registry.getMetricsAsArray() as unknown as readonly (Defined & object)[];
  return metrics.map(({ name, help, labelNames, constructor }) => ({
    name,
    help,
    labelNames: [...labelNames].sort(),
    type: constructor.name.toLowerCase(),
  }));
}

const health = { certificate: null } as unknown as ConstructorParameters<typeof CertificateMetrics>[1];

const SECTIONS: Readonly<Record<string, readonly Defined[]>> = {
  'kube-proxy': defined((registry) => new ProxyInstruments(registry)),
  ...Object.fromEntries(
    [...LINUX_MODES, ...WINDOWS_MODES].map((mode) => [
      `Mode ${mode}`,
      defined((registry) => {
        const { metrics } = modeDefinition(mode);
        const instruments = new ModeInstruments(registry, metrics);
        instruments.setCounts(Object.fromEntries(metrics.counted.map(({ name }) => [name, 0])));
      }),
    ]),
  ),
  'Node ports on loopback': defined((registry) => new ListenerMetrics(registry, listenerMetrics()!)),
  'Any Kubernetes component': defined((registry) => new ComponentInstruments(registry)),
  'This program': defined((registry) => {
    const own = new OwnInstruments(registry);
    own.setFlowTable({ entries: 0, limit: 1 });
  }),
  'Secured metrics address': defined((registry) => new AccessMetrics(registry)),
  'Client certificate': defined((registry) => new CertificateMetrics(registry, health)),
  Tracing: defined((registry) => new SpanMetrics(registry)),
  Process: [
    ...defined((registry) => new ProcessInstruments(registry, LINUX_HOST)),
    ...defined((registry) => new RuntimeInstruments(registry)),
  ],
};

function row({ name, type, labelNames, help }: Defined): string {
  return `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(', ')} | ${help.replace(/^\[[A-Z]+\] /, '')} |`;
}

/** The rows of each section of the page, by its title. */
export function metricRows(): ReadonlyMap<string, readonly string[]> {
  return new Map(Object.entries(SECTIONS).map(([title, metrics]) => [title, metrics.map(row)]));
}
