import t from 'tap';
import { Interner } from '../../src/sources/translate/intern.js';
import type { Translation } from '../../src/sources/translate/metadata.js';
import { translateService } from '../../src/sources/translate/service.js';
import type { ServiceRow } from '../../src/state/rows.js';
import { serviceObject } from '../support/api-objects.js';

function read(annotations: unknown): Translation<ServiceRow> {
  return translateService(serviceObject('web', {}, { metadata: { name: 'web', annotations } }), new Interner());
}

t.test('annotations set the retry times of attempts', (t) => {
  const reported = (annotations: unknown): unknown => {
    const { row, warnings } = read(annotations);
    return { connect: row?.connectRetry, udp: row?.udpRetry, warnings: warnings.length };
  };
  const [connect, udp] = ['pointsman.dev/connect-retry', 'pointsman.dev/udp-retry'];
  t.same(reported({ [connect]: '2s', [udp]: '60s' }), { connect: 2, udp: 60, warnings: 0 });
  t.same(reported({ [connect]: 'off' }), { connect: 0, udp: null, warnings: 0 });
  for (const value of ['', '0s', '61s', '1', '1.5s', '1m', 'Off', '01s', ' 1s', 5, null, ['1s']])
    t.same(reported({ [connect]: value }), { connect: null, udp: null, warnings: 1 }, JSON.stringify(value));
  t.match(read({ [udp]: '1500ms' }).warnings.map(String), [
    'metadata.annotations[pointsman.dev/udp-retry]: "1500ms": must be "off" or "1s" to "60s", and is ignored',
  ]);
  t.end();
});
