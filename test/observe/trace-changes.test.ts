import { TraceFlags, type Span, type Tracer } from '@opentelemetry/api';
import t from 'tap';
import { Changes } from '../../src/observe/traces/changes.js';
import { Spans } from '../../src/observe/traces/spans.js';
import { service } from '../support/rows.js';

/** Spans that are all sampled, or none; what was read of the objects that were heard of is counted. */
function scene(sampled: boolean): {
  readonly changes: Changes;
  readonly reads: () => number;
  readonly run: (count: number) => void;
  readonly attributes: unknown[];
  /** How many spans have ended. */
  readonly ended: () => number;
} {
  let reads = 0;
  let ended = 0;
  const attributes: unknown[] = [];
  const span = (): Span => {
    const made: Partial<Span> = {
      spanContext: () => ({ traceId: '1', spanId: '1', traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE }),
      setAttributes: (given) => {
        attributes.push(given);
        return made as Span;
      },
      end: () => {
        ended++;
      },
    };
    return made as Span;
  };
  const changes = new Changes(new Spans({ startSpan: span } as unknown as Tracer));
  const run = (count: number): void => {
    const rows = Array.from({ length: count }, (_, index) => service(`s${index}`));
    const received = rows.map(({ name }) => ({
      get kind() {
        reads++;
        return 'Service' as const;
      },
      namespace: 'default',
      name,
      resourceVersion: '7',
      type: 'ADDED' as const,
    }));
    changes.committing(received, () => {
      const edits = rows.map((after) => ({ before: null, after }));
      changes.committed({ edits, receivedAt: null, ready: true, families: ['IPv4'] });
    });
  };
  return { changes, reads: () => reads, run, attributes, ended: () => ended };
}

t.test('tracing the changes of one turn has linear cost, and unsampled ones cost nothing', (t) => {
  const unsampled = scene(false);
  unsampled.run(20_000);
  t.equal(unsampled.reads(), 0);
  t.equal(unsampled.changes.take().count, 20_000);
  const sampled = scene(true);
  sampled.run(5000);
  t.ok(sampled.reads() <= 2 * 5000, `${sampled.reads()} reads`);
  t.equal(sampled.attributes.length, 1000, 'so many are followed');
  t.match(sampled.attributes.at(-1), { 'k8s.object.name': 's999', 'k8s.object.resource_version': '7' });
  t.end();
});

t.test('the trace of a change left to a later run ends with that', (t) => {
  const { changes, run, ended } = scene(true);
  run(2);
  const first = changes.take();
  const before = ended();
  changes.deferred('IPv4', new Set(['default/s1']));
  changes.arrived(first.followed, 'IPv4');
  t.equal(ended() - before, 1);
  const second = changes.take();
  t.equal(second.followed.length, 1);
  changes.arrived(second.followed, 'IPv4');
  t.equal(ended() - before, 2);
  t.equal(changes.take().followed.length, 0);
  t.end();
});
