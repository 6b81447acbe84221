import t from 'tap';
import { resolveQuestion } from '../../src/serve/explain-packet.js';
import { Store } from '../../src/state/store.js';
import { address, service, slice } from '../support/rows.js';

const store = new Store();
const writer = store.register('rows');
for (const row of [
  service('web', { clusterIPs: [address('10.96.0.10'), address('fd00:10:96::10')] }),
  service('six', { clusterIPs: [address('fd00:10:96::11')] }),
  slice('web', [{ address: 'fd00:244::2', pod: 'web-b' }], { name: 'web-6' }),
  slice('web', [
    { address: '10.244.1.1', pod: 'web-a' },
    { address: '10.244.1.2', pod: 'web-b' },
    { address: '10.244.1.3', pod: 'node' },
    { address: '10.244.1.4' },
  ]),
  slice('db', [{ address: '10.244.1.5', pod: 'db-0' }]),
  slice('db', [{ address: '10.244.1.6', pod: 'db-0' }], { namespace: 'shop' }),
  slice('six', [{ address: 'fd00:244::7', pod: 'six-0-of-a-very-long-name' }]),
])
  writer.apply([{ type: 'upsert', row }]);
writer.complete();
const senderOf = (from: string, to = '10.96.0.10:80') => resolveQuestion(store.snapshot, from, to).sender;
const from = (text: string) => ({ type: 'address', address: address(text), interface: null });

t.test('explain takes the name of a pod as the sender', (t) => {
  t.same(senderOf('web-a'), from('10.244.1.1'));
  t.same(senderOf('default/web-b'), from('10.244.1.2'));
  t.same(senderOf('web-b', '[fd00:10:96::10]:80'), from('fd00:244::2'), 'its address of the family');
  t.match(resolveQuestion(store.snapshot, 'web-b', 'web'), { destination: '10.96.0.10' }, 'IPv4 first');
  t.same(senderOf('web-b', 'svc/six'), from('fd00:244::2'), 'the family of the Service');
  t.match(resolveQuestion(store.snapshot, 'six-0-of-a-very-long-name', 'web'), { destination: 'fd00:10:96::10' });
  t.same(senderOf('shop/db-0'), from('10.244.1.6'));
  t.end();
});

t.test('explain does not take other senders for pods', (t) => {
  t.same(senderOf('node'), { type: 'node' }, 'although a pod has this name');
  t.same(senderOf('web-c'), { type: 'interface', name: 'web-c' });
  t.same(senderOf('10.244.1.1'), from('10.244.1.1'));
  t.throws(() => senderOf('db-0'), { name: 'QuestionError', message: /^--from: which of default\/db-0, shop\/db-0$/ });
  t.throws(() => senderOf('other/web-a'), { message: /a pod among the endpoints/ });
  t.throws(() => senderOf('web-a', '[fd00:10:96::10]:80'), { message: /different families/ });
  t.end();
});
