import { type RequestListener } from 'node:http';
import t, { type Test } from 'tap';
import { ask, hold } from '../../src/cli/ask.js';
import { AskError } from '../../src/cli/ask-error.js';
import { serveStatusSocket } from '../support/status-socket.js';

/** Why a question has no answer. */
async function refusal(t: Test, answer: RequestListener, patienceMs?: number, isOurs = false): Promise<string> {
  try {
    await ask(await serveStatusSocket(t, answer, isOurs), '/status', patienceMs);
  } catch (error) {
    t.type(error, AskError);
    return (error as AskError).message;
  }
  return 'answered';
}

t.test('a process that hangs or is stopped is reported, at the beginning of an answer and within it', async (t) => {
  t.match(
    await refusal(t, () => undefined, 50),
    /^no answer on --status-socket \S+: silent for 0\.05 s: the process hangs/,
  );
  const partly: RequestListener = (_request, response) => {
    response.writeHead(200, { 'Content-Length': 10 }).write('four');
  };
  t.match(await refusal(t, partly, 50, true), /^no answer on --status-socket \S+: /);
});

t.test('an answer of another program is not taken for one of the process', async (t) => {
  const ours = /^no answer on --status-socket \S+: another program answers there, not pointsman$/;
  t.match(await refusal(t, (_request, response) => void response.end('hello')), ours, 'a server of HTTP');
  t.match(await refusal(t, (_request, response) => void response.writeHead(404).end('no such container')), ours);
  t.match(await refusal(t, ({ socket }) => void socket.end('220 mail\r\n')), ours, 'one of another protocol');
});

t.test('an answer that is held open may be silent', async (t) => {
  const socket = await serveStatusSocket(t, (_request, response) => {
    response.writeHead(200).write('{}\n');
  });
  const held = await hold(socket, '/selftest');
  t.equal(held.text, '{}');
  held.release();
});
