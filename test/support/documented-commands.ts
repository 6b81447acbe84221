import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from './lab/agent.js';

const ROOT = projectFile('.');

/** What runs a command line of the documentation: a line that begins with another word is output, or a file. */
const PROGRAMS =
  /^(?:pointsman|kubectl|npm|npx|node|sh|curl|helm|docker|ctr|skopeo|cosign|openssl|systemctl|iptables-save|ip|grep|cmp|sha256sum|base64)$/;

export interface DocumentedCommand {
  readonly at: string;
  /** A line of a code block. In a sentence a command may be named without its last word. */
  readonly isWhole: boolean;
  readonly words: readonly string[];
}

/** Commands of a line, without prompt, comment, redirected output and the brackets of what is optional. */
function commandsOf(at: string, line: string, isWhole: boolean): readonly DocumentedCommand[] {
  return line
    .replace(/^\s*(?:\d+\. )?\$ /, '')
    .replace(/(?:^|\s)# .*$/, '')
    .replaceAll(/\s>\s\S+/g, '')
    .replaceAll(/<(?!\()[^>]*>/g, 'VALUE')
    .split(/\s(?:\||&&|--(?= pointsman))\s|[()]/)
    .map((part) => [...part.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word))
    .filter(([program = '']) => PROGRAMS.test(program))
    .map((words) => ({
      at,
      isWhole,
      words: words.map((word) => word.replaceAll(/^\[|\]$/g, '').replace(/\|.*$/, '')),
    }));
}

/** Of all pages: lines of code blocks, and code in sentences that begins with a program and a word. */
export function documentedCommands(): readonly DocumentedCommand[] {
  const find = ['.', '-name', '*.md', '-not', '-path', '*/node_modules/*', '-not', '-path', './.*/*'];
  const pages = execFileSync('find', find, { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && !path.startsWith('./build/'));
  return pages.sort().flatMap((page) => {
    const lines = readFileSync(join(ROOT, page), 'utf8')
      .replaceAll(/\\\n\s*/g, '')
      .split('\n');
    let isFenced = false;
    return lines.flatMap((text, index) => {
      const at = `${page.slice(2)}:${index + 1}`;
      if (text.trimStart().startsWith('```')) isFenced = !isFenced;
      if (isFenced || text.startsWith('    ')) return commandsOf(at, text, true);
      return [...text.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) =>
        code.includes(' ') ? commandsOf(at, code, false) : [],
      );
    });
  });
}
