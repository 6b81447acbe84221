import t, { type Test } from 'tap';
import { top, type TopRow } from '../../src/cli/top.js';
import { serveStatusSocket } from '../support/status-socket.js';

interface Answer {
  readonly at: number;
  /** Connections to the only Service; null: there is none. */
  readonly connections: number | null;
}

/** What top prints of a process that answers these, the last one again and again. */
async function printed(t: Test, answers: readonly Answer[], count: number): Promise<readonly unknown[]> {
  const rest = [...answers];
  const statusSocket = await serveStatusSocket(t, (_request, response) => {
    const { at, connections } = (rest.length > 1 ? rest.shift() : rest[0]) ?? { at: 0, connections: null };
    const port = { service: 'default/web', port: 'http', protocol: 'TCP', endpoints: [], refused: [] };
    const bytes = { requestBytes: 0, replyBytes: 0 };
    response.end(JSON.stringify({ at, services: connections === null ? [] : [{ ...port, ...bytes, connections }] }));
  });
  const tables: unknown[] = [];
  const asked = { command: 'top', seconds: 0, count, sort: 'connections', endpoints: false, limit: 20, output: 'json' };
  await top({ ...asked, config: { statusSocket } } as unknown as Parameters<typeof top>[0], {
    isTerminal: false,
    write: (text) => {
      tables.push((JSON.parse(text) as readonly TopRow[]).map(({ connections }) => connections));
      return Promise.resolve();
    },
  });
  return tables;
}

t.test('top divides by the time between two readings of the counts, however often it asks', async (t) => {
  const readings = [
    { at: 1000, connections: 0 },
    { at: 1000, connections: 0 },
    { at: 5000, connections: 40 },
    { at: 5000, connections: 40 },
    { at: 5000, connections: 40 },
    { at: 9000, connections: 80 },
  ];
  t.same(await printed(t, readings, 2), [[10], [10]], 'no table without traffic, and none with twice as much');
});

t.test('top goes on with a process that was started meanwhile', async (t) => {
  const readings = [
    { at: 50_000, connections: 900 },
    { at: 1000, connections: 5 },
    { at: 3000, connections: 25 },
  ];
  t.same(await printed(t, readings, 1), [[10]]);
});

t.test('top prints an empty table if there are no Services, for which nothing is read', async (t) => {
  t.same(await printed(t, [{ at: 0, connections: null }], 2), [[], []]);
});
