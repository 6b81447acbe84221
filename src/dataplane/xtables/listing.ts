import type { IptablesChainListing } from '../../native/contract.js';

/** One rule of a listing by its parts; what is not there is null. */
export interface ParsedRule {
  readonly source: string | null;
  readonly destination: string | null;
  readonly protocol: string | null;
  /** `80`, or `30016:30079`. */
  readonly port: string | null;
  /** The original destination in conntrack: the address and port that the connection was sent to. */
  readonly originalDestination: string | null;
  readonly originalPort: string | null;
  readonly comment: string | null;
  readonly target: string | null;
  /** `10.244.1.10:80`. */
  readonly translation: string | null;
  /** The timeout policy that new flows get. */
  readonly timeout: string | null;
  /** How long clients are remembered. */
  readonly seconds: string | null;
  /** Whether it is for all packets that come to it: there is nothing but a target and perhaps a comment. */
  readonly unconditional: boolean;
}

const PLAIN: readonly string[] = ['-j', '-m', '--comment', '--to-destination', '--reject-with'];

/** Reads the parts that our rules, and kube-proxy's, are made of. A negated part counts as a condition without a value. */
export function parseRule(text: string): ParsedRule {
  const words = text.match(/"(?:[^"\\]|\\[^]?)*"?|\S+/g) ?? [];
  const options = new Map<string, string>();
  let unconditional = true;
  for (const [index, word] of words.entries()) {
    if (!word.startsWith('-')) continue;
    const module = word === '-m' && words[index + 1] !== 'comment';
    if (!PLAIN.includes(word) || module) unconditional = false;
    if (words[index - 1] !== '!') options.set(word, (words[index + 1] ?? '').replace(/^"|"$/g, ''));
  }
  const option = (name: string): string | null => options.get(name) ?? null;
  return {
    source: option('-s'),
    destination: option('-d'),
    protocol: option('-p'),
    port: option('--dport'),
    originalDestination: option('--ctorigdst'),
    originalPort: option('--ctorigdstport'),
    comment: option('--comment'),
    target: option('-j'),
    translation: option('--to-destination'),
    timeout: option('--timeout'),
    seconds: option('--seconds'),
    unconditional,
  };
}

/** Rules of listed chains by table and name; none for chains without text. */
export class ListedRules {
  private readonly chains: ReadonlyMap<string, readonly string[]>;

  constructor(listing: readonly IptablesChainListing[]) {
    this.chains = new Map(listing.map(({ table, name, rules }) => [`${table} ${name}`, rules ?? []]));
  }

  of(table: IptablesChainListing['table'], chain: string): readonly ParsedRule[] {
    return (this.chains.get(`${table} ${chain}`) ?? []).map(parseRule);
  }
}
