import t from 'tap';
import { encodeList, encodeObject, encodeWatchEvent } from '../../support/api-server/protobuf.js';
import { fixture, jsonLines, jsonList, jsonObject } from '../../support/api-server/fixtures.js';

t.test('the test encoder writes the bytes that a real server wrote', (t) => {
  for (const kind of ['services', 'endpointslices', 'nodes']) {
    const list = jsonList(fixture(`${kind}.list.json`));
    t.ok(encodeList(list).equals(fixture(`${kind}.list.pb`)), `${kind} list`);
    const events = jsonLines(fixture(`${kind}.watchlist.json`));
    const frames = Buffer.concat(events.map(({ type, object }) => encodeWatchEvent(type, object)));
    t.ok(frames.equals(fixture(`${kind}.watchlist.pb`)), `${kind} watch list`);
  }
  t.ok(encodeList(jsonList(fixture('services.page.json'))).equals(fixture('services.page.pb')), 'a page');
  for (const code of ['400', '401', '403', '404', 'future']) {
    const status = jsonObject(fixture(`error.${code}.json`));
    t.ok(encodeObject(status).equals(fixture(`error.${code}.pb`)), `error ${code}`);
  }
  t.end();
});
