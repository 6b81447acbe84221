import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { deliverAtOnce } from '../../../src/sources/kubernetes/connect/at-once.js';

function source(): Readable {
  return deliverAtOnce(new Readable({ read: () => undefined, highWaterMark: 4 }));
}

t.test('a chunk reaches its listener before push() returns', async (t) => {
  const stream = source();
  const seen: string[] = [];
  stream.on('data', (chunk: Buffer) => seen.push(chunk.toString()));
  await turn();
  t.equal(stream.push(Buffer.from('longer than the mark')), true, 'nothing waits');
  t.same(seen, ['longer than the mark']);
  stream.push(null);
  await once(stream, 'end');
});

t.test('chunks from before the first listener come first', async (t) => {
  const stream = source();
  stream.push(Buffer.from('a'));
  const seen: string[] = [];
  stream.on('data', (chunk: Buffer) => seen.push(chunk.toString()));
  stream.push(Buffer.from('b'));
  t.same(seen, [], 'b does not overtake');
  await turn();
  stream.push(Buffer.from('c'));
  t.equal(seen.join(''), 'abc');
});

t.test('a listener that pauses gets no more chunks, and push() returns false', async (t) => {
  const stream = source();
  const seen: string[] = [];
  stream.on('data', (chunk: Buffer) => {
    seen.push(chunk.toString());
    stream.pause();
  });
  await turn();
  t.equal(stream.push(Buffer.from('a')), true);
  t.equal(stream.push(Buffer.from('much')), false, 'kept, beyond the mark');
  t.same(seen, ['a']);
  stream.resume();
  await turn();
  t.same(seen, ['a', 'much']);
});

t.test('no chunk is lost without a data listener', async (t) => {
  const iterated = source();
  const all = iterated.toArray();
  for (const text of ['a', 'b']) iterated.push(Buffer.from(text));
  iterated.push(null);
  t.equal(Buffer.concat((await all) as Buffer[]).toString(), 'ab');

  const piped = source();
  const target = new PassThrough({ highWaterMark: 1 });
  piped.pipe(target);
  for (const text of ['one', 'two', 'three']) piped.push(Buffer.from(text));
  piped.push(null);
  t.equal(Buffer.concat((await target.toArray()) as Buffer[]).toString(), 'onetwothree');
});
