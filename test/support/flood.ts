import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

/**
 * Makes connections to a TLS server by the thousand, as a process of its own: some say nothing, some begin a handshake and dawdle, some speak no TLS, some send
 * half a request, some ask without credentials, some for what they may not see. Prints {@link FloodReport} as lines of JSON, every thousand connections and
 * when the last of them has ended.
 */

export interface FloodOptions {
  readonly host: string;
  readonly port: number;
  /** PEM of who vouches for the server. */
  readonly authority: string;
  /** Of somebody who may see metrics and nothing else. */
  readonly token: string;
  readonly count: number;
}

export interface FloodReport {
  /** Connections begun so far. */
  readonly made: number;
  /** How connections ended, by numbers: `closed` without a word of HTTP, or the status they were told; null: not all have. */
  readonly outcomes: Readonly<Record<string, number>> | null;
}

/** At one time, lest this machine's own limits be met. */
const MAX_OPEN = 600;
const AT_ONCE = 25;
const PAUSE_MS = 20;
const REPORT_EVERY = 1000;
const DAWDLE_MS = 1000;
/** A record of TLS that announces half a kilobyte. */
const HELLO_BEGUN = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01];

const options = JSON.parse(process.argv[2] ?? '') as FloodOptions;
const { host, port, authority, token, count } = options;
const outcomes: Record<string, number> = {};
let open = 0;

/** What the other side said until it closed the connection. */
async function outcome(socket: Socket): Promise<string> {
  const broken = ['ECONNRESET', 'EPIPE'];
  let failure = '';
  let reported = '';
  socket.on('error', (error: NodeJS.ErrnoException) => (failure = error.code ?? error.message));
  socket.on('data', (bytes: Buffer) => (reported += bytes.toString('latin1')));
  await new Promise((resolve) => socket.once('close', resolve));
  const isAlert = reported.startsWith('\x15\x03');
  if (reported !== '' && !isAlert)
    return /^HTTP\/1\.1 (\d{3}) /.exec(reported)?.[1] ?? `said ${JSON.stringify(reported.slice(0, 80))}`;
  return failure === '' || broken.includes(failure) ? 'closed' : failure;
}

function silent(): Promise<string> {
  return outcome(connect({ host, port }));
}

function speaksNoTls(): Promise<string> {
  const socket = connect({ host, port });
  socket.write('GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n');
  return outcome(socket);
}

async function dawdles(): Promise<string> {
  const socket = connect({ host, port });
  const bytes = [...HELLO_BEGUN];
  const timer = setInterval(() => socket.write(Buffer.from([bytes.shift() ?? 0])), DAWDLE_MS);
  try {
    return await outcome(socket);
  } finally {
    clearInterval(timer);
  }
}

function asks(text: string): () => Promise<string> {
  return async () => {
    const socket = connectTls({ host, port, ca: authority });
    socket.once('secureConnect', () => socket.write(text));
    return outcome(socket);
  };
}

const head = (path: string, ...lines: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: node', 'Connection: close', ...lines, ''].join('\r\n');

const KINDS: readonly (() => Promise<string>)[] = [
  ...[silent, dawdles, speaksNoTls],
  asks(head('/metrics')),
  asks(`${head('/metrics')}\r\n`),
  asks(`${head('/configz', `Authorization: Bearer ${token}`)}\r\n`),
];

function report(made: number, isOver: boolean): void {
  const line: FloodReport = { made, outcomes: isOver ? outcomes : null };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

for (let made = 0; made < count;) {
  for (let index = 0; index < AT_ONCE && open < MAX_OPEN && made < count; index++) {
    open++;
    void KINDS[made % KINDS.length]?.().then((how) => {
      outcomes[how] = (outcomes[how] ?? 0) + 1;
      open--;
    });
    if (++made % REPORT_EVERY === 0) report(made, false);
  }
  await pause(PAUSE_MS);
}
while (open > 0) await pause(PAUSE_MS);
report(count, true);
