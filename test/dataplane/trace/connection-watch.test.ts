// When all is known of a traced connection, on a machine that is busy meanwhile.
import t from 'tap';
import { ConnectionWatch } from '../../../src/dataplane/trace/connection-watch.js';
import { PassageReader } from '../../../src/dataplane/trace/passage.js';
import { chainOf } from '../../../src/dataplane/trace/table.js';
import type { NftTraceEvent } from '../../../src/native/contract.js';

const OWN = 'trace';
const network = Uint8Array.of(0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 96, 0, 41);
const transport = Uint8Array.of(0x80, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0);

function event(chain: string, rest: Partial<NftTraceEvent> = {}): NftTraceEvent {
  return {
    id: 7,
    type: 'rule',
    family: 'ip',
    table: OWN,
    chain,
    handle: null,
    verdict: null,
    network,
    transport,
    input: 'eth0',
    output: null,
    ...rest,
  };
}

const begun = event(chainOf.begin('prerouting'), { handle: 3 });
const dropped = event('wall', { table: 'others', handle: 9, verdict: 'drop' });

function blockFor(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

t.test('trace reads queued events before it calls a packet lost', async (t) => {
  const watch = new ConnectionWatch(new PassageReader(OWN, () => null), OWN);
  t.teardown(() => {
    watch.close();
  });
  watch.read([begun]);
  const next = watch.next(10_000);
  // The timer of the watch is over when the process goes on, and the reports of the kernel are there as well.
  setImmediate(() => {
    watch.read([dropped]);
  });
  blockFor(1000);
  const packets = await next;
  t.equal(packets?.request.steps.at(-1)?.verdict, 'drop');
});

t.test('trace waits longer for a packet whose end is unknown', async (t) => {
  const reported: string[] = [];
  const follow = async (what: string, ...events: readonly NftTraceEvent[]): Promise<void> => {
    const watch = new ConnectionWatch(new PassageReader(OWN, () => null), OWN);
    watch.read(events);
    await watch.next(10_000);
    watch.close();
    reported.push(what);
  };
  await Promise.all([follow('no end', begun), follow('dropped', begun, dropped)]);
  t.strictSame(reported, ['dropped', 'no end']);
});
