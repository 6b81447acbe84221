import { proxyCommand } from './definition.js';
import { OUTPUT, readOutput } from './shared-flags.js';

const READS_MANIFESTS = 'it is printed';
const NOT_USED = 'part of the input is wrong and was left out';
const CANNOT = 'unknown: the command line or the configuration is wrong';

export const DIFF = proxyCommand({
  name: 'diff',
  summary: 'print what a start would change on this node, and change nothing',
  operands: '',
  about: [],
  examples: [
    { line: 'pointsman diff --config config.conf', says: 'with the objects of the API server' },
    { line: 'pointsman diff --manifests objects/ -o json', says: 'with manifests, as JSON' },
  ],
  exits: { 0: 'nothing would change', 1: 'something would', 2: 'unknown' },
  flags: [OUTPUT],
  needs: 'configuration',
  operand: 'none',
  prepare: (given, { config, version }) => {
    const output = readOutput(given);
    return async (parts) => {
      const { diff } = await import('../cli/diff.js');
      const { printOutput } = await import('../cli/commands.js');
      const found = await diff(config, version, await parts.machine(), parts.log, output);
      const exit = await printOutput(found, parts);
      // As diff(1): whether something would change is unknown after an error.
      return found.errors.length > 0 ? 2 : exit;
    };
  },
});

export const PLAN = proxyCommand({
  name: 'plan',
  summary: 'print the forwarding table of this node, one fact a line',
  operands: '',
  about: ['Computed from manifests and configuration. It needs no privileges and does not read the kernel.'],
  examples: [
    { line: 'pointsman plan --config config.conf --manifests objects/', says: 'as text' },
    { line: 'pointsman plan -o json --manifests objects/', says: 'as a list of facts for jq(1)' },
  ],
  exits: { 0: READS_MANIFESTS, 1: NOT_USED, 2: CANNOT },
  flags: [OUTPUT],
  needs: 'manifests',
  operand: 'none',
  prepare: (given, { config }) => {
    const output = readOutput(given);
    return async (parts) => {
      const { plan, printOutput } = await import('../cli/commands.js');
      return await printOutput(await plan(config, output), parts);
    };
  },
});

export const DUMP = proxyCommand({
  name: 'dump',
  summary: 'print what the kernel holds, in the terms of plan',
  operands: '',
  about: [],
  examples: [
    { line: 'pointsman dump --config config.conf', says: 'all that is programmed' },
    {
      line: 'diff <(pointsman plan …) <(pointsman dump …)',
      says: 'empty when the kernel holds the plan',
    },
  ],
  exits: {
    0: READS_MANIFESTS,
    1: NOT_USED,
    2: 'unknown: the kernel could not be read, or the command line is wrong',
  },
  flags: [OUTPUT],
  needs: 'configuration',
  operand: 'none',
  prepare: (given, { config }) => {
    const output = readOutput(given);
    return async (parts) => {
      const { dump, printOutput } = await import('../cli/commands.js');
      return await printOutput(await dump(config, await parts.machine(), parts.log, output), parts);
    };
  },
});

export const RENDER = proxyCommand({
  name: 'render',
  summary: 'print the ruleset of this node, as nftables JSON or as iptables-restore takes it',
  operands: '',
  about: ['It needs no privileges.'],
  examples: [{ line: 'pointsman render --mode nftables --manifests objects/', says: 'the tables of mode nftables' }],
  exits: { 0: READS_MANIFESTS, 1: NOT_USED, 2: CANNOT },
  flags: [],
  needs: 'manifests',
  operand: 'none',
  prepare: (_given, { config }) => {
    return async (parts) => {
      const { printOutput, render } = await import('../cli/commands.js');
      return await printOutput(await render(config, await parts.machine()), parts);
    };
  },
});
