import type { Counter, Registry } from 'prom-client';
import type { Host } from '../host/host.js';
import { Definitions } from './instruments.js';

/** The metrics of a process under the names that every Prometheus client library uses. */
export class ProcessInstruments extends Definitions {
  private readonly cpu = this.counter('cpu_seconds_total', 'User and system CPU time.');
  private readonly resident = this.gauge('resident_memory_bytes', 'Resident memory.');
  private readonly virtual = this.gauge('virtual_memory_bytes', 'Virtual memory.');
  private readonly maxVirtual = this.gauge('virtual_memory_max_bytes', 'Limit of virtual memory; -1 for none.');
  private readonly start = this.gauge('start_time_seconds', 'Start of the process.');
  private readonly openFiles = this.gauge('open_fds', 'Open file descriptors.');
  private readonly maxFiles = this.gauge('max_fds', 'Limit of open file descriptors.');
  private readonly received = this.counter('network_receive_bytes_total', 'IPv4 bytes received in its network.');
  private readonly sent = this.counter('network_transmit_bytes_total', 'IPv4 bytes sent in its network.');

  constructor(
    registry: Registry,
    private readonly host: Pick<Host, 'processUsage'>,
  ) {
    super(registry, 'process_', '');
    this.start.set(performance.timeOrigin / 1000);
  }

  /** Takes what the system says now. */
  update(): void {
    const { user, system } = process.cpuUsage();
    setTotal(this.cpu, (user + system) / 1e6);
    this.resident.set(process.memoryUsage.rss());
    const usage = this.host.processUsage();
    this.virtual.set(usage.virtualMemory);
    this.maxVirtual.set(usage.virtualMemoryLimit);
    this.openFiles.set(usage.openFiles);
    this.maxFiles.set(usage.openFilesLimit);
    setTotal(this.received, usage.received);
    setTotal(this.sent, usage.sent);
  }
}

/** What stands here for a Go program's `go_…`: the runtime's metrics, under the names that Prometheus' client library for Node.js gives them. */
export class RuntimeInstruments extends Definitions {
  private readonly version = this.gauge('version_info', 'Always 1; the labels are the version of Node.js.', [
    'version',
    'major',
    'minor',
    'patch',
  ]);
  private readonly heap = this.gauge('heap_size_total_bytes', 'Size of the JavaScript heap.');
  private readonly heapUsed = this.gauge('heap_size_used_bytes', 'JavaScript heap in use.');
  private readonly external = this.gauge(
    'external_memory_bytes',
    'Memory outside of the heap, held by JavaScript objects.',
  );
  private readonly resources = this.gauge('active_resources_total', 'Sockets, timers and requests under way.');

  constructor(registry: Registry) {
    super(registry, 'nodejs_', '');
    const [major = '', minor = '', patch = ''] = process.versions.node.split('.');
    this.version.set({ version: process.version, major, minor, patch }, 1);
  }

  /** Takes what the runtime says now. */
  update(): void {
    const { heapTotal, heapUsed, external } = process.memoryUsage();
    this.heap.set(heapTotal);
    this.heapUsed.set(heapUsed);
    this.external.set(external);
    this.resources.set(process.getActiveResourcesInfo().length);
  }
}

/** Of a counter that others count. */
function setTotal(counter: Counter, value: number): void {
  counter.reset();
  counter.inc(value);
}
