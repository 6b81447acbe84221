import { isLoopback, parseAddress } from '../base/ip.js';
import { isUrlText, printUrl, printUrlText } from '../base/url-text.js';
import type { ManifestsSource, PathSource, UrlSource } from './config.js';
import type { ConfigFiles } from './files.js';
import { listFlag, type CommandLine } from './flags.js';
import { OriginSettings } from './origin-settings.js';

/** What the flags say about where to read objects from. */
interface ManifestsFlags {
  readonly sources: readonly ManifestsSource[];
  /** Never with a value, which may be a credential. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** A URL as it is written. */
type BareUrl = Pick<UrlSource, 'type' | 'url' | 'name'>;

/** Reads --manifests and what belongs to it. The names by which sources are known hold no secret and are all different. */
export function readManifests(line: CommandLine, files: ConfigFiles): ManifestsFlags {
  const { sources: bare, problems } = readValues(listFlag(line, 'manifests'));
  const origins = new Set(bare.flatMap((source) => (source.type === 'url' ? new URL(source.url).origin : [])));
  const settings = new OriginSettings(line, files, origins);
  const sources = bare.map((source) => (source.type === 'url' ? { ...source, ...settings.of(source.url) } : source));
  const warnings = sources.flatMap((source) =>
    source.type === 'url' && isOverheard(source.url, settings)
      ? [`--manifests: ${source.name} is requested without encryption, with a possible credential: use https`]
      : [],
  );
  return { sources, problems: [...problems, ...settings.problems], warnings };
}

/** The values of --manifests alone. */
function readValues(values: readonly string[]): {
  readonly sources: readonly (PathSource | BareUrl)[];
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

/** A problem of a value is reported without it: what cannot be taken apart may hold a password anywhere. */
function readSource(value: string): PathSource | BareUrl | string {
  if (value === '') return 'Required value: must not be empty';
  if (!isUrlText(value)) {
    if (printUrlText(value) !== value)
      return 'Invalid value: must be a URL with its scheme, http://… or https://…, or a path, which may begin with ./';
    return { type: 'path', path: value, name: value };
  }
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

/** Whether others on the way may read a credential. Any header may be one. */
function isOverheard(text: string, settings: OriginSettings): boolean {
  const { protocol, hostname, username, password, origin } = new URL(text);
  if (protocol === 'https:' || hostname === 'localhost' || hostname.endsWith('.localhost')) return false;
  const address = parseAddress(hostname.replace(/^\[(.*)\]$/, '$1'));
  if (address !== null && isLoopback(address)) return false;
  return username !== '' || password !== '' || settings.hasHeaders(origin);
}
