// needs: nft
import type { Test } from 'tap';
import type { Lab } from './lab.js';
import { PREFIXES } from './topology.js';

const TABLE = 'passage';

interface Listing {
  readonly nftables: readonly { readonly counter?: { readonly name: string; readonly packets: number } }[];
}

/** What begins a connection, and datagrams that ask: servers answer from port 80, which no client has. */
const ASKING = ['tcp flags & (syn | ack) == syn', 'udp sport != 80'] as const;

/**
 * Counts the packets that ask Services, by rules of its own: where they come into the node, and where those to endpoints leave it. What the node loses on the
 * way shows nowhere else, as TCP sends it again.
 */
export class Passage {
  readonly #lab: Lab;

  private constructor(lab: Lab) {
    this.#lab = lab;
  }

  /** @param nodePorts at which Services are asked, beside port 80 of their addresses; endpoints are pods and listen on port 80. */
  static async watch(lab: Lab, nodePorts: readonly number[]): Promise<Passage> {
    const rules = (counter: string, ports: readonly number[], to: '' | '!= '): string =>
      [`ip daddr ${to}${PREFIXES.pods.IPv4}`, `ip6 daddr ${to}${PREFIXES.pods.IPv6}`]
        .flatMap((where) =>
          ASKING.map((what) => `${where} ${what} th dport { ${ports.join()} } counter name ${counter}`),
        )
        .join('\n');
    const chain = (hook: string, priority: number, body: string): string =>
      `chain ${hook} { type filter hook ${hook} priority ${priority}\n${body}\n}`;
    const came = rules('came', [80, ...nodePorts], '!= ');
    const table = [
      'counter came {}\ncounter went {}',
      // Before anything is translated, and after everything is.
      chain('prerouting', -350, came),
      chain('output', -350, came),
      chain('postrouting', 350, rules('went', [80], '')),
    ];
    await lab.output('node', ['nft', '-f', '-'], `table inet ${TABLE} {\n${table.join('\n')}\n}\n`);
    return new Passage(lab);
  }

  /** What came and what went since the last call. */
  async counted(): Promise<{ readonly came: number; readonly went: number }> {
    const words = ['nft', '-j', 'reset', 'counters', 'table', 'inet', TABLE];
    const { nftables } = JSON.parse(await this.#lab.output('node', words)) as Listing;
    const packets = (name: string): number =>
      nftables.find(({ counter }) => counter?.name === name)?.counter?.packets ?? 0;
    return { came: packets('came'), went: packets('went') };
  }

  /** That everything since the last call went to some endpoint. The traffic has to have ended. */
  async complete(t: Test, atLeast: number): Promise<void> {
    const { came, went } = await this.counted();
    t.ok(came >= atLeast, `${came} packets asked in ${atLeast} requests`);
    t.equal(went, came, 'each of them went to an endpoint');
  }
}
