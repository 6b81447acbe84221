import { isUrlText, printUrl } from '../net/url-text.js';
import type { ManifestsSource } from './config.js';

/** Reads the values of --manifests. The names by which sources are known hold no secret and are all different. */
export function readManifestsSources(values: readonly string[]): {
  readonly sources: readonly ManifestsSource[];
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const names = new Set<string>();
  const sources = values.flatMap((value, index) => {
    const source = readSource(value);
    if (typeof source === 'string') {
      problems.push(`--manifests: ${source}${values.length > 1 ? ` (value ${index + 1})` : ''}`);
      return [];
    }
    const name = unused(source.name, names);
    names.add(name);
    return [{ ...source, name }];
  });
  return { sources, problems };
}

/** What is wrong with a value is told without it: what cannot be taken apart may hold a password anywhere. */
function readSource(value: string): ManifestsSource | string {
  if (value === '') return 'Required value: must not be empty';
  if (!isUrlText(value)) return { type: 'path', path: value, name: value };
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value))
    return 'Invalid value: must be a path or a URL http://… or https://…';
  const url = new URL(value);
  if (!isEncoded(url.username) || !isEncoded(url.password))
    return 'Invalid value: user name or password is not percent-encoded UTF-8';
  return { type: 'url', url: url.href, name: printUrl(url) };
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** URLs that differ only in what is not shown are two sources all the same. */
function unused(name: string, taken: ReadonlySet<string>): string {
  let number = 1;
  let unique = name;
  while (taken.has(unique)) unique = `${name} (${++number})`;
  return unique;
}
