export type Mapping = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a mapping, which a list is not. */
export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
