// The addon for a process that lacks a rule, for POINTSMAN_ADDON: what it renders loses every rule that POINTSMAN_LEFT_OUT matches, a regular expression
// for `CHAIN: RULE`; the rule is as iptables-save prints it, or nft's JSON.
'use strict';
const { appendFileSync } = require('node:fs');
const { join } = require('node:path');

const addon = require(join(__dirname, '..', '..', '..', 'build', 'Release', 'pointsman.node'));
const pattern = new RegExp(process.env.POINTSMAN_LEFT_OUT);
const log = process.env.POINTSMAN_LEFT_OUT_LOG;
const isKept = (chain, rule) => {
  if (log !== undefined) appendFileSync(log, `${chain}: ${rule}\n`);
  return !pattern.test(`${chain}: ${rule}`);
};

function keptCommands(commands) {
  return commands.filter(({ add }) => add?.rule === undefined || isKept(add.rule.chain, JSON.stringify(add.rule.expr)));
}

function keptOperations({ operations, ...transaction }) {
  const kept = operations.map((operation) => {
    if (operation.type === 'commands') return { ...operation, commands: keptCommands(operation.commands) };
    if (operation.type !== 'chain') return operation;
    const { chain, rules } = operation;
    return { ...operation, rules: rules.filter(({ type, text }) => type !== 'text' || isKept(chain, text)) };
  });
  return { ...transaction, operations: kept };
}

const { nftables, iptables } = addon;
exports.nftables = {
  ...nftables,
  nftCompile: (family, table, commands) => nftables.nftCompile(family, table, keptCommands(commands)),
  nftTransact: (transaction) => nftables.nftTransact(keptOperations(transaction)),
};
exports.iptables = { ...iptables };
for (const name of ['iptablesEncode', 'iptablesDigests', 'iptablesRestore'])
  exports.iptables[name] = (transaction) => iptables[name](keptOperations(transaction));
for (const name of Object.keys(addon)) exports[name] ??= addon[name];
