/** Why the running process did not answer; the message says it all. */
export class AskError extends Error {
  override readonly name = 'AskError';
}
