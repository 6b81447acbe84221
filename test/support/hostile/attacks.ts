import { once } from 'node:events';
import { projectFile } from '../lab/agent.js';
import type { Lab } from '../lab/lab.js';
import { ADDRESSES } from '../lab/topology.js';

/** What clients do to a node: resolves once it is under way, to what ends it. */
export type Attack = (lab: Lab) => Promise<() => Promise<void>>;

/** The addresses of a flood: more than a Service port remembers, and fewer than conntrack has entries. */
const FLOODING = 70_000;
const FLOODING_AT_ONCE = 10_000;

/** SYNs to a Service from forged addresses, from each again and again. */
export function flood(address: string, port: number): Attack {
  return (lab) => {
    const stopper = new AbortController();
    const script = projectFile('test/support/lab/crowd.py');
    const flooding = (async () => {
      for (let start = 0; !stopper.signal.aborted; start = (start + FLOODING_AT_ONCE) % FLOODING) {
        const first = `11.${start >> 16}.${(start >> 8) & 255}.${start & 255}`;
        const words = [address, String(port), first, String(FLOODING_AT_ONCE), 'TCP'];
        await lab.output('client', ['python3', '-B', script, ...words]);
      }
    })();
    return Promise.resolve(() => {
      stopper.abort();
      return flooding;
    });
  };
}

/**
 * Connections to the health address, so many a second, each with this text. The last 200 stay open.
 *
 * @param from addresses that they come from, in turn; none: the client's own.
 */
function connections(text: string, aSecond: number, from: readonly string[] = []): Attack {
  return async (lab) => {
    const script = projectFile('test/support/lab/callers.py');
    const child = lab.spawn('client', ['python3', '-B', script, ADDRESSES.node.IPv4, '10256', `${aSecond}`, ...from]);
    child.stdin.on('error', () => undefined).end(text);
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (more: string) => (said += more));
    const ended = once(child, 'close');
    await Promise.race([once(child.stdout, 'data'), ended]);
    return async () => {
      if (child.exitCode !== null) throw new Error(`the attack ended by itself: ${said}`);
      child.kill('SIGKILL');
      await ended;
    };
  };
}

/** 2,600 requests in a connection, 20 connections a second. */
export const PIPELINED = connections('GET / HTTP/1.1\r\nHost:\r\n\r\n'.repeat(2600), 20);

/** One request in a connection, which then stays: 100 a second, from 20 addresses of the client's network. */
export const NEWCOMERS = connections(
  'GET /livez HTTP/1.1\r\nHost: node\r\n\r\n',
  100,
  Array.from({ length: 20 }, (_, index) => ADDRESSES.client.IPv4.replace(/\d+$/, `${50 + index}`)),
);
