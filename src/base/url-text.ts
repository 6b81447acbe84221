/** Stands for what may be a credential. */
export const REDACTED = '[REDACTED]';

/** Whether text that may be a path is meant as a URL, be it one that can be read or not. */
export function isUrlText(text: string): boolean {
  return /^\s*(?:https?:|[a-z][a-z0-9+.-]{0,31}:\/\/)/i.test(text);
}

/** A URL as it may be shown: without user and password, query and fragment, any of which may be a credential. */
export function printUrl({ protocol, host, pathname, search }: URL): string {
  return `${protocol}//${host}${pathname}${search === '' ? '' : '?…'}`;
}

/** Text that may be a URL, as it may be shown; one that cannot be read is not shown at all. */
export function printUrlText(text: string): string {
  if (isUrlText(text)) return URL.canParse(text) ? printUrl(new URL(text)) : REDACTED;
  // `user:password@host`, whose scheme was forgotten.
  const [head = ''] = text.replace(/^\/\//, '').split('/', 1);
  return head.includes(':') && head.includes('@') ? REDACTED : text;
}
