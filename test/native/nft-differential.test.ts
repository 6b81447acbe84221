// needs: nft
import '../support/namespace.js';

import { spawnSync } from 'node:child_process';
import t from 'tap';
import type { NftFamily, NftTableListing } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { rulesOfNft, rulesOfNftText, rulesOfOurs } from './rules.js';
import type { Rule } from './rules.js';
import { add, commands, setsAsText, setsOfText, skeleton, TABLE } from './skeleton.js';
import type { Command } from './skeleton.js';

const addon = loadAddon().nftables;

function nft(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly out: string; readonly err: string } {
  // nft opens /dev/stdin by name, which a pipe allows and the socket that spawn makes does not.
  const { status, stdout, stderr } = spawnSync('sh', ['-c', 'cat | nft "$@"', 'nft', ...args], {
    input,
    encoding: 'utf8',
  });
  return { status, out: stdout, err: stderr };
}

/** One chain a rule, so that a difference names its rule. */
function chains(family: NftFamily, rules: readonly Rule[]): readonly Command[] {
  return rules.flatMap((expr, index) => [
    add(family, 'chain', { name: `r${index}` }),
    add(family, 'rule', { chain: `r${index}`, expr }),
  ]);
}

function ruleset(family: NftFamily, rules: readonly Rule[]): readonly Command[] {
  return [...skeleton(family), ...setsOfText(family), ...chains(family, rules)];
}

/** Loads with nft: as JSON but for what it takes only as text. Answers what it complained of. */
function loadWithNft(family: NftFamily, rules: readonly Rule[], texts: readonly string[]): string {
  const added = texts.map((text, index) => {
    const chain = `r${rules.length + index}`;
    return `add chain ${family} ${TABLE} ${chain}\nadd rule ${family} ${TABLE} ${chain} ${text}\n`;
  });
  const steps = [
    nft(['-j', '-f', '-'], commands(skeleton(family))),
    nft(['-f', '-'], setsAsText(family)),
    nft(['-j', '-f', '-'], commands(chains(family, rules))),
    nft(['-f', '-'], added.join('')),
  ];
  return steps.map((step) => step.err).join('');
}

interface Seen {
  readonly text: string;
  readonly json: unknown;
  readonly ours: NftTableListing | null;
}

async function see(family: NftFamily): Promise<Seen> {
  const text = nft(['list', 'ruleset']);
  const json = nft(['-j', 'list', 'ruleset']);
  t.equal(text.status, 0, 'nft lists as text', { err: text.err });
  t.equal(json.status, 0, 'nft lists as JSON', { err: json.err });
  const withoutHandles: unknown = JSON.parse(json.out, (key, value: unknown) => (key === 'handle' ? undefined : value));
  const ours = await addon.nftList(family, TABLE, []);
  const gone = nft(['delete', 'table', family, TABLE]);
  t.equal(gone.status, 0);
  return { text: text.out, json: withoutHandles, ours };
}

/** A listing as it was declared: the kernel gives a set that rules write to a size where it has none (nft_dynset_init). */
function asDeclared(listing: NftTableListing | null): NftTableListing | null {
  if (listing === null) return null;
  const declared = (text: string): string => (text.includes('dynamic') ? text.replace(/ size 65535$/, '') : text);
  return { ...listing, sets: listing.sets.map((set) => ({ ...set, declaration: declared(set.declaration) })) };
}

function chainOf(listing: NftTableListing | null, name: string): unknown {
  return listing?.chains.find((chain) => chain.name === name);
}

for (const family of ['ip', 'ip6'] as const) {
  t.test(`${family}: what nft accepts is listed as if nft had loaded it`, async (t) => {
    const texts = rulesOfNftText(family);
    const rules = [...rulesOfNft(family), ...texts.map((each) => each.rule)];
    const commands = ruleset(family, rules);
    const complaints = loadWithNft(
      family,
      rulesOfNft(family),
      texts.map((each) => each.text),
    );
    if (!t.equal(complaints, '', 'nft takes every rule')) return;
    const theirs = await see(family);
    await addon.nftTransact({ family, table: TABLE, operations: [{ type: 'commands', commands }] });
    const ours = await see(family);
    const compiled = addon.nftCompile(family, TABLE, commands);
    for (const [index, rule] of rules.entries()) {
      const name = `r${index}`;
      const shown = JSON.stringify(rule);
      t.strictSame(chainOf(ours.ours, name), chainOf(theirs.ours, name), `lists like nft's: ${shown}`);
      t.strictSame(chainOf(compiled, name), chainOf(ours.ours, name), `compiles to what is listed: ${shown}`);
    }
    t.equal(ours.text, theirs.text, 'same text from nft');
    t.strictSame(ours.json, theirs.json, 'same JSON from nft');
    t.strictSame(ours.ours, theirs.ours, 'same listing of ours');
    t.strictSame(compiled, asDeclared(ours.ours), 'the compiler foretells the listing');
  });

  t.test(`${family}: tables that nft refuses are still listed`, async (t) => {
    const rules = rulesOfOurs(family);
    const commands = ruleset(family, rules);
    await addon.nftTransact({ family, table: TABLE, operations: [{ type: 'commands', commands }] });
    const ours = await see(family);
    const compiled = addon.nftCompile(family, TABLE, commands);
    t.strictSame(compiled, asDeclared(ours.ours), 'the compiler foretells the listing');
    t.match(
      ours.text,
      `dnat ${family} to numgen random mod 4 . ${family} daddr . meta l4proto . th dport map @endpoints`,
    );
    const key = `${family} daddr . meta l4proto . th dport`;
    for (const hashed of [`${family} saddr`, `${family} saddr . th sport`])
      t.match(ours.text, `dnat ${family} to jhash ${hashed} mod 251 seed 0x7 . ${key} map @endpoints`);
    t.match(ours.text, 'update @affinity {');
  });
}
