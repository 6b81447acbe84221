import t from 'tap';
import { services } from '../../src/cli/services.js';
import { serveStatusSocket } from '../support/status-socket.js';

const KEYS = Array.from({ length: 3 }, (_, number) => `default/s${number}`);

t.test('services asks for all rows at once, and for the others where an answer has fewer', async (t) => {
  const asked: string[] = [];
  let most = Infinity;
  const statusSocket = await serveStatusSocket(t, ({ url = '' }, response) => {
    const { searchParams } = new URL(url, 'http://socket');
    asked.push(`${searchParams.get('offset')} ${searchParams.get('limit')} ${searchParams.get('places')}`);
    const offset = Number(searchParams.get('offset'));
    const rows = KEYS.slice(offset, offset + most).map((key) => ({
      key,
      name: key,
      addresses: [],
      ports: [],
      problems: [],
      endpointsUsed: 0,
      endpoints: 0,
      moreAddresses: 0,
      morePorts: 0,
    }));
    response.end(JSON.stringify({ total: 3, matched: 3, offset, rows }));
  });
  const list = async (limit: number): Promise<string> => {
    let text = '';
    const question = { config: { statusSocket }, named: '', problemsOnly: false, watch: false, output: 'wide', limit };
    const status = await services(question as Parameters<typeof services>[0], {
      isTerminal: false,
      write: (part) => {
        text += part;
        return Promise.resolve();
      },
    });
    t.equal(status, 0);
    return text;
  };
  const text = await list(0);
  for (const key of KEYS) t.match(text, key);
  t.same(asked.splice(0), ['0 10000 yes']);
  most = 2;
  t.equal(await list(0), text);
  t.same(asked.splice(0), ['0 10000 yes', '2 10000 yes']);
  t.match(await list(2), /^and 1 more; --limit 0 lists all$/m);
  t.same(asked.splice(0), ['0 2 yes']);
});
