/** Members of objects as HNS writes them: empty ones are left out or null, and one of the wrong type counts as left out. */

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

export function whole(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) ? value : 0;
}

export function objects<T extends object>(value: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(value) ? value.filter((each): each is T => typeof each === 'object' && each !== null) : [];
}
