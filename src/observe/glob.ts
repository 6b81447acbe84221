/**
 * Whether a path matches a pattern of a `vmodule` list: `*` is any text, `?` any character but a slash. A pattern with a slash is matched against the whole
 * path, any other against its last element. Takes at most the product of both lengths, however many stars there are.
 */
export function matchesGlob(path: string, pattern: string): boolean {
  const text = pattern.includes('/') ? path : path.slice(path.lastIndexOf('/') + 1);
  let at = 0;
  let index = 0;
  /** Behind the last star, and the end of what it stands for so far: all that is ever tried anew. */
  let star = -1;
  let covered = 0;
  while (at < text.length) {
    const wanted = pattern.charAt(index);
    if (wanted === '*') {
      star = ++index;
      covered = at;
    } else if (wanted !== '' && (wanted === text.charAt(at) || (wanted === '?' && text.charAt(at) !== '/'))) {
      index++;
      at++;
    } else if (star >= 0) {
      index = star;
      at = ++covered;
    } else return false;
  }
  while (pattern.charAt(index) === '*') index++;
  return index === pattern.length;
}
