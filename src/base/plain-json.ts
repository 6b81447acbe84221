/** What is the same in JSON and in YAML: no escape, no character but the printable ones of ASCII, only whole numbers, a colon right behind its key. */
const TOKEN = /"([ !#-[\]-~]*)"(:?)|[ \n]+|[{}[\],]|true|false|null|(?:0|-?[1-9]\d{0,14})(?!\d)/y;
/** Keys that have no meaning of their own in YAML and JavaScript, and that YAML takes to be on one line. */
const KEY = /^[A-Za-z][\w./-]{0,99}$/;
/** The parser of YAML has a limit of its own. */
const MAX_DEPTH = 30;

/**
 * The mapping that a text of JSON is, where it is as programs write it: a YAML parser reads the same. So it can be had without the library for that,
 * which takes ten times as long to load as this takes. Null: it is anything else, such as YAML, a text with a mistake, or one in which a key comes twice.
 */
export function readPlainJson(text: string): object | null {
  if (!text.startsWith('{')) return null;
  const keys = countKeys(text);
  if (keys === null) return null;
  try {
    const value = JSON.parse(text) as object;
    return keysOf(value) === keys ? value : null;
  } catch {
    return null;
  }
}

/** How many keys are written; null: something is not plain. */
function countKeys(text: string): number | null {
  let keys = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const [token = '', content = '', colon = ''] = TOKEN.exec(text) ?? [];
    if (token === '') return null;
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (colon !== '') {
      if (!KEY.test(content)) return null;
      keys++;
    }
    if (depth > MAX_DEPTH) return null;
  }
  return keys;
}

/** How many keys a value has, with those of all within: of a key that came twice there is one. */
function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const parts = Object.values(value);
  return parts.reduce((sum: number, part) => sum + keysOf(part), Array.isArray(value) ? 0 : parts.length);
}
