import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { shut } from '../../src/serve/listener.js';
import { SERVER_NAME } from '../../src/serve/well.js';

/** Answers on a status socket, as a running process does if `isOurs`. Returns its path, which is short, as that of a socket has to be. */
export async function serveStatusSocket(t: Test, answer: RequestListener, isOurs = true): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-socket-'));
  const path = join(folder, 'sock');
  const server = createServer((request, response) => {
    if (isOurs) response.setHeader('Server', SERVER_NAME);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(async () => {
    await shut(server);
    rmSync(folder, { recursive: true });
  });
  return path;
}
