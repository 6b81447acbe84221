export type Mapping = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a mapping, which a list is not. */
export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The mapping that a text of JSON is; null: it is none. */
export function parseMapping(text: string): Mapping | null {
  try {
    const value: unknown = JSON.parse(text);
    return isMapping(value) ? value : null;
  } catch {
    return null;
  }
}
