/** What was thrown, in words: anything can be. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What an error of the system or of Node's is known by, such as ENOENT; null when it has no code. */
export function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
