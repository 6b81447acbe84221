import type { RequestObserver } from '../../src/sources/kubernetes/connect/transport.js';

/** Keeps what a connection tells for metrics, a line each. */
export class RecordingObserver implements RequestObserver {
  readonly received: string[] = [];

  answered(method: string, host: string, status: number | null): void {
    this.received.push(`${method} ${host} ${status ?? 'none'}`);
  }

  delayed(method: string, host: string, durationMs: number): void {
    this.received.push(`${method} ${host} delayed ${durationMs > 0}`);
  }

  requestSized(method: string, host: string, bytes: number): void {
    this.received.push(`${method} ${host} sends ${bytes}`);
  }

  responseSized(method: string, host: string, bytes: number): void {
    this.received.push(`${method} ${host} gets ${bytes}`);
  }

  transportCreated(): void {
    this.received.push('transport');
  }

  transportClosed(): void {
    this.received.push('transport closed');
  }

  pluginCalled(outcome: string, exitCode: number): void {
    this.received.push(`plugin ${outcome} ${exitCode}`);
  }

  certificateRotated(expiresAt: number, ageMs: number | null): void {
    const [ahead, age] = [expiresAt > Date.now(), ageMs === null ? 'first' : ageMs >= 0];
    this.received.push(`certificate ahead ${ahead} age ${age}`);
  }
}
