import type { Flag } from '../config/flag.js';
import { OWN_VERSION } from '../config/version.js';
import type { CommandSpec } from './command.js';
import { flagGroups } from './groups.js';
import { describeFlag, flagNames, sentence } from './help.js';
import { synopsis } from './usage.js';

/** A page for man(1) about a command. */
export function printManPage(spec: CommandSpec): string {
  const { name, summary, about, examples, flags, proxyFlags, exits } = spec;
  return [
    heading(`POINTSMAN-${name.toUpperCase()}`),
    '.SH NAME',
    roff(`pointsman-${name} - ${summary}`),
    '.SH SYNOPSIS',
    roff(synopsis(spec)),
    '.SH DESCRIPTION',
    roff(sentence(summary)),
    ...about.flatMap((paragraph) => ['.PP', roff(paragraph)]),
    '.SH EXAMPLES',
    ...examples.flatMap(({ line, says }) => ['.TP', `.B ${roff(line)}`, roff(says)]),
    ...(flags.length === 0 ? [] : ['.SH OPTIONS', ...flags.flatMap(option)]),
    ...(proxyFlags === null
      ? []
      : [
          '.SH OPTIONS OF THE PROXY',
          roff('They mean here what they mean to the proxy:'),
          ...proxyFlags.taken.flatMap(option),
        ]),
    '.SH EXIT STATUS',
    ...([0, 1, 2] as const).flatMap((status) => {
      const means = exits[status];
      return means === null ? [] : ['.TP', String(status), roff(means)];
    }),
    ...seeAlso('pointsman(1)'),
  ].join('\n');
}

/** The page about the proxy. */
export function printProxyManPage(commands: readonly CommandSpec[]): string {
  return [
    heading('POINTSMAN'),
    '.SH NAME',
    roff('pointsman - node service proxy for Kubernetes'),
    '.SH SYNOPSIS',
    roff('pointsman [flags]'),
    '.br',
    roff('pointsman COMMAND [flags]'),
    '.SH COMMANDS',
    ...commands.flatMap(({ name, summary }) => ['.TP', `.B ${roff(name)}`, roff(summary)]),
    '.SH OPTIONS',
    ...flagGroups().flatMap(({ title, flags }) => [`.SS ${roff(title)}`, ...flags.flatMap(option)]),
    '.SH EXIT STATUS',
    roff('0 when a signal ends it, 1 when it cannot go on or the command line is wrong.'),
    ...seeAlso(...commands.map(({ name }) => `pointsman-${name}(1)`)),
  ].join('\n');
}

function heading(title: string): string {
  return `.TH ${title} 1 "" "pointsman ${OWN_VERSION}" "pointsman"`;
}

function seeAlso(...pages: readonly string[]): readonly string[] {
  return ['.SH SEE ALSO', roff(pages.join(', ')), ''];
}

function option(flag: Flag): readonly string[] {
  return ['.TP', `.B ${roff(flagNames(flag).trim())}`, roff(describeFlag(flag))];
}

/** Text as troff(1) prints it unchanged. */
function roff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&');
  // groff reads no UTF-8 by itself.
  return escaped.replace(/[\u0080-\uffff]/g, (character) => `\\[u${hexadecimal(character)}]`);
}

function hexadecimal(character: string): string {
  return character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
}
