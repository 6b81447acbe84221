/** A text without the characters at its end that are among `characters`. A pattern such as `/-+$/` tries every place of a long run. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** `1 Service`, `2 Services`. @param singular a noun whose plural has an "s" more. */
export function counted(count: number, singular: string): string {
  return `${count} ${singular}${count === 1 ? '' : 's'}`;
}
