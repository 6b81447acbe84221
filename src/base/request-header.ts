/** A header for requests. */
export interface OriginHeader {
  /** `scheme://host:port` that it is for, as URLs print it; null: not given. */
  readonly origin: string | null;
  readonly name: string;
  readonly value: string;
}

/** What a header line has to look like. */
export const HEADER_FORM = "'Name: value' or 'https://host:port Name: value'";

const ORIGIN = /^[ \t]*(https?:\/\/[^ \t]+)[ \t]+/i;
/** The begin of a header: a name that is an RFC 9110 token. A URL is not one. */
const HEADER_START = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+):(?!\/\/)/;
/** Visible text; anything else would make a malformed request. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Takes the origin off text that may begin with one. Null when it begins with something that is no mere origin. */
export function splitOrigin(text: string): { readonly origin: string | null; readonly rest: string } | null {
  const [whole = '', given = ''] = ORIGIN.exec(text) ?? [];
  if (whole === '') return { origin: null, rest: text };
  const url = URL.canParse(given) ? new URL(given) : null;
  // A path behind the host, or a login before it, has no meaning here.
  return url === null || url.href !== `${url.origin}/` ? null : { origin: url.origin, rest: text.slice(whole.length) };
}

/** Reads one header. Null when it is none. */
function parseHeader(text: string): OriginHeader | null {
  const split = splitOrigin(text);
  if (split === null) return null;
  const [start = '', name = ''] = HEADER_START.exec(split.rest) ?? [];
  const value = split.rest.slice(start.length);
  return name === '' || !HEADER_VALUE.test(value) ? null : { origin: split.origin, name, value: value.trim() };
}

/**
 * Reads headers separated by commas. A comma within a value stays, unless a header begins after it. An origin applies until
 * another follows. Null stands for a malformed header.
 */
export function parseHeaders(text: string): readonly (OriginHeader | null)[] {
  const texts: string[] = [];
  for (const piece of text.split(',')) {
    const previous = texts.pop();
    if (previous === undefined) texts.push(piece);
    else if (HEADER_START.test(piece.replace(ORIGIN, ''))) texts.push(previous, piece);
    else texts.push(`${previous},${piece}`);
  }
  let origin: string | null = null;
  return texts.map((one) => {
    const header = parseHeader(one);
    origin = header?.origin ?? origin;
    return header === null ? null : { ...header, origin };
  });
}

/** Reads a file with one header a line. Empty lines, and those with `#` first, are skipped. Null: malformed. Lines count from 1. */
export function parseHeaderFile(
  text: string,
): readonly { readonly line: number; readonly header: OriginHeader | null }[] {
  return text.split(/\r?\n/).flatMap((content, index) => {
    const isNothing = content.trim() === '' || content.trimStart().startsWith('#');
    return isNothing ? [] : [{ line: index + 1, header: parseHeader(content) }];
  });
}
