/** One entry of an Accept header. */
interface MediaRange {
  /** `type/subtype` in lower case; either may be `*`. */
  readonly type: string;
  /** Parameters other than q, names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
  /** 0 to 1; 0: must not be sent. */
  readonly quality: number;
}

/** The entries of an Accept header, most wanted first (RFC 9110 §12.5.1). Absent or empty means anything. */
export function parseAccept(header: string | undefined): readonly MediaRange[] {
  const entries = (header ?? '').split(',').filter((entry) => entry.trim() !== '');
  const ranges = (entries.length === 0 ? ['*/*'] : entries).map(parseRange);
  return ranges.sort((one, other) => other.quality - one.quality);
}

function parseRange(text: string): MediaRange {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = new Map<string, string>();
  for (const part of rest) {
    const [name = '', value = ''] = part.split('=', 2).map((side) => side.trim());
    parameters.set(name.toLowerCase(), value.replace(/^"(.*)"$/, '$1'));
  }
  const quality = Number(parameters.get('q') ?? '1');
  parameters.delete('q');
  return { type: type.toLowerCase(), parameters, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}
